//! A whole answer, as it came, and what can be read from it.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{ClientError, sse};

/// An answer that is complete.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, byte by byte.
    pub body: Bytes,
}

impl Answer {
    /// A header's value as text, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The messages of the body: of a stream each event's, else the one that the body is.
    pub fn messages(&self) -> Vec<Value> {
        if self.is_stream() {
            sse::read(&self.body).iter().filter_map(sse::Event::message).collect()
        } else {
            serde_json::from_slice(&self.body).into_iter().collect()
        }
    }

    /// The JSON-RPC response among the messages, or null if there is none.
    pub fn response(&self) -> Value {
        let is_response = |message: &Value| message.get("result").or_else(|| message.get("error")).is_some();
        self.messages().into_iter().find(is_response).unwrap_or_default()
    }

    /// The code of the JSON-RPC error, if the response is one.
    pub fn error_code(&self) -> Option<i64> {
        self.response().pointer("/error/code")?.as_i64()
    }

    /// The text of a tool's result, if the response is one.
    pub fn tool_text(&self) -> Option<String> {
        Some(self.response().pointer("/result/content/0/text")?.as_str()?.to_owned())
    }

    /// This answer as an error, for a call that needs another one.
    pub fn unexpected(&self) -> ClientError {
        ClientError::Unexpected { status: self.status, body: self.text() }
    }
}
