//! One request to a target and the head of its answer. Does not read the answer itself.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    Target, Wire,
    body::Outgoing,
    outcome::{Class, classify, forgot_session},
};
use crate::fault::{Fault, TargetFailure};

/// The most that is read of a refusal.
const REFUSAL_BYTES: usize = 64 << 10;
/// How long a refusal's body may take.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// An answer whose head has arrived.
#[derive(Debug)]
pub struct Answer {
    /// Its headers.
    pub headers: HeaderMap,
    /// JSON, or an event stream.
    pub events: bool,
    /// What is still to come.
    pub body: Incoming,
}

/// Why there is no answer to relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The target forgot the session.
    Lost,
    /// It answered a JSON-RPC error, under an HTTP status of its own.
    Error(Bytes),
    /// It failed.
    Failure(TargetFailure),
}

impl From<TargetFailure> for NoAnswer {
    fn from(failure: TargetFailure) -> Self {
        Self::Failure(failure)
    }
}

impl NoAnswer {
    /// As a failure, for requests of our own.
    pub fn failure(self) -> TargetFailure {
        match self {
            Self::Lost => TargetFailure::Protocol("it forgot the session"),
            Self::Error(body) => TargetFailure::Refused(error_message(&body).unwrap_or_default()),
            Self::Failure(failure) => failure,
        }
    }
}

/// POSTs a request and waits for the head of its answer. The caller bounds the wait.
///
/// # Errors
/// [`NoAnswer`].
pub async fn exchange(target: &Target, wire: &Wire, body: Outgoing) -> Result<Answer, NoAnswer> {
    let response = target.post(wire, body).await?;
    let (head, body) = response.into_parts();
    match classify(head.status, &head.headers) {
        Class::Json => Ok(Answer { headers: head.headers, events: false, body }),
        Class::Events => Ok(Answer { headers: head.headers, events: true, body }),
        Class::Failure(failure) => Err(NoAnswer::Failure(failure)),
        Class::Refusal(status) => Err(Box::pin(refused(status, body, wire)).await),
    }
}

/// Takes up an event stream behind the event `last`, and waits for its head. The caller bounds the wait.
///
/// # Errors
/// [`NoAnswer`].
pub async fn resume(target: &Target, wire: &Wire, last: Option<&Bytes>) -> Result<Answer, NoAnswer> {
    let response = target.get(wire, last).await?;
    let (head, body) = response.into_parts();
    match classify(head.status, &head.headers) {
        Class::Events => Ok(Answer { headers: head.headers, events: true, body }),
        Class::Json => Err(TargetFailure::Protocol("JSON where a GET asked for an event stream").into()),
        Class::Failure(failure) => Err(failure.into()),
        Class::Refusal(status) => Err(refused(status, body, wire).await),
    }
}

async fn refused(status: StatusCode, body: Incoming, wire: &Wire) -> NoAnswer {
    let reading = timeout(REFUSAL_TIME, Limited::new(body, REFUSAL_BYTES).collect());
    let body = match reading.await {
        Ok(Ok(body)) => body.to_bytes(),
        // What it said beside the status is lost; the status still counts.
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    if wire.id.is_some() && forgot_session(status, &body) {
        return NoAnswer::Lost;
    }
    if error_message(&body).is_some() {
        return NoAnswer::Error(body);
    }
    NoAnswer::Failure(TargetFailure::Status(status.as_u16()))
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorObject,
}

/// The parts of a JSON-RPC error that decide.
#[derive(Debug, Deserialize)]
pub struct ErrorObject {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
}

/// Reads a JSON-RPC error out of a body.
pub fn error_object(body: &[u8]) -> Option<ErrorObject> {
    serde_json::from_slice::<ErrorBody>(body).ok().map(|body| body.error)
}

fn error_message(body: &[u8]) -> Option<String> {
    error_object(body).map(|error| error.message.chars().take(200).collect())
}

/// What a client is told of a failed call to `target`.
pub fn fault(target: &Target, failure: TargetFailure) -> Fault {
    Fault::Target { target: target.alias().to_owned(), failure }
}
