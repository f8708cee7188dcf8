//! A status as it is written: without nulls, and without what an older schema does not know. Pure.

use serde::Serialize;
use serde_json::Value;

/// The JSON of a status as it would be written. A field that is null is not set: an apply would own it.
pub fn status_json<S: Serialize>(status: &S) -> serde_json::Result<Value> {
    Ok(without_nulls(serde_json::to_value(status)?))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// The field below the status that the API server refused because its schema does not have it.
///
/// A server-side apply of an unknown field is refused whole, in words such as
/// `.status.gateways[name="a",namespace="b"].tools: field not declared in schema`.
pub fn undeclared(error: &kube::Error) -> Option<Vec<String>> {
    let kube::Error::Api(status) = error else { return None };
    let (before, _) = status.message.split_once(": field not declared in schema")?;
    // Keys of list items hold quoted names, of any characters but quotes.
    let mut quoted = false;
    let mut within = 0_u32;
    let mut path = String::new();
    for c in before.chars().skip_while(|c| *c != '.') {
        match c {
            '"' => quoted = !quoted,
            '[' if !quoted => within += 1,
            ']' if !quoted => within = within.saturating_sub(1),
            _ if quoted || within > 0 => {}
            _ => path.push(c),
        }
    }
    let path = path.rsplit(' ').next()?.strip_prefix(".status.")?;
    Some(path.split('.').map(str::to_owned).collect())
}

/// Takes a field out of a status, in every item of lists on its path. False where it is not there.
pub fn leave_out(status: &mut Value, path: &[String]) -> bool {
    match (status, path) {
        (Value::Array(items), _) => {
            // Every item, not only up to the first that has it.
            items.iter_mut().map(|item| leave_out(item, path)).filter(|removed| *removed).count() > 0
        }
        (Value::Object(fields), [last]) => fields.remove(last).is_some(),
        (Value::Object(fields), [first, rest @ ..]) => {
            fields.get_mut(first).is_some_and(|below| leave_out(below, rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(message: &str) -> kube::Error {
        kube::Error::Api(kube::core::Status::failure(message, "").with_code(500).boxed())
    }

    #[test]
    fn nulls_are_not_written() {
        let status = json!({"a": null, "b": [{"c": null, "d": 1}]});
        assert_eq!(status_json(&status).unwrap(), json!({"b": [{"d": 1}]}));
    }

    #[test]
    fn an_unknown_field_is_read_from_the_refusal() {
        let error = refused(
            "failed to create typed patch object (team/tools; mooring.dev/v1alpha1, Kind=MCPGateway): \
             .status.selector: field not declared in schema",
        );
        assert_eq!(undeclared(&error).unwrap(), ["selector"]);
        let error = refused(
            "failed to create typed patch object (team/a.b; mooring.dev/v1alpha1, Kind=MCPTarget): \
             .status.gateways[name=\"x.y\",namespace=\"\"].tools: field not declared in schema",
        );
        assert_eq!(undeclared(&error).unwrap(), ["gateways", "tools"]);
        assert!(undeclared(&refused("Operation cannot be fulfilled")).is_none());
    }

    #[test]
    fn a_field_is_left_out_of_every_item_and_only_once() {
        let mut status = json!({"gateways": [{"name": "a", "tools": 1}, {"name": "b", "tools": 2}]});
        let path = ["gateways".to_owned(), "tools".to_owned()];
        assert!(leave_out(&mut status, &path));
        assert_eq!(status, json!({"gateways": [{"name": "a"}, {"name": "b"}]}));
        assert!(!leave_out(&mut status, &path));
    }
}
