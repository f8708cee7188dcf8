//! **Pure.** The example server's tools: what they are called, what they want, what they answer.

use serde_json::{Value, json};

/// Gives the value of a header that may be shown, by its name.
pub(super) type Shown<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A call that cannot be carried out, because of its name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tool of the name {0:?}")]
pub(super) struct UnknownTool(String);

/// The result of `tools/list`, with the tool that shows headers of its own request where `shows` says so.
pub(super) fn list(shows: bool) -> Value {
    let mut result = json!({"tools": [
        {
            "name": "echo",
            "description": "Says the message back",
            "inputSchema": {
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            },
        },
        {
            "name": "add",
            "description": "Adds two numbers",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
        {
            "name": "weather",
            "description": "A made-up temperature for a city, the same each time",
            "inputSchema": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "celsius": {"type": "integer"}},
                "required": ["city", "celsius"],
            },
        },
    ]});
    if shows && let Some(Value::Array(tools)) = result.get_mut("tools") {
        let schema =
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        tools.push(json!({
            "name": "header",
            "description": "A header that this very request came with",
            "inputSchema": schema,
        }));
    }
    result
}

/// The result of a `tools/call` with these parameters. Arguments that do not fit are the model's to correct: they
/// give a result that says so, not a protocol error.
///
/// Without `header`, none may be shown.
pub(super) fn call(params: &Value, header: Option<&Shown<'_>>) -> Result<Value, UnknownTool> {
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let argument = |name: &str| params.get("arguments").and_then(|arguments| arguments.get(name));
    let result = match name {
        "echo" => argument("message").and_then(Value::as_str).map(text),
        "add" => {
            let number = |name| argument(name).and_then(Value::as_f64);
            number("a").zip(number("b")).map(|(a, b)| text(&(a + b).to_string()))
        }
        "weather" => argument("city").and_then(Value::as_str).map(weather),
        "header" if let Some(header) = header => {
            argument("name").and_then(Value::as_str).map(|name| text(&header(name).unwrap_or_default()))
        }
        _ => return Err(UnknownTool(name.to_owned())),
    };
    Ok(result.unwrap_or_else(|| {
        let mut refusal = text(&format!("the arguments do not fit the input schema of {name}"));
        if let Some(refusal) = refusal.as_object_mut() {
            refusal.insert("isError".into(), Value::Bool(true));
        }
        refusal
    }))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Between -10 and 30 degrees, by the letters of the city.
fn weather(city: &str) -> Value {
    let celsius = city.bytes().fold(0, |sum, byte| (sum * 31 + i64::from(byte)) % 41) - 10;
    json!({
        "content": [{"type": "text", "text": format!("{celsius} degrees Celsius in {city}")}],
        "structuredContent": {"city": city, "celsius": celsius},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_of_the_list_can_be_called_and_says_when_arguments_do_not_fit() {
        let header = |name: &str| (name == "x").then(|| "1".to_owned());
        for tool in list(true)["tools"].as_array().unwrap() {
            let refusal = call(&json!({"name": tool["name"], "arguments": {}}), Some(&header)).unwrap();
            assert_eq!(refusal["isError"], json!(true), "{tool}");
        }
        let sum = call(&json!({"name": "add", "arguments": {"a": 2, "b": 0.5}}), None).unwrap();
        assert_eq!(sum["content"][0]["text"], json!("2.5"));
        let here = call(&json!({"name": "weather", "arguments": {"city": "Kiel"}}), None).unwrap();
        assert_eq!(here["structuredContent"]["city"], json!("Kiel"));
        let shown = json!({"name": "header", "arguments": {"name": "x"}});
        assert_eq!(call(&shown, Some(&header)).unwrap()["content"][0]["text"], json!("1"));
        for (name, params) in [("nothing", json!({"name": "nothing"})), ("header", shown)] {
            assert_eq!(call(&params, None), Err(UnknownTool(name.into())));
        }
        assert_eq!(list(false)["tools"].as_array().map(Vec::len), Some(3));
    }
}
