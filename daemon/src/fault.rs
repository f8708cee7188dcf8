//! Pure: the one table from what went wrong to HTTP status, JSON-RPC code, blame and metric label.
//!
//! To a legacy client 404 means that a session, or a target's session, is gone, and nothing else. What a target did
//! wrong is a JSON-RPC error in a 200: clients of some SDKs tear their whole session down on any other status.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{jsonrpc::Invalid, version};

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
    /// The provider of the caller's tokens did.
    Provider,
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
    /// The idle timeout.
    Idle,
    /// Another replica, or the store, ended it.
    Removed,
    /// Its gateway was deleted.
    GatewayDeleted,
    /// The configuration denies its owner, or ends sessions as old as it.
    Administrator,
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
    /// An answer to something that was never asked.
    UnknownAnswer,
    /// A stream that is taken up again and is not here any more.
    StreamGone,
    /// The id of a request that still runs in this session.
    DuplicateId,
    /// A method that this gateway does not serve.
    MethodNotFound,
    /// Parameters that the method cannot take.
    InvalidParams(String),
    /// A resource that no target of the session has.
    ResourceNotFound(String),
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
    /// No bearer token where one is needed.
    MissingToken,
    /// An `Authorization` header that cannot be read.
    MalformedAuthorization,
    /// A bearer token that is not taken; the text goes on from "the token".
    InvalidToken(&'static str),
    /// A token without a scope that callers must have.
    InsufficientScope,
    /// A known caller that may not call; the text says why.
    CallerNotAllowed(&'static str),
    /// A caller that is denied by name.
    CallerDenied,
    /// A token cannot be verified, since its provider gave no keys yet.
    KeysAway,
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
    /// As many requests are in flight in this daemon as may be: so many.
    TooManyRequests(u32),
    /// As many requests are in flight in this session as may be: so many.
    TooManyInSession(u32),
    /// As many event streams are open in this session as may be: so many.
    TooManyStreams(u32),
    /// The principal has as many sessions as it may have: so many.
    TooManySessions(u32),
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
    pub(super) const RESOURCE_NOT_FOUND: i32 = -32002;
    pub(super) const SESSION: i32 = -32001;
    /// More than this caller may have at once. Within what MCP leaves without a meaning: -32000 to -32019.
    pub(super) const LIMIT: i32 = -32005;
    pub(super) const CANCELLED: i32 = -32800;
}

impl Fault {
    /// The table.
    const fn row(&self) -> (StatusCode, i32, Blame, &'static str) {
        use Blame::{Client, Provider, Store, Target, Us};
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
            Self::UnknownAnswer => (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "unknown_answer"),
            Self::StreamGone => (S::OK, code::INTERNAL, Us, "stream_gone"),
            Self::DuplicateId => (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "duplicate_id"),
            Self::MethodNotFound => (S::OK, code::METHOD_NOT_FOUND, Client, "method_not_found"),
            Self::InvalidParams(_) => (S::OK, code::INVALID_PARAMS, Client, "invalid_params"),
            Self::ResourceNotFound(_) => (S::OK, code::RESOURCE_NOT_FOUND, Client, "resource_not_found"),
            Self::NotAcceptable => (S::NOT_ACCEPTABLE, code::INVALID_REQUEST, Client, "not_acceptable"),
            Self::UnsupportedMediaType => {
                (S::UNSUPPORTED_MEDIA_TYPE, code::INVALID_REQUEST, Client, "unsupported_media_type")
            }
            Self::BodyTooLarge(_) => (S::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST, Client, "body_too_large"),
            Self::BodyIncomplete => (S::REQUEST_TIMEOUT, code::INVALID_REQUEST, Client, "body_incomplete"),
            Self::ForbiddenOrigin => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "forbidden_origin"),
            Self::ForbiddenHost => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "forbidden_host"),
            Self::MissingToken => (S::UNAUTHORIZED, code::INVALID_REQUEST, Client, "missing_token"),
            Self::MalformedAuthorization => {
                (S::BAD_REQUEST, code::INVALID_REQUEST, Client, "malformed_authorization")
            }
            Self::InvalidToken(_) => (S::UNAUTHORIZED, code::INVALID_REQUEST, Client, "invalid_token"),
            Self::InsufficientScope => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "insufficient_scope"),
            Self::CallerNotAllowed(_) => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "caller_not_allowed"),
            Self::CallerDenied => (S::FORBIDDEN, code::INVALID_REQUEST, Client, "caller_denied"),
            Self::KeysAway => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Provider, "keys_away"),
            Self::Cancelled => (S::OK, code::CANCELLED, Client, "cancelled"),
            Self::SessionEnded(_) => (S::NOT_FOUND, code::SESSION, Client, "session_ended"),
            Self::StoreAway => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Store, "store_away"),
            Self::StoreFull => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Store, "store_full"),
            Self::Overloaded => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Us, "overloaded"),
            // Another replica may have room, so it is no fault of the caller's, who may have sent this one alone.
            Self::TooManyRequests(_) => (S::SERVICE_UNAVAILABLE, code::INTERNAL, Us, "too_many_requests"),
            Self::TooManyInSession(_) => (S::TOO_MANY_REQUESTS, code::LIMIT, Client, "too_many_in_session"),
            Self::TooManyStreams(_) => (S::TOO_MANY_REQUESTS, code::LIMIT, Client, "too_many_streams"),
            Self::TooManySessions(_) => (S::TOO_MANY_REQUESTS, code::LIMIT, Client, "too_many_sessions"),
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

    /// For a refusal that `WWW-Authenticate` goes with (RFC 6750 §3.1): its `error`; none where no token came, since
    /// then there is nothing wrong with one.
    pub const fn bearer_error(&self) -> Option<Option<&'static str>> {
        if matches!(self, Self::MissingToken) {
            Some(None)
        } else if matches!(self, Self::MalformedAuthorization) {
            Some(Some("invalid_request"))
        } else if matches!(self, Self::InvalidToken(_)) {
            Some(Some("invalid_token"))
        } else if matches!(self, Self::InsufficientScope) {
            Some(Some("insufficient_scope"))
        } else {
            None
        }
    }

    /// Seconds after which it is worth trying again, where it is.
    pub const fn retry_after(&self) -> Option<u32> {
        if matches!(self.status().as_u16(), 429 | 503) { Some(1) } else { None }
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
            Self::UnknownAnswer => "no request of this id was ever sent in this session".to_owned(),
            Self::StreamGone => "the stream is not held any more, and its answer is lost".to_owned(),
            Self::DuplicateId => "a request with this id is still running in this session".to_owned(),
            Self::MethodNotFound => "Method not found".to_owned(),
            Self::InvalidParams(why) => why.clone(),
            Self::ResourceNotFound(_) => "Resource not found".to_owned(),
            Self::NotAcceptable => {
                "Accept must include application/json, and for GET text/event-stream".to_owned()
            }
            Self::UnsupportedMediaType => "Content-Type must be application/json".to_owned(),
            Self::BodyTooLarge(limit) => format!("the body is larger than {limit} bytes"),
            Self::BodyIncomplete => "the body did not arrive whole and in time".to_owned(),
            Self::ForbiddenOrigin => "this Origin may not call; see endpoint.allowedOrigins".to_owned(),
            Self::ForbiddenHost => "this Host is not served here; see endpoint.allowedHosts".to_owned(),
            Self::MissingToken => "a bearer token is needed in the Authorization header".to_owned(),
            Self::MalformedAuthorization => {
                "the Authorization header cannot be read; send it once, as Bearer and a token".to_owned()
            }
            Self::InvalidToken(why) => format!("the token {why}"),
            Self::InsufficientScope => "the token lacks a scope that is needed here".to_owned(),
            Self::CallerNotAllowed(why) => (*why).to_owned(),
            Self::CallerDenied => "this caller is denied; see auth.denied".to_owned(),
            Self::KeysAway => {
                "the token cannot be verified yet: its issuer's keys cannot be fetched".to_owned()
            }
            Self::Cancelled => "Request cancelled".to_owned(),
            Self::SessionEnded(reason) => format!("the session ended: {}", reason.label()),
            Self::StoreAway => "the session store cannot be reached".to_owned(),
            Self::StoreFull => "the session store takes no more sessions".to_owned(),
            Self::Overloaded => "too many large requests at once".to_owned(),
            Self::TooManyRequests(most) => {
                format!("{most} requests are in flight here; see limits.requestsInFlight")
            }
            Self::TooManyInSession(most) => {
                format!("{most} requests are in flight in this session; wait for an answer, or cancel one")
            }
            Self::TooManyStreams(most) => format!("{most} streams are open in this session; close one"),
            Self::TooManySessions(most) => format!("you have {most} sessions; end one with DELETE"),
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
            Self::ResourceNotFound(uri) => Some(json!({"uri": uri})),
            Self::SessionEnded(reason) => Some(json!({"reason": reason.label()})),
            Self::Syntax
            | Self::NotAMessage(_)
            | Self::MissingSession
            | Self::UnknownSession
            | Self::SessionOnInitialize
            | Self::BadInitialize(_)
            | Self::UnsupportedVersion
            | Self::UnknownAnswer
            | Self::StreamGone
            | Self::DuplicateId
            | Self::MethodNotFound
            | Self::InvalidParams(_)
            | Self::NotAcceptable
            | Self::UnsupportedMediaType
            | Self::BodyTooLarge(_)
            | Self::BodyIncomplete
            | Self::ForbiddenOrigin
            | Self::ForbiddenHost
            | Self::MissingToken
            | Self::MalformedAuthorization
            | Self::InvalidToken(_)
            | Self::InsufficientScope
            | Self::CallerNotAllowed(_)
            | Self::CallerDenied
            | Self::KeysAway
            | Self::Cancelled
            | Self::StoreAway
            | Self::StoreFull
            | Self::Overloaded
            | Self::TooManyRequests(_)
            | Self::TooManyInSession(_)
            | Self::TooManyStreams(_)
            | Self::TooManySessions(_)
            | Self::ShuttingDown => None,
        }
    }
}

impl EndReason {
    /// Every reason, for metrics.
    pub const ALL: [Self; 7] = [
        Self::Deleted,
        Self::Expired,
        Self::TargetsLost,
        Self::Idle,
        Self::Removed,
        Self::GatewayDeleted,
        Self::Administrator,
    ];

    /// A bounded label for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Expired => "expired",
            Self::TargetsLost => "targets_lost",
            Self::Idle => "idle",
            Self::Removed => "removed",
            Self::GatewayDeleted => "gateway_deleted",
            Self::Administrator => "administrator",
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
            Self::Protocol(_) => "target_protocol",
            Self::Refused(_) => "target_refused",
        }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
