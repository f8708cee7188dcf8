//! Pure: the one table from what went wrong to HTTP status, JSON-RPC code, blame and metric label.
//!
//! To a legacy client 404 means that a session, or a target's session, is gone, and nothing else. What a target did
//! wrong is a JSON-RPC error in a 200: clients of some SDKs tear their whole session down on any other status.

mod text;

use http::StatusCode;

use crate::{jsonrpc::Invalid, target::credentials::Trouble};

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
    /// An answer in a batch that broke off, or is too large to be held until the others are there.
    BatchAnswer,
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
        /// Whether the request may have run before that was known: then it is never repeated.
        ran: bool,
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
            Self::BatchAnswer => (S::OK, code::INTERNAL, Us, "batch_answer"),
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
            Self::Credentials(_) => "target_credentials",
            Self::Protocol(_) => "target_protocol",
            Self::Refused(_) => "target_refused",
        }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
