//! GET: the stream on which the client hears of changes. No resumption yet, so its events carry no ids.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use mooring_runtime::Tasks;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::{
    body::Answer,
    catalog::{kind, merge::Marks, view::View},
    edge,
    fault::Fault,
    jsonrpc::{reply, sse},
    relay::{SILENCE, event_response},
    session::Session,
};

/// An open stream. Its queue is one mark for each kind of list: the one that the client was last told of. Changes that
/// come while a write is under way are one change, and none is lost.
struct Listening {
    session: Arc<Session>,
    /// Held for as long as the stream is open, so that the view does not end under it.
    view: Arc<View>,
    changes: watch::Receiver<u64>,
    /// Fires when the session ends, or when a newer stream takes its place.
    over: CancellationToken,
    tasks: Tasks,
    /// The lists that were last told of on this stream. What the session has seen grows by its lists alone: a
    /// notification that was written may never have been read.
    told: Marks,
    begun: bool,
}

pub(super) async fn get(context: &mut Context<'_>) -> Result<Response<Answer>, Fault> {
    edge::check_accept(&context.head.method, &context.head.headers)?;
    let session = context.session().await?;
    let view = context.gateway.view_of(&session);
    let listening = Listening {
        changes: view.changes(),
        view,
        over: session.take_stream(),
        told: session.seen.marks(),
        session,
        tasks: context.gateway.shared.tasks.clone(),
        begun: false,
    };
    let chunks = stream::unfold(listening, |mut listening| async {
        let chunk = listening.next().await?;
        Some((Ok::<_, io::Error>(chunk), listening))
    });
    Ok(event_response(Answer::chunks(Box::pin(chunks), None)))
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            // At once, so that the head leaves and proxies see a stream.
            self.begun = true;
            return Some(sse::KEEP_ALIVE);
        }
        loop {
            self.changes.mark_unchanged();
            if let Some(news) = self.news() {
                return Some(news);
            }
            let changed = timeout(SILENCE, self.changes.changed());
            let changed = tokio::select! {
                biased;
                () = self.over.cancelled() => return None,
                // A client whose stream ends opens it again, at another replica.
                () = self.tasks.drain.cancelled() => return None,
                changed = changed => changed,
            };
            match changed {
                Ok(Ok(())) => {}
                // The gateway is gone.
                Ok(Err(_)) => return None,
                Err(_) => return Some(sse::KEEP_ALIVE),
            }
        }
    }

    /// What the client was neither shown nor told of yet.
    fn news(&mut self) -> Option<Bytes> {
        let merged = self.view.merged();
        let kinds = merged.changes_since(&self.session.seen.marks(), &self.told, None);
        if kinds.is_empty() {
            return None;
        }
        let marks = merged.marks(None);
        for kind in &kinds {
            self.told.set(*kind, *marks.get(*kind));
        }
        let messages = kind::notifications(&kinds);
        let messages = messages.iter().map(|method| sse::message(&reply::notification(method)));
        Some(Bytes::from(messages.collect::<Vec<_>>().concat()))
    }
}
