//! Takes up a stream that answered a POST, for a client that lost it (2025-11-25, transports, resumability and
//! redelivery): what it missed, then what comes, to the answer.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use mooring_runtime::Tasks;
use tokio::{sync::watch, time::timeout};

use super::Context;
use crate::{
    body::Answer,
    fault::Fault,
    jsonrpc::{reply, sse},
    relay::{SILENCE, event_response},
    session::{
        Session,
        event_id::Position,
        posts::{Parted, Post, Reader},
    },
};

/// A stream that was taken up.
struct Resumed {
    session: Arc<Session>,
    post: Arc<Post>,
    changes: watch::Receiver<u64>,
    /// This connection, until yet another takes it over.
    reader: Reader,
    tasks: Tasks,
    name: String,
    written: u64,
    over: bool,
}

/// The stream that `position` names. One that is not here any more has its request's error, at once.
pub(super) fn post(context: &Context<'_>, session: &Arc<Session>, position: &Position) -> Response<Answer> {
    let sessions = &context.gateway.sessions;
    let Position { stream, message } = position;
    let found = (stream.replica == sessions.replica).then(|| session.channel().posts.take(stream.number));
    let Some((post, reader)) = found.flatten() else {
        let fault = Fault::StreamGone;
        let error = reply::error(Some(&stream.request), fault.code(), &fault.message(), None);
        return event_response(Answer::whole(sse::message(&error)));
    };
    let Ok(name) = stream.seal(&sessions.seal, session.key) else {
        let error = reply::error(Some(&stream.request), -32603, "the stream cannot be named", None);
        return event_response(Answer::whole(sse::message(&error)));
    };
    // The connection that it is taken from may be stuck.
    if let Some(rest) = post.rest() {
        sessions.spawn(rest.run());
    }
    let resumed = Resumed {
        session: Arc::clone(session),
        changes: post.outbox.follow(),
        post,
        reader,
        tasks: context.gateway.shared.tasks.clone(),
        name,
        written: *message,
        over: false,
    };
    let chunks = stream::unfold(resumed, |mut resumed| async {
        let chunk = resumed.next().await?;
        Some((Ok::<_, io::Error>(chunk), resumed))
    });
    event_response(Answer::chunks(Box::pin(chunks), None))
}

impl Resumed {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        loop {
            self.changes.mark_unchanged();
            let read = self.post.outbox.read(self.written);
            let mut write = Vec::new();
            for (number, json) in read.messages {
                sse::write_id(&mut write, &self.name, number);
                sse::write_message(&mut write, &json);
                self.written = number;
            }
            self.over = read.closed;
            // Behind the read: a connection that takes it over later begins with what its client has.
            if self.post.has_parted(Some(self.reader)).is_some() {
                return None;
            }
            if !write.is_empty() {
                return Some(Bytes::from(write));
            }
            if self.over {
                return None;
            }
            // A session that ends, ends its calls, and each says so on its stream; so does one that is given up.
            let changed = tokio::select! {
                biased;
                Parted::Taken | Parted::GivenUp = self.post.parted(Some(self.reader)) => return None,
                () = self.tasks.stop.cancelled() => return None,
                changed = timeout(SILENCE, self.changes.changed()) => changed,
            };
            match changed {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(sse::KEEP_ALIVE),
            }
        }
    }
}

impl Drop for Resumed {
    fn drop(&mut self) {
        self.session.channel().posts.detach(self.post.number, self.reader);
    }
}
