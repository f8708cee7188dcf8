//! Pure: what a target's HTTP answer means, before its body is relayed.

use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};

use crate::fault::TargetFailure;

/// What the status and the content type of an answer to a request say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// One JSON document.
    Json,
    /// An event stream.
    Events,
    /// A refusal whose body may be a JSON-RPC error, or may speak of the session.
    Refusal(StatusCode),
    /// No answer that MCP knows.
    Failure(TargetFailure),
}

/// Classifies the head of an answer to a request.
pub fn classify(status: StatusCode, headers: &HeaderMap) -> Class {
    if status == StatusCode::OK {
        let kind = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
        let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        return if is(b"application/json") {
            Class::Json
        } else if is(b"text/event-stream") {
            Class::Events
        } else {
            Class::Failure(TargetFailure::Protocol("a content type that is neither JSON nor an event stream"))
        };
    }
    if status.is_success() {
        return Class::Failure(TargetFailure::Protocol("a request was accepted without an answer"));
    }
    if status.is_redirection() {
        return Class::Failure(TargetFailure::Redirect);
    }
    Class::Refusal(status)
}

/// What servers say when they do not know a session; see the facts on targets, §6.4. Lower case.
const SESSION_TEXTS: [&str; 9] = [
    "no valid session id",
    "session not found",
    "session expired",
    "session terminated",
    "session has expired",
    "unknown session",
    "invalid session",
    "session does not exist",
    "server not initialized",
];

/// The JSON-RPC codes that such texts come with.
const SESSION_CODES: [i64; 3] = [-32000, -32001, -32600];

/// Whether a refusal says that the target forgot the session that we named.
///
/// A 404 says so alone (2025-11-25, transports, session management 3); a 400 does with one of the texts.
pub fn forgot_session(status: StatusCode, body: &[u8]) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::BAD_REQUEST => speaks_of_session(&String::from_utf8_lossy(body)),
        _ => false,
    }
}

/// Whether an answered JSON-RPC error says that the target forgot the session.
pub fn error_forgot_session(code: i64, message: &str) -> bool {
    SESSION_CODES.contains(&code) && speaks_of_session(message)
}

fn speaks_of_session(text: &str) -> bool {
    let text = text.to_lowercase();
    SESSION_TEXTS.iter().any(|known| text.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())])
    }

    #[test]
    fn only_200_with_json_or_events_is_an_answer() {
        assert_eq!(classify(StatusCode::OK, &head("application/json; charset=utf-8")), Class::Json);
        assert_eq!(classify(StatusCode::OK, &head("text/event-stream")), Class::Events);
        assert!(matches!(classify(StatusCode::OK, &head("text/html")), Class::Failure(_)));
        assert!(matches!(classify(StatusCode::ACCEPTED, &head("application/json")), Class::Failure(_)));
        let redirect = classify(StatusCode::TEMPORARY_REDIRECT, &HeaderMap::new());
        assert_eq!(redirect, Class::Failure(TargetFailure::Redirect));
        let refusal = classify(StatusCode::NOT_FOUND, &HeaderMap::new());
        assert_eq!(refusal, Class::Refusal(StatusCode::NOT_FOUND));
    }

    #[test]
    fn a_lost_session_is_known_by_404_or_by_what_servers_say() {
        assert!(forgot_session(StatusCode::NOT_FOUND, b""));
        let said = br#"{"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
        assert!(forgot_session(StatusCode::BAD_REQUEST, said));
        assert!(!forgot_session(StatusCode::BAD_REQUEST, b"missing argument session_name"));
        assert!(!forgot_session(StatusCode::INTERNAL_SERVER_ERROR, said));
        assert!(error_forgot_session(-32001, "Session not found"));
        assert!(!error_forgot_session(-32602, "Session not found"));
        assert!(!error_forgot_session(-32001, "Request timed out"));
    }
}
