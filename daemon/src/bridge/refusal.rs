//! Pure: what a bridge answers where it has no answer of the server's: HTTP status and JSON-RPC code, in one table of
//! its own, since a bridge is a server towards its gateway and no part of it.

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;

use super::{
    outcome::NotBegun,
    peer::{NotSent, Unreached},
};
use crate::{
    jsonrpc::{Invalid, reply},
    metrics::TargetLimit,
};

/// Why there is no answer of the server's.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum Refusal {
    /// The body is no message.
    #[error("{0}")]
    NotAMessage(String),
    /// The body is not JSON.
    #[error("Parse error")]
    Syntax,
    /// The body is too large, or broke off.
    #[error("the body is over the limit, or broke off")]
    Body,
    /// No `Mcp-Session-Id`.
    #[error("Mcp-Session-Id is missing")]
    MissingSession,
    /// One that is unknown, or whose server has ended.
    #[error("Session not found")]
    UnknownSession,
    /// `initialize` within a session.
    #[error("initialize within a session")]
    SessionOnInitialize,
    /// An HTTP method that an MCP endpoint does not have.
    #[error("use POST, GET or DELETE")]
    Method,
    /// The server is not there.
    #[error(transparent)]
    Unreached(#[from] Unreached),
    /// The request could not begin.
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
    /// The message did not go out.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// `initialize` was not answered in time.
    #[error("the server did not answer initialize in time")]
    Silent,
    /// `initialize` was answered with this error object.
    #[error("{0}")]
    Server(Box<RawValue>),
    /// The random number generator failed.
    #[error("no random number")]
    Random,
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Syntax(_) => Self::Syntax,
            Invalid::Batch | Invalid::Shape | Invalid::Id => Self::NotAMessage(invalid.to_string()),
        }
    }
}

impl Refusal {
    /// The HTTP status. 404 says that the session is gone, and nothing else (2025-11-25, session management 3).
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotAMessage(_)
            | Self::Syntax
            | Self::MissingSession
            | Self::SessionOnInitialize
            | Self::NotBegun(NotBegun::Duplicate) => StatusCode::BAD_REQUEST,
            Self::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnknownSession => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unreached(Unreached::TooMany(_))
            | Self::NotBegun(NotBegun::TooMany | NotBegun::Subscribed(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreached(Unreached::Spawn(_) | Unreached::Stream(_)) | Self::NotSent(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::NotBegun(NotBegun::Over(_)) | Self::Server(_) => StatusCode::OK,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::Random => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The limit that it was refused for, where it was for one.
    pub(super) fn limit(&self) -> Option<TargetLimit> {
        match self {
            Self::Unreached(Unreached::TooMany(_)) => Some(TargetLimit::Processes),
            Self::NotBegun(NotBegun::TooMany) => Some(TargetLimit::InFlight),
            Self::NotBegun(NotBegun::Subscribed(_)) => Some(TargetLimit::Subscriptions),
            Self::NotAMessage(_)
            | Self::Syntax
            | Self::Body
            | Self::MissingSession
            | Self::UnknownSession
            | Self::SessionOnInitialize
            | Self::Method
            | Self::Unreached(Unreached::Spawn(_) | Unreached::Stream(_))
            | Self::NotBegun(NotBegun::Duplicate | NotBegun::Over(_))
            | Self::NotSent(_)
            | Self::Silent
            | Self::Server(_)
            | Self::Random => None,
        }
    }

    fn code(&self) -> i32 {
        match self {
            Self::Syntax => -32700,
            Self::UnknownSession => -32001,
            Self::NotAMessage(_)
            | Self::Body
            | Self::MissingSession
            | Self::SessionOnInitialize
            | Self::Method
            | Self::NotBegun(NotBegun::Duplicate) => -32600,
            Self::Unreached(_)
            | Self::NotBegun(NotBegun::TooMany | NotBegun::Subscribed(_) | NotBegun::Over(_))
            | Self::NotSent(_)
            | Self::Silent
            | Self::Server(_)
            | Self::Random => -32603,
        }
    }

    /// The JSON-RPC error, with the id of the request where it is known.
    pub(super) fn body(&self, id: Option<&[u8]>) -> Bytes {
        if let Self::Server(error) = self {
            let (start, id) = (br#"{"jsonrpc":"2.0","id":"#.as_ref(), id.unwrap_or(b"null"));
            return Bytes::from([start, id, br#","error":"#, error.get().as_bytes(), b"}"].concat());
        }
        reply::error(id, self.code(), &self.to_string(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::subscriptions::Full, *};

    #[test]
    fn a_servers_own_error_passes_as_it_was_written() {
        let raw =
            RawValue::from_string(r#"{"code":-32602,"message":"no","data":{"x":1.0}}"#.to_owned()).unwrap();
        let body = Refusal::Server(raw).body(Some(b"\"a\""));
        assert_eq!(
            body,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no","data":{"x":1.0}}}"#
        );
    }

    #[test]
    fn what_is_refused_for_want_of_room_is_503_and_says_of_which() {
        for (refusal, limit) in [
            (Refusal::Unreached(Unreached::TooMany(64)), TargetLimit::Processes),
            (Refusal::NotBegun(NotBegun::TooMany), TargetLimit::InFlight),
            (Refusal::NotBegun(NotBegun::Subscribed(Full)), TargetLimit::Subscriptions),
        ] {
            assert_eq!((refusal.limit(), refusal.status()), (Some(limit), StatusCode::SERVICE_UNAVAILABLE));
        }
        assert_eq!(Refusal::NotBegun(NotBegun::Duplicate).limit(), None);
    }

    #[test]
    fn only_a_session_that_is_gone_is_404() {
        assert_eq!(Refusal::UnknownSession.status(), StatusCode::NOT_FOUND);
        for other in [
            Refusal::Unreached(Unreached::Spawn("x".to_owned())),
            Refusal::NotBegun(NotBegun::Over("x".to_owned())),
            Refusal::NotSent(NotSent::Gone),
        ] {
            assert_ne!(other.status(), StatusCode::NOT_FOUND, "{other}");
            let body: serde_json::Value = serde_json::from_slice(&other.body(Some(b"7"))).unwrap();
            assert_eq!((&body["id"], &body["error"]["code"]), (&7.into(), &(-32603).into()));
        }
    }
}
