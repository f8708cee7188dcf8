//! Ties a relayed stream to the connection that reads it. A client that goes away cancels nothing by that (2025-11-25,
//! transports): the stream runs on without it, bounded, and is there when the client comes back.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Response;
use tokio::runtime::Handle;

use super::{
    event_response,
    events::{Chunk, Events, Next},
};
use crate::{
    body::{Answer as Body, Chunks},
    session::driven::Driven,
};

/// A stream that a connection reads.
struct Attached {
    /// None once it has ended.
    events: Option<Events>,
    /// Whether this connection is to read on.
    more: bool,
}

/// The answer whose body is this stream. What is ready of it leaves with the head, in one write.
pub(super) async fn respond(events: Events) -> Response<Body> {
    let (late, kept) = (Arc::clone(&events.late), events.client.kept().cloned());
    let mut attached = Attached { events: Some(events), more: true };
    let first = attached.next().await.map(Chunk::Ok);
    let rest = stream::unfold(attached, |mut attached| async move {
        let chunk = attached.next().await?;
        Some((Chunk::Ok(chunk), attached))
    });
    let chunks: Chunks = Box::pin(stream::iter(first).chain(rest));
    let body = match kept {
        Some(post) => {
            let driven = Driven::new(chunks);
            post.driven_by(&driven);
            Body::chunks(Box::pin(stream::poll_fn(move |cx| driven.poll_next(cx))), None)
        }
        None => Body::chunks(chunks, None),
    };
    event_response(body.failing(late))
}

impl Attached {
    /// The next write; none where there is none for this connection.
    async fn next(&mut self) -> Option<Bytes> {
        let events = self.events.as_mut().filter(|_| self.more)?;
        match events.next().await {
            Next::Write(chunk) => Some(chunk),
            Next::Rest(chunk) => {
                self.more = false;
                Some(chunk)
            }
            // What runs on is begun when this is dropped.
            Next::Taken => {
                self.more = false;
                None
            }
            Next::End => {
                self.finish();
                None
            }
        }
    }

    /// The stream has been written to its end; whether its client got that, only the client knows.
    fn finish(&mut self) {
        if let Some(events) = self.events.take() {
            keep(&events);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.events.as_ref().is_some_and(Events::ended) {
            return self.finish();
        }
        let Some(events) = self.events.take() else { return };
        if events.client.kept().is_none() {
            return;
        }
        events.client.lost(&events.session());
        // A runtime that is ending runs nothing any more, and nobody comes back to it.
        if Handle::try_current().is_ok() {
            let sessions = Arc::clone(&events.forward.sessions);
            sessions.spawn(run_on(events));
        }
    }
}

/// Runs a stream to its answer, for nobody to read now.
async fn run_on(mut events: Events) {
    loop {
        match events.next().await {
            Next::Write(_) | Next::Rest(_) => {}
            // Whoever took it over reads what is kept.
            Next::Taken => events.client.detached(),
            Next::End => break,
        }
    }
    // Its end is a use: what ran until now was not idle.
    events.session().touch(events.forward.sessions.now());
    keep(&events);
}

/// Keeps a stream that has its answer, where its client may come back to it.
fn keep(events: &Events) {
    if let Some(post) = events.client.kept() {
        let sessions = &events.forward.sessions;
        sessions.finished.keep(&events.session(), post, sessions.now());
    }
}
