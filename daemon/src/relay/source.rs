//! Where a call's answer comes from: an answer whose head is waited for, its stream, the stream taken up again behind a
//! break, or a JSON document that came late. Reads only; judges nothing.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{Pending, turn::turn};
use crate::{
    session::targets::TargetSession,
    target::exchange::{Answer, NoAnswer, resume},
};

/// The largest JSON answer that is relayed as an event, since its stream was opened before it came.
const LATE_BYTES: usize = 8 << 20;
/// How often a stream that ends early is taken up again without a message in between.
const MOST_RESUMES: u32 = 5;
/// Before a stream is taken up again, where the target does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The longest that a target may have us wait.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Where the answer comes from.
pub(super) enum Source {
    /// The head of the answer has not come yet.
    Head(Pending),
    /// An event stream.
    Body(Incoming),
    /// A JSON answer that came after the stream was opened, as far as it was read.
    Json(Incoming, BytesMut),
    /// Nothing more will come.
    Ended,
}

/// What came.
pub(super) enum More {
    Head(Result<Answer, NoAnswer>),
    Data(Bytes),
    /// A late JSON answer, so many bytes of it as yet.
    Part(usize),
    /// The same, to its end.
    Whole(Bytes),
    /// A late JSON answer that has none.
    Broken,
    End,
}

impl Source {
    /// Cancel-safe: what is dropped while pending has taken nothing.
    pub(super) async fn more(&mut self) -> More {
        match self {
            Self::Head(pending) => More::Head(pending.await),
            Self::Body(body) => match body.frame().await {
                Some(Ok(frame)) => More::Data(frame.into_data().unwrap_or_default()),
                Some(Err(_)) | None => More::End,
            },
            Self::Json(body, read) => match body.frame().await {
                Some(Ok(frame)) => {
                    read.extend_from_slice(&frame.into_data().unwrap_or_default());
                    if read.len() > LATE_BYTES { More::Broken } else { More::Part(read.len()) }
                }
                Some(Err(_)) => More::Broken,
                None => More::Whole(read.split().freeze()),
            },
            Self::Ended => More::End,
        }
    }

    /// The next chunk of the stream if it is ready. The connection hands one over each time that it runs, so it is let
    /// run.
    pub(super) async fn ready(&mut self) -> Option<Bytes> {
        let Self::Body(body) = self else { return None };
        turn().await;
        let frame = body.frame().now_or_never()??.ok()?;
        Some(frame.into_data().unwrap_or_default())
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self, Self::Ended)
    }
}

/// What is needed to take a target's stream up again (2025-11-25, transports, resumability and redelivery).
#[derive(Debug, Default)]
pub(super) struct Resume {
    last: Option<Bytes>,
    retry: Option<Duration>,
    tried: u32,
}

impl Resume {
    /// Notes what an event says of itself.
    pub(super) fn note(&mut self, id: Option<&Bytes>, retry: Option<u64>, message: bool) {
        if let Some(id) = id {
            self.last = Some(Bytes::copy_from_slice(id));
        }
        if let Some(retry) = retry {
            self.retry = Some(Duration::from_millis(retry).min(LONGEST_RETRY));
        }
        if message {
            self.tried = 0;
        }
    }

    /// How long to wait before it is taken up again; none where it cannot be: no event had an id, or it was tried too
    /// often.
    pub(super) fn wait(&self) -> Option<Duration> {
        (self.last.is_some() && self.tried < MOST_RESUMES).then(|| self.retry.unwrap_or(RETRY))
    }

    /// The stream again, behind its last event.
    pub(super) fn again(
        &mut self,
        open: &std::sync::Arc<TargetSession>,
        wire: crate::target::Wire,
    ) -> Source {
        self.tried += 1;
        let (open, last) = (std::sync::Arc::clone(open), self.last.clone());
        let wait = self.retry.unwrap_or(RETRY);
        Source::Head(Box::pin(async move {
            // A session that is gone has no stream to wait for, and the request then says so.
            drop(timeout(wait, open.gone.cancelled()).await);
            resume(&open.target, &wire, last.as_ref()).await
        }))
    }
}
