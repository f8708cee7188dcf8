//! Relays a JSON answer. A small one is read whole, so that it leaves in one write and its end is certain; a large
//! one streams through.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::Response;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::{Forward, json_response, pause::Clock};
use crate::{
    body::{Answer as Body, Chunks, Late},
    fault::Fault,
    target::exchange::Answer,
};

/// Answers up to this size are read whole.
const WHOLE: usize = 64 << 10;
/// The same, where it speaks of tasks.
const WHOLE_WITH_TASKS: usize = 4 << 20;

pub(super) async fn relay(mut forward: Box<Forward>, mut answer: Answer) -> Result<Response<Body>, Fault> {
    forward.call.no_stream();
    let length = answer.body.size_hint().exact();
    let mut read = BytesMut::new();
    // Ids of tasks are ours on the client's side, wherever in the answer they stand.
    let most = if forward.tasks { WHOLE_WITH_TASKS } else { WHOLE };
    while length.is_none_or(|length| length <= most as u64) && read.len() <= most {
        let Some(piece) = chunk(&mut forward, &mut answer.body).await? else {
            return whole(&mut forward, read.freeze()).await;
        };
        if read.is_empty() && answer.body.is_end_stream() {
            // Nearly always: one piece, passed on as it is.
            return whole(&mut forward, piece).await;
        }
        read.extend_from_slice(&piece);
        forward.held.hold(read.len() as u64).inspect_err(|fault| forward.gave_up(fault))?;
    }
    let late = Late::default();
    let chunks = rest(forward, answer.body, read.freeze(), Arc::clone(&late));
    Ok(json_response(Body::chunks(chunks, length).failing(late)))
}

/// An answer that is there to its end.
async fn whole(forward: &mut Forward, bytes: Bytes) -> Result<Response<Body>, Fault> {
    forward.call.answered();
    if bytes.is_empty() {
        return Err(forward.failed("an empty answer"));
    }
    let answer = forward.settle(bytes).await?;
    Ok(json_response(Body::whole(forward.exposed(&answer))))
}

/// What was read, and then the rest as it comes.
fn rest(forward: Box<Forward>, body: Incoming, read: Bytes, late: Late) -> Chunks {
    let first = stream::iter((!read.is_empty()).then_some(Ok(read)));
    let more = stream::unfold(Some((forward, body, late)), |state| async {
        let (mut forward, mut body, late) = state?;
        // What was read whole has left.
        forward.held.release();
        match chunk(&mut forward, &mut body).await {
            Ok(Some(data)) => Some((Ok(data), Some((forward, body, late)))),
            Ok(None) => {
                forward.call.answered();
                None
            }
            // The head is gone: to break off is the only way left to say so.
            Err(fault) => {
                let error = io::Error::other(fault.message());
                late.get_or_init(|| fault);
                Some((Err(error), None))
            }
        }
    });
    Box::pin(first.chain(more))
}

/// The next piece of the answer, or what ends it.
async fn chunk(forward: &mut Forward, body: &mut Incoming) -> Result<Option<Bytes>, Fault> {
    loop {
        // As where an answer's head is waited for: the clock may stand meanwhile.
        let resumes = forward.pause.resumes();
        let stands = forward.pause.clock() == Clock::Stands;
        let deadline = forward.deadline(forward.sent);
        let frame = tokio::select! {
            biased;
            ended = &mut forward.call.ended => return Err(ended.unwrap_or(Fault::ShuttingDown)),
            frame = timeout_at(deadline, body.frame()) => match frame {
                Ok(frame) => frame,
                Err(_) if Instant::now() < forward.deadline(forward.sent) => continue,
                Err(_) => return Err(forward.too_late()),
            },
            () = resumes, if stands => continue,
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
