//! Pure: reads the envelope of a JSON-RPC message in one pass, without copying its payload.

mod params;
mod wire;

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

pub use params::{Params, RELATED_TASK};
use wire::Wire;

/// A message we forward: what routing needs, and the bytes as they came.
///
/// Every slice in it shares the allocation of `bytes`.
#[derive(Debug, Clone)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// The whole message, byte for byte as received.
    pub bytes: Bytes,
}

/// The three kinds of message (JSON-RPC 2.0 §4, §5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Wants an answer.
    Request {
        /// As received: `1`, `"1"` and `1.0` are three ids.
        id: Bytes,
        /// Its method.
        method: Name,
        /// What routing needs of its parameters.
        params: Params,
    },
    /// Wants none.
    Notification {
        /// Its method.
        method: Name,
        /// What routing needs of its parameters.
        params: Params,
    },
    /// An answer.
    Response {
        /// The id of the request it answers, as received.
        id: Bytes,
    },
}

/// A string of the message: almost always a slice of it, owned only if it was escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(Bytes);

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// An array: a batch, which no version but 2025-03-26 has.
    #[error("a batch; send one message at a time")]
    Batch,
    /// JSON, but not one of the three kinds.
    #[error("neither a JSON-RPC 2.0 request, notification nor response")]
    Shape,
    /// A request id that is neither a string nor a number (MCP base protocol: it must not be null).
    #[error("a request id must be a string or a number")]
    Id,
}

impl Message {
    /// Splits `bytes` into envelope and payload; allocates nothing for unescaped names.
    ///
    /// # Errors
    /// [`Invalid`], where the bytes are not exactly one message.
    pub fn parse(bytes: Bytes) -> Result<Self, Invalid> {
        match bytes.trim_ascii_start().first() {
            Some(b'{') => {}
            // serde would read a struct from an array, field by field: `["2.0",1,"tools/call"]` would pass.
            Some(b'[') => return Err(Invalid::Batch),
            _ => {
                serde_json::from_slice::<IgnoredAny>(&bytes)?;
                return Err(Invalid::Shape);
            }
        }
        let wire: Wire<'_> = serde_json::from_slice(&bytes)?;
        if wire.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return Err(Invalid::Shape);
        }
        let share = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        let kind = match (wire.id, wire.method, wire.result.or(wire.error)) {
            (Some(id), Some(method), None) => {
                if !matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')) {
                    return Err(Invalid::Id);
                }
                let params = wire.params.share(&bytes);
                Kind::Request { id: share(id), method: Name::read(method, &bytes)?, params }
            }
            (None, Some(method), None) => {
                Kind::Notification { method: Name::read(method, &bytes)?, params: wire.params.share(&bytes) }
            }
            (Some(id), None, Some(_)) => Kind::Response { id: share(id) },
            _ => return Err(Invalid::Shape),
        };
        Ok(Self { kind, bytes })
    }

    /// The message with `part`, a slice of its bytes, replaced: chunks that share the original allocation.
    ///
    /// A `part` that is no slice of this message leaves it as it is.
    #[must_use]
    pub fn replace(&self, part: &Bytes, with: Bytes) -> [Bytes; 3] {
        let start = part.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr());
        match start {
            Some(at) if at + part.len() <= self.bytes.len() => {
                [self.bytes.slice(..at), with, self.bytes.slice(at + part.len()..)]
            }
            _ => [self.bytes.clone(), Bytes::new(), Bytes::new()],
        }
    }
}

impl Name {
    fn read(raw: &RawValue, bytes: &Bytes) -> Result<Self, serde_json::Error> {
        Ok(Self(match text(raw.get().as_bytes())? {
            Cow::Borrowed(name) => bytes.slice_ref(name.as_bytes()),
            Cow::Owned(name) => Bytes::from(name),
        }))
    }

    /// The name, unescaped.
    pub fn as_str(&self) -> &str {
        // It was read from a JSON string, so it is UTF-8; an empty name matches no method.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Whether two raw ids are one: as what they are, not as they are spelt, since servers read and write them anew.
pub fn same_id(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let value = |raw| serde_json::from_slice::<Value>(raw).ok();
    match (value(a), value(b)) {
        // 1 and 1.0 are one number to most of those who echo it.
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
        }
        (Some(Value::String(a)), Some(Value::String(b))) => a == b,
        _ => false,
    }
}

/// A raw id in one spelling of all that are the same. Ids as nearly everybody writes them are that already.
pub fn canonical_id(raw: &[u8]) -> Cow<'_, [u8]> {
    /// Integers beyond it are not told apart as floating point numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let usual = match raw {
        [b'"', rest @ ..] => !rest.contains(&b'\\'),
        [b'-', digits @ ..] | digits => digits.iter().all(u8::is_ascii_digit),
    };
    if usual {
        return Cow::Borrowed(raw);
    }
    match serde_json::from_slice::<Value>(raw) {
        Ok(Value::Number(number)) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => {
                Cow::Owned(format!("{float:.0}").into_bytes())
            }
            Some(_) | None => Cow::Owned(number.to_string().into_bytes()),
        },
        Ok(text @ Value::String(_)) => Cow::Owned(text.to_string().into_bytes()),
        Ok(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | Err(_) => Cow::Borrowed(raw),
    }
}

/// Reads raw JSON that must be a string; borrows where nothing was escaped.
///
/// # Errors
/// Where it is not a JSON string.
pub fn text(raw: &[u8]) -> Result<Cow<'_, str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_slice::<Text<'_>>(raw).map(|Text(text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(s: &'static str) -> Result<Kind, Invalid> {
        Message::parse(Bytes::from_static(s.as_bytes())).map(|m| m.kind)
    }

    #[test]
    fn an_id_has_one_spelling_for_all_that_are_the_same() {
        for (one, other) in [("1", "1.0"), ("10", "1e1"), ("-3", "-3.00"), (r#""a/b""#, r#""\u0061\/b""#)] {
            assert_eq!(canonical_id(one.as_bytes()), canonical_id(other.as_bytes()), "{one} {other}");
            assert_eq!(canonical_id(one.as_bytes()), one.as_bytes());
        }
        for (one, other) in [("1", r#""1""#), ("9007199254740993", "9007199254740992"), ("1.5", "1")] {
            assert_ne!(canonical_id(one.as_bytes()), canonical_id(other.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn the_three_kinds_are_told_apart() {
        let call = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":[1]}}"#);
        let Ok(Kind::Request { id, method, params }) = call else { panic!("{call:?}") };
        assert_eq!((id.as_ref(), method.as_str()), (b"1".as_ref(), "tools/call"));
        assert_eq!(params.name.as_deref(), Some(br#""a""#.as_ref()));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            Ok(Kind::Notification { .. })
        ));
        let answer = parse(r#"{"jsonrpc":"2.0","id":"a","result":null}"#);
        assert!(matches!(answer, Ok(Kind::Response { id }) if id == r#""a""#));
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_reason() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            "42",
            r#""ping""#,
        ] {
            assert!(matches!(parse(text), Err(Invalid::Shape)), "{text}");
        }
        assert!(matches!(parse(r#"["2.0",1,"tools/call"]"#), Err(Invalid::Batch)));
        for text in ["{", "", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#] {
            assert!(matches!(parse(text), Err(Invalid::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn an_id_is_a_string_or_a_number_and_kept_as_it_was_written() {
        for id in ["1", "1.0", "-7", r#""1""#, "12345678901234567890123"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let kind = Message::parse(Bytes::from(text)).unwrap().kind;
            assert!(matches!(kind, Kind::Request { id: kept, .. } if kept == id));
        }
        for id in ["null", "[]", "{}", "true"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert!(matches!(Message::parse(Bytes::from(text)), Err(Invalid::Id)), "{id}");
        }
    }

    #[test]
    fn an_id_that_a_server_wrote_anew_is_the_same_id() {
        for (a, b) in
            [("1", "1.0"), (r#""a\/b""#, r#""a/b""#), (r#""caf\u00e9""#, "\"caf\u{e9}\""), ("-0", "-0")]
        {
            assert!(same_id(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in [("1", r#""1""#), ("1", "2"), (r#""a""#, r#""b""#), ("null", "null ")] {
            assert!(!same_id(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }

    #[test]
    fn an_escaped_method_still_reads() {
        let kind = parse(r#"{"jsonrpc":"2.0","method":"tools\/call"}"#).unwrap();
        assert!(matches!(kind, Kind::Notification { method, .. } if method.as_str() == "tools/call"));
    }

    #[test]
    fn replacing_a_part_shares_the_buffer() {
        let text = br#"{"jsonrpc":"2.0","id":4,"method":"m","params":{"name":"w___x","name2":"w___x"}}"#;
        let message = Message::parse(Bytes::from_static(text)).unwrap();
        let Kind::Request { params, .. } = &message.kind else { panic!() };
        let chunks = message.replace(params.name.as_ref().unwrap(), Bytes::from_static(br#""x""#));
        let want = br#"{"jsonrpc":"2.0","id":4,"method":"m","params":{"name":"x","name2":"w___x"}}"#;
        assert_eq!(chunks.concat(), want);
        assert_eq!(chunks[0].as_ptr(), message.bytes.as_ptr());
    }
}
