//! GET: the stream on which the client hears of what belongs to no request of its own, and on which it takes up a stream
//! that it lost (2025-11-25, transports, listening and resumability).

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{Context, method_not_allowed, resume};
use crate::{
    access::{Access, sees},
    auth::Caller,
    body::Answer,
    catalog::{kind, merge::Marks, pages::Filter, view::View},
    edge,
    fault::Fault,
    gateway::Gateway,
    jsonrpc::{reply, sse},
    relay::{SILENCE, event_response},
    session::{
        Session,
        event_id::{Position, STANDALONE},
    },
    target::LAST_EVENT_ID,
    version::Version,
};

/// An open stream. Of lists it keeps one mark for each kind: the one that the client was last told of. Changes that come
/// while a write is under way are one change, and none is lost.
struct Listening {
    session: Arc<Session>,
    /// Held for as long as the stream is open, so that the view does not end under it.
    view: Arc<View>,
    changes: watch::Receiver<u64>,
    messages: watch::Receiver<u64>,
    /// Fires when the session ends, or when a newer stream takes its place.
    over: CancellationToken,
    /// What the ids of its events begin with; none in versions that know no ids.
    name: Option<String>,
    /// The last message that was written.
    written: u64,
    /// The lists that were last told of on this stream. What the session has seen grows by its lists alone: a
    /// notification that was written may never have been read.
    told: Marks,
    begun: bool,
    gateway: Arc<Gateway>,
    /// Who listens: a change of what it may not see is none to it (case 032).
    caller: Caller,
}

pub(super) async fn get(context: &mut Context<'_>) -> Result<Response<Answer>, Fault> {
    if !context.snapshot.streams() {
        return Ok(method_not_allowed(context));
    }
    edge::check_accept(&context.head.method, &context.head.headers)?;
    let session = context.session().await?;
    let sessions = &context.gateway.sessions;
    let last = edge::single(&context.head.headers, &LAST_EVENT_ID);
    let last = last.and_then(|text| Position::read(text, &sessions.seal, session.key));
    let here = |position: &Position| position.stream.replica == sessions.replica;
    let behind = match last {
        // It has its place already, for as long as it runs.
        Some(position) if position.stream.number != STANDALONE => {
            return Ok(resume::post(context, &session, &position));
        }
        // A stream of a process that is gone, or an id that is none of ours, starts afresh.
        Some(position) if here(&position) => Some(position.message),
        Some(_) | None => None,
    };
    context.account.place = Some(sessions.open_stream(&session)?);
    let channel = session.channel();
    let name = match session.version {
        Version::V2024_11_05 => None,
        Version::V2025_03_26 | Version::V2025_06_18 | Version::V2025_11_25 => {
            channel.stream_name(sessions.replica, &sessions.seal, session.key).ok().map(str::to_owned)
        }
    };
    let view = context.gateway.view_of(&session, context.account.started);
    let messages = channel.outbox.follow();
    let (over, written) = channel.take_stream(&session.ended, behind);
    let listening = Listening {
        changes: view.changes(),
        view,
        messages,
        over,
        name,
        written,
        told: session.seen.marks(),
        gateway: Arc::clone(context.gateway),
        caller: context.caller()?.clone(),
        begun: false,
        session: Arc::clone(&session),
    };
    // What targets say outside of calls has somewhere to go from now on.
    sessions.listen_to_all(&session, &context.snapshot.targets);
    let chunks = stream::unfold(listening, |mut listening| async {
        let chunk = listening.next().await?;
        Some((Ok::<_, io::Error>(chunk), listening))
    });
    Ok(event_response(Answer::chunks(Box::pin(chunks), None)))
}

impl Listening {
    async fn next(&mut self) -> Option<Bytes> {
        let mut write = Vec::new();
        if !self.begun {
            // At once, so that the head leaves and proxies see a stream.
            self.begun = true;
            match self.name.as_ref().filter(|_| self.session.version >= Version::V2025_11_25) {
                Some(name) => {
                    sse::write_id(&mut write, name, self.written);
                    write.extend_from_slice(b"data: \n\n");
                }
                None => write.extend_from_slice(&sse::KEEP_ALIVE),
            }
        }
        loop {
            self.messages.mark_unchanged();
            self.changes.mark_unchanged();
            let news = self.news();
            // Last, since what is handed must leave.
            self.said(&mut write)?;
            write.extend_from_slice(&news);
            if !write.is_empty() {
                return Some(Bytes::from(write));
            }
            let changed = async {
                tokio::select! {
                    changed = self.changes.changed() => changed,
                    said = self.messages.changed() => said,
                }
            };
            let changed = tokio::select! {
                biased;
                () = self.over.cancelled() => return None,
                // A client whose stream ends opens it again, at another replica.
                () = self.gateway.shared.tasks.drain.cancelled() => return None,
                changed = timeout(SILENCE, changed) => changed,
            };
            match changed {
                Ok(Ok(())) => {}
                // The gateway is gone.
                Ok(Err(_)) => return None,
                Err(_) => {
                    // Long enough for a client that lost it to have come back.
                    self.session.channel().outbox.let_go(self.written);
                    return Some(sse::KEEP_ALIVE);
                }
            }
        }
    }

    /// What targets said that the client has not read; none where this stream is over.
    fn said(&mut self, write: &mut Vec<u8>) -> Option<()> {
        for (number, json) in self.session.channel().hand(&self.over, self.written)? {
            if let Some(name) = &self.name {
                sse::write_id(write, name, number);
            }
            sse::write_message(write, &json);
            self.written = number;
        }
        Some(())
    }

    /// Lists that the client was neither shown nor told of yet.
    fn news(&mut self) -> Vec<u8> {
        let mut write = Vec::new();
        let merged = self.view.merged();
        let snapshot = self.gateway.snapshot();
        // By the newest token: the one that this stream was opened with may have said something else.
        let newest = self.session.newest_caller();
        let access = Access::of(&snapshot.config.access, newest.as_ref().unwrap_or(&self.caller));
        self.gateway.sessions.part_from_hidden(&self.session, &access);
        let visible = (!access.is_unlimited()).then(|| sees(access));
        let filter: Filter<'_> = visible.as_ref().map(|visible| visible as _);
        let kinds = merged.changes_since(&self.session.seen.marks(), &self.told, filter);
        if kinds.is_empty() {
            return write;
        }
        let marks = merged.marks(filter);
        for kind in &kinds {
            self.told.set(*kind, *marks.get(*kind));
        }
        for method in kind::notifications(&kinds) {
            sse::write_message(&mut write, &reply::notification(method));
        }
        write
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.session.channel().leave_stream(&self.over);
    }
}
