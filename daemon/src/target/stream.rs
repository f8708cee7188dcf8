//! Event streams of a target outside a client's call: its GET stream, and what it asks of us on any stream.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{
    Target, Wire,
    body::Outgoing,
    outcome::{Class, classify},
};
use crate::{
    fault::TargetFailure,
    jsonrpc::{Kind, Message, reply, sse::Splitter},
};

/// The largest event that we hold of a stream that carries notifications.
const EVENT_BYTES: usize = 1 << 20;
/// The same of one in this process, which has what it asks of clients nowhere else to say: as large as on a call's stream.
const BRIDGED_EVENT_BYTES: usize = 16 << 20;
/// How long an answer of ours to a target's request may take to be taken.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// A GET stream that is open.
#[derive(Debug)]
pub struct Stream {
    body: Incoming,
    splitter: Splitter,
    last: Option<Bytes>,
}

/// Opens the GET stream of `wire`, behind the event `last` where there is one; `None` where the target offers none. The caller bounds the wait.
///
/// To offer none is a target's right, and it says so with 405, or with 404 where it has no route for GET. That 404 is
/// not told apart from a forgotten session's; the next request on the session tells.
///
/// # Errors
/// [`TargetFailure`].
pub async fn open(
    target: &Target,
    wire: &Wire,
    last: Option<&Bytes>,
) -> Result<Option<Stream>, TargetFailure> {
    let response = target.get(wire, last).await?;
    if matches!(response.status(), StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND) {
        return Ok(None);
    }
    match classify(response.status(), response.headers()) {
        Class::Events => {
            let most = if target.is_bridged() { BRIDGED_EVENT_BYTES } else { EVENT_BYTES };
            Ok(Some(Stream { body: response.into_body(), splitter: Splitter::new(most), last: None }))
        }
        Class::Refusal(status) => Err(TargetFailure::Status(status.as_u16())),
        Class::Json => Err(TargetFailure::Protocol("JSON where a GET asked for an event stream")),
        Class::Failure(failure) => Err(failure),
    }
}

impl Stream {
    /// The id of the last event that had one: where the stream can be taken up again.
    pub fn last_id(&self) -> Option<Bytes> {
        self.last.clone()
    }

    /// The next message, or `None` where the stream has ended or broken off.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            while let Some(event) = self.splitter.next_event() {
                if event.id.is_some() {
                    self.last.clone_from(&event.id);
                }
                if let Ok(message) = Message::parse(event.data) {
                    return Some(message);
                }
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data: Bytes = frame.ok()?.into_data().unwrap_or_default();
                    self.splitter.push(&data).ok()?;
                }
                None if self.splitter.finish() => {}
                None => return None,
            }
        }
    }
}

/// Answers what a target asks of us: `ping` as the protocol demands, anything else with "method not found", since
/// no target is announced any capability of a client yet.
pub async fn answer_request(target: &Target, wire: &Wire, id: &[u8], method: &str) {
    let answer = match method {
        "ping" => reply::result(id, b"{}"),
        _ => reply::error(Some(id), -32601, "Method not found", None),
    };
    send_answer(target, wire, answer).await;
}

/// Posts an answer to a request of the target's, within a bound; it may have gone meanwhile.
pub async fn send_answer(target: &Target, wire: &Wire, answer: Bytes) {
    match timeout(ANSWER_TIME, target.post(wire, Outgoing::from(answer))).await {
        Ok(Ok(_)) => {}
        Ok(Err(failure)) => tracing::debug!(target = target.alias(), %failure, "answer not taken"),
        Err(_) => tracing::debug!(target = target.alias(), "answer not taken in time"),
    }
}

/// Answers a message of a GET stream where it wants an answer; gives back the method of a notification.
pub async fn attend(target: &Target, wire: &Wire, message: &Message) -> Option<String> {
    match &message.kind {
        Kind::Request { id, method, .. } => {
            answer_request(target, wire, id, method.as_str()).await;
            None
        }
        Kind::Notification { method, .. } => Some(method.as_str().to_owned()),
        Kind::Response { .. } => None,
    }
}
