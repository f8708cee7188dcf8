//! Pure: what clients and targets announce of themselves. Kept as they wrote it; only what decides is read.

use serde_json::{Map, Value};

/// What a target announces (2025-11-25, lifecycle, capability negotiation).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCapabilities(Map<String, Value>);

impl ServerCapabilities {
    /// Reads them; what is no object announces nothing.
    pub fn new(value: Value) -> Self {
        match value {
            Value::Object(map) => Self(map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Self::default()
            }
        }
    }

    /// Whether it announces this capability at all.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Value::is_object)
    }

    /// Whether it announces this flag of a capability.
    pub fn flag(&self, name: &str, flag: &str) -> bool {
        self.0.get(name).and_then(|capability| capability.get(flag)) == Some(&Value::Bool(true))
    }

    /// A capability as it was announced.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// What a client announces: the text that targets are offered, and a key that is equal for equal announcements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientCapabilities {
    /// Sorted and without spaces, so that equal capabilities are equal texts.
    text: Box<str>,
}

/// Whether a client announced that it answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// It did.
    Yes,
    /// It answers such requests, and none in this mode.
    InAnotherMode,
    /// It did not.
    No,
}

impl Default for ClientCapabilities {
    fn default() -> Self {
        Self { text: "{}".into() }
    }
}

impl ClientCapabilities {
    /// Reads what a client announced; none where it is no object.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        // serde_json's maps are sorted.
        let map: Map<String, Value> = serde_json::from_slice(raw).ok()?;
        Some(Self { text: Value::Object(map).to_string().into() })
    }

    /// What is offered to a target where answers may not be event streams: nothing could be asked of the client.
    #[must_use]
    pub fn without_requests(&self) -> Self {
        let mut map: Map<String, Value> = serde_json::from_str(&self.text).unwrap_or_default();
        for capability in ["elicitation", "roots", "sampling", "tasks"] {
            map.remove(capability);
        }
        Self { text: Value::Object(map).to_string().into() }
    }

    /// As it is offered to targets.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the client announced that it answers any request at all.
    pub fn answer_anything(&self) -> bool {
        let methods = ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get", ""];
        methods.iter().any(|method| self.capability(method).is_some())
    }

    /// Whether the client announced that it answers `method` (2025-11-25, client features), of an elicitation in this
    /// `mode`, raw JSON. `ping` needs no announcement, and is not asked here.
    pub fn answers(&self, method: &str, mode: Option<&[u8]>) -> Answers {
        let Some(capability) = self.capability(method) else { return Answers::No };
        let takes = match (method, mode) {
            ("elicitation/create", Some(br#""url""#)) => capability.contains_key("url"),
            // What names no mode is a form, and who announces none takes forms (elicitation, capabilities).
            ("elicitation/create", _) => capability.contains_key("form") || !capability.contains_key("url"),
            _ => true,
        };
        if takes { Answers::Yes } else { Answers::InAnotherMode }
    }

    /// What the client announced of the feature that `method` is part of.
    fn capability(&self, method: &str) -> Option<Map<String, Value>> {
        let mut map: Map<String, Value> = serde_json::from_str(&self.text).ok()?;
        let capability = match method {
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            "roots/list" => "roots",
            "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => "tasks",
            _ => "experimental",
        };
        match map.remove(capability)? {
            Value::Object(capability) => Some(capability),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_announcements_are_equal_however_they_are_written() {
        let one = ClientCapabilities::parse(br#"{"sampling":{}, "roots":{"listChanged":true}}"#).unwrap();
        let other = ClientCapabilities::parse(br#"{"roots":{"listChanged":true},"sampling":{}}"#).unwrap();
        assert_eq!(one, other);
        assert_eq!(ClientCapabilities::parse(b"[]"), None);
        assert_eq!(ClientCapabilities::parse(b"{}").unwrap(), ClientCapabilities::default());
    }

    #[test]
    fn a_client_is_asked_only_what_it_announced() {
        let client = ClientCapabilities::parse(br#"{"elicitation":{"form":{}}}"#).unwrap();
        assert_eq!(client.answers("elicitation/create", None), Answers::Yes);
        for method in ["sampling/createMessage", "roots/list", "tasks/get", "unknown/method"] {
            assert_eq!(client.answers(method, None), Answers::No, "{method}");
        }
        assert_eq!(client.without_requests().answers("elicitation/create", None), Answers::No);
    }

    #[test]
    fn an_elicitation_needs_the_mode_that_the_client_announced_and_a_form_where_it_announced_none() {
        let [form, url] = [r#""form""#, r#""url""#].map(str::as_bytes);
        for (announced, forms, urls) in [
            ("{}", true, false),
            (r#"{"form":{}}"#, true, false),
            (r#"{"url":{}}"#, false, true),
            (r#"{"form":{},"url":{}}"#, true, true),
        ] {
            let client = ClientCapabilities::parse(format!(r#"{{"elicitation":{announced}}}"#).as_bytes());
            let takes = |mode| match client.as_ref().unwrap().answers("elicitation/create", mode) {
                Answers::Yes => true,
                Answers::InAnotherMode => false,
                Answers::No => panic!("it is announced"),
            };
            assert_eq!(
                [takes(None), takes(Some(form)), takes(Some(url))],
                [forms, forms, urls],
                "{announced}"
            );
        }
    }

    #[test]
    fn a_server_announces_what_it_writes_as_an_object() {
        let server =
            ServerCapabilities::new(serde_json::json!({"tools": {"listChanged": true}, "prompts": null}));
        assert!(server.has("tools") && server.flag("tools", "listChanged"));
        assert!(!server.has("prompts") && !server.flag("resources", "subscribe"));
        assert!(!ServerCapabilities::new(serde_json::json!([1])).has("tools"));
    }
}
