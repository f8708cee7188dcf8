//! A request of our own to a target, with one whole result: handshakes and lists. Never on a client's data path.

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Target, Wire,
    body::Outgoing,
    exchange::{Answer, NoAnswer, error_object, exchange},
    outcome::error_forgot_session,
    stream::answer_request,
};
use crate::{
    fault::TargetFailure,
    jsonrpc::{Kind, Message, reply, sse::Splitter},
};

/// The largest answer that we hold: a page of a list.
pub const ANSWER_BYTES: usize = 8 << 20;

/// A result and the headers that it came with.
#[derive(Debug)]
pub struct Reply {
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The `result`, raw.
    pub result: Box<RawValue>,
}

/// Asks `method` and reads the whole result. The caller bounds the wait.
///
/// # Errors
/// [`NoAnswer`]; an error that the target answered is one of them.
pub async fn ask(target: &Target, wire: &Wire, method: &str, params: &str) -> Result<Reply, NoAnswer> {
    // Where a session of ours has one request at a time, one id serves.
    ask_as(target, wire, "1", method, params).await
}

/// As [`ask`], under a request id, raw JSON, that no other request in flight in the session has.
///
/// # Errors
/// As [`ask`].
pub async fn ask_as(
    target: &Target,
    wire: &Wire,
    id: &str,
    method: &str,
    params: &str,
) -> Result<Reply, NoAnswer> {
    let body = Outgoing::from(reply::request(id, method, params));
    let Answer { headers, events, body } = exchange(target, wire, body).await?;
    let message = if events { from_events(target, wire, body).await? } else { whole(body).await? };
    let result = result_of(&message)?;
    Ok(Reply { headers, result })
}

async fn whole(body: Incoming) -> Result<Bytes, TargetFailure> {
    let collected = Limited::new(body, ANSWER_BYTES).collect().await;
    let whole =
        collected.map_err(|_| TargetFailure::Protocol("an answer that breaks off or is too large"))?;
    Ok(whole.to_bytes())
}

async fn from_events(target: &Target, wire: &Wire, mut body: Incoming) -> Result<Bytes, TargetFailure> {
    let mut splitter = Splitter::new(ANSWER_BYTES);
    loop {
        while let Some(event) = splitter.next_event() {
            let Ok(message) = Message::parse(event.data.clone()) else { continue };
            match message.kind {
                Kind::Response { .. } => return Ok(event.data),
                Kind::Request { id, method, .. } => answer_request(target, wire, &id, method.as_str()).await,
                Kind::Notification { .. } => {}
            }
        }
        match body.frame().await {
            Some(frame) => {
                let frame = frame.map_err(|_| TargetFailure::Protocol("an event stream that breaks off"))?;
                let data = frame.into_data().unwrap_or_default();
                splitter.push(&data).map_err(|_| TargetFailure::Protocol("an event that is too large"))?;
            }
            None if splitter.finish() => {}
            None => break,
        }
    }
    Err(TargetFailure::Protocol("an event stream that ends without an answer"))
}

fn result_of(message: &[u8]) -> Result<Box<RawValue>, NoAnswer> {
    #[derive(Deserialize)]
    struct Result_ {
        result: Box<RawValue>,
    }
    if let Ok(Result_ { result }) = serde_json::from_slice(message) {
        return Ok(result);
    }
    let Some(error) = error_object(message) else {
        return Err(TargetFailure::Protocol("an answer that is no JSON-RPC response").into());
    };
    if error_forgot_session(error.code, &error.message) {
        return Err(NoAnswer::Lost);
    }
    Err(NoAnswer::Error(Bytes::copy_from_slice(message)))
}
