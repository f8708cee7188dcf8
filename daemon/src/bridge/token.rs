//! Pure: the progress token of a request, where it has one (2025-11-25, progress).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{Kind, Message};

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// The token as it was written, a slice of the message.
pub(super) fn progress_token(message: &Message) -> Option<Bytes> {
    let Kind::Request { params, .. } = &message.kind else { return None };
    // serde would read a struct from an array, too.
    let meta = params.meta.as_ref().filter(|meta| meta.starts_with(b"{"))?;
    let Meta { token } = serde_json::from_slice(meta).ok()?;
    Some(meta.slice_ref(token?.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_slice_of_its_request() {
        let token = |meta: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}"#);
            progress_token(&Message::parse(Bytes::from(text)).unwrap())
        };
        assert_eq!(token(r#"{"a":1,"progressToken":"t\u0031"}"#).as_deref(), Some(br#""t\u0031""#.as_ref()));
        assert_eq!(token(r#"{"progressToken": 7}"#).as_deref(), Some(b"7".as_ref()));
        assert_eq!(token("{}"), None);
        assert_eq!(token("[7]"), None);
    }
}
