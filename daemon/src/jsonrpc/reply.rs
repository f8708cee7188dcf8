//! Pure: the few JSON-RPC messages that we write ourselves, as bytes.

use bytes::Bytes;
use serde_json::Value;

/// An answer: `result` is JSON already.
pub fn result(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(32 + id.len() + result.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result);
    out.push(b'}');
    Bytes::from(out)
}

/// A refusal. Without an id, where none could be read, the id is null (JSON-RPC 2.0 §5).
pub fn error(id: Option<&[u8]>, code: i32, message: &str, data: Option<&Value>) -> Bytes {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.unwrap_or(b"null"));
    out.extend_from_slice(br#","error":{"code":"#);
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(br#","message":"#);
    out.extend_from_slice(Value::from(message).to_string().as_bytes());
    if let Some(data) = data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.to_string().as_bytes());
    }
    out.extend_from_slice(b"}}");
    Bytes::from(out)
}

/// A request of ours: `id` and `params` are JSON already.
pub fn request(id: &str, method: &str, params: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#))
}

/// A notification of ours without parameters.
pub fn notification(method: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#))
}

/// `notifications/cancelled` for a request, whose id is JSON already.
pub fn cancelled(request_id: &[u8], reason: &str) -> Bytes {
    let mut out = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#.to_vec();
    out.extend_from_slice(request_id);
    out.extend_from_slice(br#","reason":"#);
    out.extend_from_slice(Value::from(reason).to_string().as_bytes());
    out.extend_from_slice(b"}}");
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_is_json_whatever_the_message_holds() {
        let data = serde_json::json!({"target": "we\"ather"});
        let error = error(Some(br#""a\"b""#), -32603, "a \"quoted\"\nline", Some(&data));
        let value: Value = serde_json::from_slice(&error).unwrap();
        assert_eq!(value["id"], "a\"b");
        assert_eq!(value["error"]["message"], "a \"quoted\"\nline");
        assert_eq!(value["error"]["data"]["target"], "we\"ather");
        let value: Value = serde_json::from_slice(&cancelled(b"7", "too \"slow\"")).unwrap();
        assert_eq!(value["params"]["requestId"], 7);
        let value: Value = serde_json::from_slice(&result(b"7", b"{}")).unwrap();
        assert_eq!(value, serde_json::json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    }
}
