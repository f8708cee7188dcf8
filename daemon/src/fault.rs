//! Pure: the one table from what went wrong to HTTP status, JSON-RPC code, blame and metric label.
//!
//! To a legacy client 404 means that a session, or a target's session, is gone, and nothing else. What a target did
//! wrong is a JSON-RPC error in a 200: clients of some SDKs tear their whole session down on any other status.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{jsonrpc::Invalid, target::credentials::Trouble, version};

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The caller must send something else.
    Client,
    /// A target failed.
    Target,
    /// We did.
    Us,
    /// The store of session records did.
    Store,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The client sent DELETE.
    Deleted,
    /// The absolute timeout.
    Expired,
    /// Every target session it used was lost, and nobody came back.
    TargetsLost,
    /// Another replica, or the store, ended it.
    Removed,
    /// Its gateway was deleted.
    GatewayDeleted,
}

/// Everything a request can be refused or fail for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The body is not JSON.
    Syntax,
    /// The body is JSON, but no message; the text says how.
    NotAMessage(String),
    /// No `Mcp-Session-Id` on anything but `initialize`.
    MissingSession,
    /// Unknown, expired, ended or somebody else's: one answer for all.
    UnknownSession,
    /// `initialize` that names a session already.
    SessionOnInitialize,
    /// `initialize` without what it must have.
    BadInitialize(&'static str),
    /// `MCP-Protocol-Version` that we do not speak, or two that differ.
    UnsupportedVersion,
    /// The id of a request that still runs in this session.
    DuplicateId,
    /// A method that this gateway does not serve.
    MethodNotFound,
    /// Parameters that the method cannot take.
    InvalidParams(String),
    /// An `Accept` that takes none of our answers.
    NotAcceptable,
    /// A `Content-Type` other than JSON.
    UnsupportedMediaType,
    /// A body over the limit, in bytes.
    BodyTooLarge(u64),
    /// A body that did not arrive in time, or broke off.
    BodyIncomplete,
    /// An `Origin` that may not call.
    ForbiddenOrigin,
    /// A `Host` that is not ours.
    ForbiddenHost,
    /// The client sent `notifications/cancelled`.
    Cancelled,
    /// The session ended while the request ran.
    SessionEnded(EndReason),
    /// The store cannot be asked.
    StoreAway,
    /// The store takes no more.
    StoreFull,
    /// Too many bodies are held.
    Overloaded,
    /// The daemon is shutting down.
    ShuttingDown,
    /// The target forgot the session it gave us.
    TargetSessionLost {
        /// The target's alias.
        target: String,
    },
    /// Another failure of a target.
    Target {
        /// The target's alias.
        target: String,
        /// What it did.
        failure: TargetFailure,
    },
}

/// What a target did instead of answering.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetFailure {
    /// No connection.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// An address that requests may not go to.
    #[error("is where requests may not go: {0}")]
    Forbidden(String),
    /// Silence beyond a bound, in seconds.
    #[error("did not answer within {0} s")]
    Timeout(u32),
    /// A protocol version that we do not speak.
    #[error("speaks MCP {0}, which this gateway does not")]
    UnsupportedVersion(String),
    /// A redirect, which we do not follow.
    #[error("redirects; set its URL to where it redirects to")]
    Redirect,
    /// An HTTP status that is no answer.
    #[error("answered HTTP {0}")]
    Status(u16),
    /// What it is asked with is not to be had.
    #[error("cannot be asked: {0}")]
    Credentials(#[from] Trouble),
    /// Something that is not MCP.
    #[error("answered something that is not MCP: {0}")]
    Protocol(&'static str),
    /// An error instead of a result, to a request of ours.
    #[error("refused: {0}")]
    Refused(String),
}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Syntax(error) if error.is_data() => Self::NotAMessage(error.to_string()),
            Invalid::Syntax(_) => Self::Syntax,
            Invalid::Batch | Invalid::Shape | Invalid::Id => Self::NotAMessage(invalid.to_string()),
        }
    }
}

/// JSON-RPC 2.0 §5.1 and, from -32000 down, what MCP implementations use.
mod code {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const INVALID_REQUEST: i32 = -32600;
    pub(super) const METHOD_NOT_FOUND: i32 = -32601;
    pub(super) const INVALID_PARAMS: i32 = -32602;
    pub(super) const INTERNAL: i32 = -32603;
    pub(super) const SESSION: i32 = -32001;
    pub(super) const CANCELLED: i32 = -32800;
}

impl Fault {
    /// The table.
    const fn row(&self) -> (StatusCode, i32, Blame, &'static str) {
        use Blame::{Client, Store, Target, Us};
        use StatusCode as S;
        match self {
            Self::Syntax => (S::BAD_REQUEST, code::PARSE, Client, "syntax"),
            Self::NotAMessage(_) => (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "not_a_message"),
            Self::MissingSession => (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "missing_session"),
            Self::UnknownSession => (S::NOT_FOUND, code::SESSION, Client, "unknown_session"),
            Self::SessionOnInitialize => {
                (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "session_on_initialize")
            }
            Self::BadInitialize(_) => (S::BAD_REQUEST, code::INVALID_PARAMS, Client, "bad_initialize"),
            Self::UnsupportedVersion => {
                (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "unsupported_version")
            }
            Self::DuplicateId => (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "duplicate_id"),
            Self::MethodNotFound => (S::OK, code::METHOD_NOT_FOUND, Client, "method_not_found"),
            Self::InvalidParams(_) => (S::OK, code::INVALID_PARAMS, Client, "invalid_params"),
            Self::NotAcceptable => (S::NOT_ACCEPTABLE, code::INVALID_REQUEST, Client, "not_acceptable"),
            Self::UnsupportedMediaType => {
                (S::UNSUPPORTED_MEDIA_TYPE, code::INVALID_REQUEST, Client, "unsupported_media_type")
            }
            Self::BodyTooLarge(_) => (S::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, Client, "body_too_large"),
            Self::BodyIncomplete => (S::REQUEST_TIMEOUT, code::INVALID_REQUEST, Client, "body_incomplete"),
            Self::ForbiddenOrigin => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "forbidden_origin"),
            Self::ForbiddenHost => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "forbidden_host"),
            Self::Cancelled => (S::OK, code::CANCELLED, Client, "cancelled"),
            Self::SessionEnded(_) => (S::NOT_FOUND, code::SESSION, Client, "session_ended"),
            Self::StoreAway => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Store, "store_away"),
            Self::StoreFull => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Store, "store_full"),
            Self::Overloaded => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Us, "overloaded"),
            Self::ShuttingDown => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Us, "shutting_down"),
            Self::TargetSessionLost { .. } => (S::NOT_FOUND, code::SESSION, Target, "target_session_lost"),
            Self::Target { .. } => (S::OK, code::INTERNAL, Target, "target_failed"),
        }
    }

    /// The HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.row().0
    }

    /// The JSON-RPC error code.
    pub const fn code(&self) -> i32 {
        self.row().1
    }

    /// Whose fault it is.
    pub const fn blame(&self) -> Blame {
        self.row().2
    }

    /// A bounded label for metrics and logs.
    pub const fn label(&self) -> &'static str {
        self.row().3
    }

    /// Seconds after which it is worth trying again, where it is.
    pub const fn retry_after(&self) -> Option<u32> {
        if self.status().as_u16() == 503 { Some(1) } else { None }
    }

    /// What the caller reads.
    pub fn message(&self) -> String {
        match self {
            Self::Syntax => "the body is not JSON".to_owned(),
            Self::NotAMessage(why) => format!("the body is not a message: {why}"),
            Self::MissingSession => "Missing required Mcp-Session-Id header".to_owned(),
            Self::UnknownSession => "Session not found or expired".to_owned(),
            Self::SessionOnInitialize => {
                "initialize begins a session; send it without Mcp-Session-Id".to_owned()
            }
            Self::BadInitialize(what) => format!("initialize: {what}"),
            Self::UnsupportedVersion => format!("MCP-Protocol-Version must be one of {}", version::list()),
            Self::DuplicateId => "a request with this id is still running in this session".to_owned(),
            Self::MethodNotFound => "Method not found".to_owned(),
            Self::InvalidParams(why) => why.clone(),
            Self::NotAcceptable => {
                "Accept must include application/json, and for GET text/event-stream".to_owned()
            }
            Self::UnsupportedMediaType => "Content-Type must be application/json".to_owned(),
            Self::BodyTooLarge(limit) => format!("the body is larger than {limit} bytes"),
            Self::BodyIncomplete => "the body did not arrive whole and in time".to_owned(),
            Self::ForbiddenOrigin => "this Origin may not call; see endpoint.allowedOrigins".to_owned(),
            Self::ForbiddenHost => "this Host is not served here; see endpoint.allowedHosts".to_owned(),
            Self::Cancelled => "Request cancelled".to_owned(),
            Self::SessionEnded(reason) => format!("the session ended: {}", reason.label()),
            Self::StoreAway => "the session store cannot be reached".to_owned(),
            Self::StoreFull => "the session store takes no more sessions".to_owned(),
            Self::Overloaded => "too many large requests at once".to_owned(),
            Self::ShuttingDown => "this replica is shutting down".to_owned(),
            Self::TargetSessionLost { target } => {
                format!("target {target} lost its session; initialize again to go on with it")
            }
            Self::Target { target, failure } => format!("target {target} {failure}"),
        }
    }

    /// What the caller's code reads.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::TargetSessionLost { target } => Some(json!({"target": target, "reason": self.label()})),
            Self::Target { target, failure } => Some(json!({"target": target, "reason": failure.label()})),
            Self::SessionEnded(reason) => Some(json!({"reason": reason.label()})),
            Self::Syntax
            | Self::NotAMessage(_)
            | Self::MissingSession
            | Self::UnknownSession
            | Self::SessionOnInitialize
            | Self::BadInitialize(_)
            | Self::UnsupportedVersion
            | Self::DuplicateId
            | Self::MethodNotFound
            | Self::InvalidParams(_)
            | Self::NotAcceptable
            | Self::UnsupportedMediaType
            | Self::BodyTooLarge(_)
            | Self::BodyIncomplete
            | Self::ForbiddenOrigin
            | Self::ForbiddenHost
            | Self::Cancelled
            | Self::StoreAway
            | Self::StoreFull
            | Self::Overloaded
            | Self::ShuttingDown => None,
        }
    }
}

impl EndReason {
    /// Every reason, for metrics.
    pub const ALL: [Self; 5] =
        [Self::Deleted, Self::Expired, Self::TargetsLost, Self::Removed, Self::GatewayDeleted];

    /// A bounded label for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Expired => "expired",
            Self::TargetsLost => "targets_lost",
            Self::Removed => "removed",
            Self::GatewayDeleted => "gateway_deleted",
        }
    }
}

impl TargetFailure {
    /// A bounded label for metrics, logs and `error.data.reason`.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "target_unreachable",
            Self::Forbidden(_) => "target_forbidden",
            Self::Timeout(_) => "target_timeout",
            Self::UnsupportedVersion(_) => "target_unsupported_version",
            Self::Redirect => "target_redirect",
            Self::Status(_) => "target_status",
            Self::Credentials(_) => "target_credentials",
            Self::Protocol(_) => "target_protocol",
            Self::Refused(_) => "target_refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_client_gets_404_only_where_a_session_is_gone_and_never_with_an_unknown_method() {
        let gone = [
            Fault::UnknownSession,
            Fault::SessionEnded(EndReason::Expired),
            Fault::TargetSessionLost { target: "a".to_owned() },
        ];
        for fault in gone {
            assert_eq!((fault.status().as_u16(), fault.code()), (404, -32001));
        }
        assert_eq!((Fault::MethodNotFound.status().as_u16(), Fault::MethodNotFound.code()), (200, -32601));
    }

    #[test]
    fn a_store_that_cannot_be_asked_is_503_with_a_time_to_come_back() {
        for fault in [Fault::StoreAway, Fault::StoreFull] {
            assert_eq!((fault.status().as_u16(), fault.blame()), (503, Blame::Store));
            assert!(fault.retry_after().is_some());
        }
    }

    #[test]
    fn no_code_is_one_that_only_the_modern_era_has() {
        for fault in [Fault::MissingSession, Fault::UnsupportedVersion, Fault::Syntax, Fault::UnknownSession]
        {
            assert!(!(-32099..=-32020).contains(&fault.code()), "{fault:?}");
        }
    }
}
