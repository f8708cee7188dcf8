//! Pure: the members of a message, borrowed, in one pass.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::params::WireParams;
use crate::jsonrpc::keys::Known;

/// What a message may consist of (JSON-RPC 2.0 §4, §5). An explicit `null` is kept apart from an absent member, but for
/// `method` and `params`.
#[derive(Default)]
pub(super) struct Wire<'a> {
    pub(super) jsonrpc: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<&'a RawValue>,
    pub(super) params: WireParams<'a>,
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Clone, Copy)]
enum Key {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

const KEYS: &[(&str, Key)] = &[
    ("jsonrpc", Key::Jsonrpc),
    ("id", Key::Id),
    ("method", Key::Method),
    ("params", Key::Params),
    ("result", Key::Result),
    ("error", Key::Error),
];

/// By hand: a derived struct also reads itself from an array, copies where it flattens, and ignores every key that it
/// does not know, those among them that a target takes for one of these.
impl<'de: 'a, 'a> Deserialize<'de> for Wire<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(WireVisitor)
    }
}

struct WireVisitor;

impl<'de> Visitor<'de> for WireVisitor {
    type Value = Wire<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut wire = Wire::default();
        let (mut method, mut params) = (None, None);
        while let Some(key) = map.next_key_seed(Known(KEYS))? {
            let again = match key {
                Some(Key::Jsonrpc) => wire.jsonrpc.replace(map.next_value()?).is_some(),
                Some(Key::Id) => wire.id.replace(map.next_value()?).is_some(),
                Some(Key::Method) => method.replace(map.next_value()?).is_some(),
                Some(Key::Params) => params.replace(map.next_value()?).is_some(),
                Some(Key::Result) => wire.result.replace(map.next_value()?).is_some(),
                Some(Key::Error) => wire.error.replace(map.next_value()?).is_some(),
                None => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if again {
                return Err(A::Error::custom("a member is given twice"));
            }
        }
        Ok(Wire { method: method.flatten(), params: params.unwrap_or_default(), ..wire })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_given_twice_or_in_another_spelling_is_refused() {
        const MEMBERS: &str = r#""jsonrpc":"2.0","id":1,"method":"m","params":{},"result":1,"error":2"#;
        let refused =
            |json: String| serde_json::from_str::<Wire<'_>>(&json).is_err_and(|error| error.is_data());
        assert!(!refused(format!("{{{MEMBERS}}}")));
        for (key, _) in KEYS {
            let other = [key.to_ascii_uppercase(), format!("{key}\\u0000"), key.replace('s', "\u{17f}")];
            for key in other.into_iter().chain([(*key).to_owned()]) {
                assert!(refused(format!(r#"{{{MEMBERS},"{key}":{{}}}}"#)), "{key} behind");
                assert!(refused(format!(r#"{{"{key}":{{}},{MEMBERS}}}"#)), "{key} in front");
            }
        }
    }

    #[test]
    fn other_members_are_passed_over() {
        let json = r#"{"x":{"ID":[1]},"id":null,"meth":1,"ids":2,"":3,"method":null,"params":null}"#;
        let Wire { jsonrpc, id, method, result, error, .. } = serde_json::from_str(json).unwrap();
        assert_eq!(id.map(RawValue::get), Some("null"));
        assert!([jsonrpc, method, result, error].iter().all(Option::is_none));
    }
}
