//! Ties a relayed stream to the connection that reads it. A client that goes away cancels nothing by that (2025-11-25,
//! transports): the stream runs on without it, bounded, and is there when the client comes back.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use http::Response;
use tokio::{runtime::Handle, time::timeout};

use super::{
    event_response,
    events::{Chunk, Events, Next},
};
use crate::{body::Answer as Body, session::posts::Post};

/// How long a stream that has ended is kept for a client that has not read its end.
const KEPT: Duration = Duration::from_secs(60);

/// A stream that a connection reads.
struct Attached(Option<Events>);

/// The answer whose body is this stream.
pub(super) fn respond(events: Events) -> Response<Body> {
    let late = Arc::clone(&events.forward.late);
    let chunks = stream::unfold((Attached(Some(events)), true), |(mut attached, more)| async move {
        if !more {
            return None;
        }
        let events = attached.0.as_mut()?;
        match events.next().await {
            Next::Write(chunk) => Some((Chunk::Ok(chunk), (attached, true))),
            Next::Rest(chunk) => Some((Chunk::Ok(chunk), (attached, false))),
            // What runs on is begun when this is dropped.
            Next::Taken => None,
            Next::End => {
                attached.finish();
                None
            }
        }
    });
    event_response(Body::chunks(Box::pin(chunks), None).failing(late))
}

impl Attached {
    /// The stream has been written to its end.
    fn finish(&mut self) {
        if let Some(events) = self.0.take()
            && let Some(post) = events.client.kept()
        {
            post.outbox.close();
            events.session().channel().posts.close(post.number);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if self.0.as_ref().is_some_and(Events::ended) {
            return self.finish();
        }
        let Some(events) = self.0.take() else { return };
        let Some(post) = events.client.kept().map(Arc::clone) else { return };
        let session = events.session();
        events.client.lost(&session);
        // A runtime that is ending runs nothing any more, and nobody comes back to it.
        if Handle::try_current().is_ok() {
            let sessions = Arc::clone(&events.forward.sessions);
            let sessions_of = Arc::clone(&sessions);
            let tasks = sessions.tasks().clone();
            sessions.spawn(async move {
                run_on(events).await;
                // Its end is a use: what ran until now was not idle.
                session.touch(sessions_of.now());
                post.outbox.close();
                keep(&post, &session.ended, &tasks.drain).await;
                session.channel().posts.close(post.number);
            });
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
            Next::End => return,
        }
    }
}

async fn keep(
    post: &Post,
    ended: &tokio_util::sync::CancellationToken,
    drain: &tokio_util::sync::CancellationToken,
) {
    let over = async {
        tokio::select! {
            () = post.given_up.cancelled() => {}
            () = ended.cancelled() => {}
            () = drain.cancelled() => {}
        }
    };
    let kept = timeout(KEPT, over).await;
    tracing::trace!(to_the_end = kept.is_err(), "a stream is forgotten");
}
