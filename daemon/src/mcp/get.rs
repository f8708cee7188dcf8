//! GET: the stream on which the client hears of changes. No resumption yet, so its events carry no ids.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use mooring_runtime::Tasks;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::{
    access::Access,
    auth::Caller,
    body::Answer,
    catalog::{View, merge::Merged},
    edge,
    fault::Fault,
    gateway::Gateway,
    jsonrpc::{reply, sse},
    relay::{SILENCE, event_response},
    session::Session,
};

/// An open stream. Its queue is one number: the generation that the client was last told of. Changes that come while
/// a write is under way are one change, and none is lost.
struct Changes {
    session: Arc<Session>,
    generations: watch::Receiver<u64>,
    /// Fires when the session ends, or when a newer stream takes its place.
    over: CancellationToken,
    tasks: Tasks,
    /// The generation that was last told on this stream. What the session has seen grows by its lists alone: a
    /// notification that was written may never have been read.
    told: u64,
    begun: bool,
    /// Where the caller may not see everything.
    limited: Option<Limited>,
}

/// What a caller that may not see everything sees of the list. A change of the rest is none to it (case 032).
struct Limited {
    gateway: Arc<Gateway>,
    view: Arc<View>,
    caller: Caller,
    /// The list when the client was last told, or had seen it; none where it has not seen the newest.
    shown: Option<Merged>,
}

impl Limited {
    fn of(context: &Context<'_>, session: &Session, view: &Arc<View>) -> Result<Option<Self>, Fault> {
        if context.access()?.is_unlimited() {
            return Ok(None);
        }
        let (gateway, caller) = (Arc::clone(context.gateway), context.caller()?.clone());
        let mut limited = Self { gateway, view: Arc::clone(view), caller, shown: None };
        if session.seen.load(Ordering::Relaxed) == view.generation() {
            limited.shown = Some(limited.visible());
        }
        Ok(Some(limited))
    }

    fn visible(&self) -> Merged {
        let snapshot = self.gateway.snapshot();
        let access = Access::of(&snapshot.config.access, &self.caller);
        self.view.merged().visible(&snapshot.router, &access)
    }

    /// Whether the caller would see another list than before.
    fn changed(&mut self) -> bool {
        let visible = self.visible();
        let same = self.shown.as_ref().is_some_and(|shown| shown.same_list(&visible));
        self.shown = Some(visible);
        !same
    }
}

pub(super) async fn get(context: &mut Context<'_>) -> Result<Response<Answer>, Fault> {
    edge::check_accept(&context.head.method, &context.head.headers)?;
    let session = context.session().await?;
    let view = context.gateway.view(session.version);
    let changes = Changes {
        limited: Limited::of(context, &session, &view)?,
        generations: view.generations(),
        over: session.take_stream(),
        session,
        tasks: context.gateway.shared.tasks.clone(),
        told: 0,
        begun: false,
    };
    let chunks = stream::unfold(changes, |mut changes| async {
        let chunk = changes.next().await?;
        Some((Ok::<_, io::Error>(chunk), changes))
    });
    Ok(event_response(Answer::chunks(Box::pin(chunks), None)))
}

impl Changes {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.begun {
            // At once, so that the head leaves and proxies see a stream.
            self.begun = true;
            return Some(sse::KEEP_ALIVE);
        }
        let session = Arc::clone(&self.session);
        loop {
            let known = || self.told.max(session.seen.load(Ordering::Relaxed));
            let news = self.generations.wait_for(|generation| *generation > known());
            let news = tokio::select! {
                biased;
                () = self.over.cancelled() => return None,
                // A client whose stream ends opens it again, at another replica.
                () = self.tasks.drain.cancelled() => return None,
                news = timeout(SILENCE, news) => news.map(|news| news.map(|generation| *generation)),
            };
            return match news {
                Ok(Ok(generation)) => {
                    self.told = generation;
                    if self.limited.as_mut().is_some_and(|limited| !limited.changed()) {
                        continue;
                    }
                    Some(sse::message(&reply::notification("notifications/tools/list_changed")))
                }
                // The gateway is gone.
                Ok(Err(_)) => None,
                Err(_) => Some(sse::KEEP_ALIVE),
            };
        }
    }
}
