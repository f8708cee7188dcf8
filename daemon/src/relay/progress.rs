//! Pure: whose progress a notification reports (2025-11-25, progress). Tokens are compared as what they are, not as they
//! are spelt, since servers read and write them anew.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::envelope::same_id;

/// The token in the `_meta` of a request, raw, where there is one.
pub fn given(meta: &[u8]) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(rename = "progressToken", borrow)]
        token: &'a RawValue,
    }
    // serde would read a struct from an array, too.
    let object = meta.first() == Some(&b'{');
    let Meta { token } = object.then(|| serde_json::from_slice(meta).ok()).flatten()?;
    let scalar = token.get().starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'));
    scalar.then(|| token.get().into())
}

/// Whether progress on `reported`, raw, is of the request that gave `token`.
pub fn reports_on(reported: Option<&[u8]>, token: Option<&str>) -> bool {
    reported.zip(token).is_some_and(|(reported, token)| same_id(reported, token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_of_the_request_that_gave_its_token() {
        let of = |meta: &str, reported: &str| {
            reports_on(Some(reported.as_bytes()), given(meta.as_bytes()).as_deref())
        };
        assert!(of(r#"{"progressToken":"a\u002d"}"#, r#""a-""#));
        assert!(of(r#"{"x":{"progressToken":2},"progressToken":1}"#, "1.0"));
        assert!(!of(r#"{"progressToken":1}"#, r#""1""#));
        assert!(!of(r#"{"progressToken":1}"#, "2"));
        assert!(!of(r#"{"progressToken":null}"#, "null"));
        assert!(!of("{}", "null"));
        assert!(!of("[1]", "1"));
        assert!(!reports_on(None, Some("1")));
    }
}
