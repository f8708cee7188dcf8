//! Relays a JSON answer. A small one is read whole, so that it leaves in one write and its end is certain; a large
//! one streams through.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::Response;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout_at;

use super::{Forward, json_response};
use crate::{
    body::Answer as Body,
    fault::Fault,
    target::{
        exchange::{Answer, error_object},
        outcome::error_forgot_session,
    },
};

/// Answers up to this size are read whole.
const WHOLE: u64 = 64 << 10;

pub(super) async fn relay(mut forward: Forward, answer: Answer) -> Result<Response<Body>, Fault> {
    let hint = answer.body.size_hint();
    if hint.exact().is_none_or(|length| length > WHOLE) {
        let length = hint.exact();
        let chunks = stream::unfold(Some((forward, answer.body)), |state| async {
            let (mut forward, mut body) = state?;
            match chunk(&mut forward, &mut body).await {
                Ok(Some(data)) => Some((Ok(data), Some((forward, body)))),
                Ok(None) => None,
                // The head is gone: to break off is the only way left to say so.
                Err(fault) => Some((Err(io::Error::other(fault.message())), None)),
            }
        });
        return Ok(json_response(Body::chunks(Box::pin(chunks), length)));
    }
    let bytes = whole(&mut forward, answer.body).await?;
    // Errors are rare and small; only they are looked into.
    if memchr::memmem::find(&bytes, br#""error""#).is_some()
        && let Some(error) = error_object(&bytes)
        && forward.open.wire.id.is_some()
        && error_forgot_session(error.code, &error.message)
    {
        return Err(forward.lost().await);
    }
    Ok(json_response(Body::whole(bytes)))
}

async fn whole(forward: &mut Forward, mut body: Incoming) -> Result<Bytes, Fault> {
    let Some(first) = chunk(forward, &mut body).await? else { return Err(forward.failed("an empty answer")) };
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut all = BytesMut::from(first.as_ref());
    while let Some(more) = chunk(forward, &mut body).await? {
        all.extend_from_slice(&more);
    }
    Ok(all.freeze())
}

/// The next piece of the answer, or what ends it.
async fn chunk(forward: &mut Forward, body: &mut Incoming) -> Result<Option<Bytes>, Fault> {
    let deadline = forward.deadline(forward.started);
    loop {
        let frame = tokio::select! {
            biased;
            frame = timeout_at(deadline, body.frame()) => frame.map_err(|_| forward.too_late())?,
            ended = &mut forward.call.ended => return Err(ended.unwrap_or(Fault::ShuttingDown)),
        };
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(forward.failed("an answer that breaks off")),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                // Trailers and empty frames carry nothing of the answer.
                Ok(_) | Err(_) => {}
            },
        }
    }
}
