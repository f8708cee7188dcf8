//! Pure: what is read of a message's parameters, in the pass that reads the message. What they say stays raw.

use std::fmt;

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::jsonrpc::keys::Known;

/// The key of `_meta` under which the task stands that a message belongs to (2025-11-25, tasks).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The parameters that some route needs, each as the raw JSON that was received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params {
    /// Of `tools/call`: the tool.
    pub name: Option<Bytes>,
    /// Of lists: where to go on.
    pub cursor: Option<Bytes>,
    /// Of `notifications/cancelled`: the request.
    pub request_id: Option<Bytes>,
    /// Of `notifications/progress`: what it reports on.
    pub progress_token: Option<Bytes>,
    /// Of any request: what belongs to none in particular, a progress token among it.
    pub meta: Option<Bytes>,
    /// Of `initialize`.
    pub protocol_version: Option<Bytes>,
    /// Of `initialize`.
    pub client_info: Option<Bytes>,
    /// Of `initialize`.
    pub capabilities: Option<Bytes>,
}

#[derive(Default)]
pub(super) struct WireParams<'a> {
    name: Option<&'a RawValue>,
    cursor: Option<&'a RawValue>,
    request_id: Option<&'a RawValue>,
    progress_token: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
    protocol_version: Option<&'a RawValue>,
    client_info: Option<&'a RawValue>,
    capabilities: Option<&'a RawValue>,
    // These are sought where they are needed, by `span`. Here they only must be the ones that everybody else finds.
    uri: Option<&'a RawValue>,
    reference: Option<&'a RawValue>,
    task: Option<&'a RawValue>,
    task_id: Option<&'a RawValue>,
    level: Option<&'a RawValue>,
}

#[derive(Clone, Copy)]
enum Key {
    Name,
    Cursor,
    RequestId,
    ProgressToken,
    Meta,
    ProtocolVersion,
    ClientInfo,
    Capabilities,
    Uri,
    Reference,
    Task,
    TaskId,
    Level,
}

const KEYS: &[(&str, Key)] = &[
    ("name", Key::Name),
    ("cursor", Key::Cursor),
    ("requestId", Key::RequestId),
    ("progressToken", Key::ProgressToken),
    ("_meta", Key::Meta),
    ("protocolVersion", Key::ProtocolVersion),
    ("clientInfo", Key::ClientInfo),
    ("capabilities", Key::Capabilities),
    ("uri", Key::Uri),
    ("ref", Key::Reference),
    ("task", Key::Task),
    ("taskId", Key::TaskId),
    ("level", Key::Level),
];

/// What is sought within `_meta`, each with a bit of its own.
const IN_META: &[(&str, u8)] = &[("progressToken", 1), (RELATED_TASK, 2)];
/// What is sought within `ref`.
const IN_REFERENCE: &[(&str, u8)] = &[("type", 1), ("name", 2), ("uri", 4)];

/// By hand, for two reasons: a derived struct also reads itself from an array, and a name that is given twice, in one
/// spelling or in two, must be an error here, or we would route by one and the target would run the other.
impl<'de: 'a, 'a> Deserialize<'de> for WireParams<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = WireParams<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(WireParams::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut params = WireParams::default();
        while let Some(key) = map.next_key_seed(Known(KEYS))? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let slot = match key {
                Key::Name => &mut params.name,
                Key::Cursor => &mut params.cursor,
                Key::RequestId => &mut params.request_id,
                Key::ProgressToken => &mut params.progress_token,
                Key::Meta => &mut params.meta,
                Key::ProtocolVersion => &mut params.protocol_version,
                Key::ClientInfo => &mut params.client_info,
                Key::Capabilities => &mut params.capabilities,
                Key::Uri => &mut params.uri,
                Key::Reference => &mut params.reference,
                Key::Task => &mut params.task,
                Key::TaskId => &mut params.task_id,
                Key::Level => &mut params.level,
            };
            if slot.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom("a parameter is given twice"));
            }
        }
        // Their bytes are passed over once more; they are few.
        for (value, sought) in [(params.meta, IN_META), (params.reference, IN_REFERENCE)] {
            if let Some(value) = value {
                each_once(value, sought).map_err(A::Error::custom)?;
            }
        }
        Ok(params)
    }
}

/// Fails where one of `sought` is given twice in an object, in one spelling or in two. What is no object holds none.
fn each_once(value: &RawValue, sought: &'static [(&'static str, u8)]) -> Result<(), serde_json::Error> {
    if !value.get().starts_with('{') {
        return Ok(());
    }
    serde_json::Deserializer::from_str(value.get()).deserialize_map(Once(sought))
}

struct Once(&'static [(&'static str, u8)]);

impl<'de> Visitor<'de> for Once {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0;
        while let Some(key) = map.next_key_seed(Known(self.0))? {
            let bit = key.unwrap_or_default();
            if seen & bit != 0 {
                return Err(A::Error::custom("a key is given twice"));
            }
            seen |= bit;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl WireParams<'_> {
    pub(super) fn share(&self, bytes: &Bytes) -> Params {
        let Self {
            name,
            cursor,
            request_id,
            progress_token,
            meta,
            protocol_version,
            client_info,
            capabilities,
            uri: _,
            reference: _,
            task: _,
            task_id: _,
            level: _,
        } = *self;
        let share = |raw: Option<&RawValue>| raw.map(|raw| bytes.slice_ref(raw.get().as_bytes()));
        Params {
            name: share(name),
            cursor: share(cursor),
            request_id: share(request_id),
            progress_token: share(progress_token),
            meta: share(meta),
            protocol_version: share(protocol_version),
            client_info: share(client_info),
            capabilities: share(capabilities),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Invalid, Message};

    fn parse(params: &str) -> Result<Message, Invalid> {
        Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#).into())
    }

    fn refused(params: &str) -> bool {
        matches!(parse(params), Err(Invalid::Syntax(error)) if error.is_data())
    }

    /// A key as it is written in other ways that some parser takes for it, and as it is.
    fn spellings(key: &str) -> [String; 5] {
        let capital = key.replacen(|letter: char| letter.is_ascii_lowercase(), "\\u004E", 1);
        let capital = if key.starts_with('n') { capital } else { key.to_ascii_uppercase() };
        let nul = format!("{key}\\u0000");
        [capital, nul, key.replace('s', "\u{17f}"), key.replace('k', "\\u212a"), key.to_owned()]
    }

    #[test]
    fn two_names_in_one_call_are_refused_rather_than_routed_by_one_of_them() {
        for (key, _) in KEYS {
            assert!(!refused(&format!(r#"{{"{key}":"a","x":{{"{key}":1,"X":2}}}}"#)), "{key}");
            for other in spellings(key) {
                assert!(refused(&format!(r#"{{"{key}":"a","{other}":"b"}}"#)), "{other} behind {key}");
                assert!(refused(&format!(r#"{{"{other}":"b","{key}":"a"}}"#)), "{other} before {key}");
            }
        }
        assert!(refused(r#"{"Name":"b"}"#), "a target that reads it would run what we did not see");
    }

    #[test]
    fn what_is_sought_deeper_within_parameters_is_there_once_or_the_message_is_refused() {
        for (within, sought) in [("_meta", IN_META), ("ref", IN_REFERENCE)] {
            for (key, _) in sought {
                let once = format!(r#"{{"{within}":{{"{key}":"a","x":{{"{key}":1}}}}}}"#);
                assert!(!refused(&once), "{once}");
                for other in spellings(key) {
                    assert!(refused(&format!(r#"{{"{within}":{{"{key}":"a","{other}":"b"}}}}"#)), "{other}");
                }
            }
            for no_object in ["[1]", "null", r#""progressToken""#, "{}"] {
                assert!(!refused(&format!(r#"{{"{within}":{no_object}}}"#)), "{no_object}");
            }
        }
    }

    #[test]
    fn arguments_are_the_tools_own_whatever_their_keys_are() {
        assert!(!refused(r#"{"name":"a","arguments":{"name":1,"Name":2,"NAME":3,"name":4}}"#));
        assert!(!refused(r#"{"names":1,"nam":2,"Title":3,"_Metadata":4,"":5,"\u0000":6}"#));
    }

    #[test]
    fn parameters_in_an_array_are_refused_rather_than_read_in_order() {
        assert!(parse(r#"["a"]"#).is_err());
        assert!(parse("null").is_ok());
    }
}
