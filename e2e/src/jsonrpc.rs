//! JSON-RPC and SSE as text, for the peers that answer in tests. Only builds; what peers received is kept as it came.

use bytes::Bytes;
use serde_json::{Value, json};

/// A response that carries `result`, which is spelt as given.
pub(crate) fn result(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// A response that carries an error; `id` may be null where none is known.
pub(crate) fn error(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

/// A notification.
pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A request in the direction from server to client.
pub(crate) fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// The result of a tool that answers with one text.
pub(crate) fn text(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

/// One event of a stream, with the id it may have.
pub(crate) fn event(id: Option<&str>, data: &str) -> Bytes {
    match id {
        Some(id) => format!("event: message\nid: {id}\ndata: {data}\n\n"),
        None => format!("event: message\ndata: {data}\n\n"),
    }
    .into()
}
