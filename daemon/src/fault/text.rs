//! Pure: what a caller reads of a fault, and what its code reads.

use serde_json::{Value, json};

use super::Fault;
use crate::version;

impl Fault {
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
            Self::BatchAnswer => "the answer broke off, or is too large for a batch".to_owned(),
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
            Self::TargetSessionLost { target, ran: _ } => {
                format!("target {target} lost its session; initialize again to go on with it")
            }
            Self::Target { target, failure } => format!("target {target} {failure}"),
        }
    }

    /// What the caller's code reads.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::TargetSessionLost { target, ran: _ } => {
                Some(json!({"target": target, "reason": self.label()}))
            }
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
            | Self::BatchAnswer
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
