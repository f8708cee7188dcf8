//! Pure: whose progress a notification reports (2025-11-25, progress). Tokens are compared as what they are, not as they
//! are spelt, since servers read and write them anew.

use serde::Deserialize;
use serde_json::Value;

/// The token in the `_meta` of a request, where there is one.
pub fn given(meta: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "progressToken", default)]
        token: Value,
    }
    // serde would read a struct from an array, too.
    let object = meta.first() == Some(&b'{');
    let Meta { token } = object.then(|| serde_json::from_slice(meta).ok()).flatten()?;
    if token.is_string() || token.is_number() { Some(token) } else { None }
}

/// Whether progress on `reported`, raw, is of the request that gave `token`.
pub fn reports_on(reported: Option<&[u8]>, token: Option<&Value>) -> bool {
    let reported = reported.and_then(|raw| serde_json::from_slice::<Value>(raw).ok());
    match (reported, token) {
        (Some(Value::Number(reported)), Some(Value::Number(token))) => {
            // 1 and 1.0 are one number to most of those who echo it.
            reported.as_f64().zip(token.as_f64()).is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
        }
        (Some(reported), Some(token)) => reported == *token,
        (None, _) | (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_of_the_request_that_gave_its_token() {
        let of = |meta: &str, reported: &str| {
            reports_on(Some(reported.as_bytes()), given(meta.as_bytes()).as_ref())
        };
        assert!(of(r#"{"progressToken":"a\u002d"}"#, r#""a-""#));
        assert!(of(r#"{"x":{"progressToken":2},"progressToken":1}"#, "1.0"));
        assert!(!of(r#"{"progressToken":1}"#, r#""1""#));
        assert!(!of(r#"{"progressToken":1}"#, "2"));
        assert!(!of(r#"{"progressToken":null}"#, "null"));
        assert!(!of("{}", "null"));
        assert!(!of("[1]", "1"));
        assert!(!reports_on(None, Some(&Value::from(1))));
    }
}
