//! Listens to what a target says in a client's session outside of calls.
//!
//! That is its GET stream, open for as long as somebody would hear it. What it says goes to one stream of the client's, and what it asks is asked.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::{Session, asking::Way, calls::To, table::Sessions, targets::TargetSession, task_ids};
use crate::{
    catalog::kind,
    jsonrpc::{Kind, Message},
    target::stream,
};

/// Before a stream that ended is opened again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause; each failure doubles it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long the first call of a target session waits for the target's stream: servers drop what they would say before.
pub(super) const LISTENED: Duration = Duration::from_secs(1);

/// What came of one stream.
enum Heard {
    /// The target offers none.
    Nothing,
    /// It ended.
    Ended,
    /// It could not be opened.
    Failed,
}

impl Session {
    /// Whether what the target says outside of calls is listened to. A bridge says all of it there that names no call, and
    /// to listen to it takes no connection.
    pub(super) fn hears(&self, open: &TargetSession) -> bool {
        self.wants_word() || open.target.is_bridged()
    }
}

impl Sessions {
    /// Begins to listen to `open`, unless that is done already or nobody would hear it.
    pub fn listen(self: &Arc<Self>, session: &Arc<Session>, open: &Arc<TargetSession>) {
        if !session.hears(open) || open.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let (sessions, session, open) = (Arc::clone(self), Arc::clone(session), Arc::clone(open));
        self.tasks.spawn(async move {
            tokio::select! {
                // What is ready of a target that was parted from is heard no more.
                biased;
                () = session.ended.cancelled() => {}
                () = open.unheard.cancelled() => {}
                // What calls that still run have a bridged server ask, it asks here alone.
                () = sessions.tasks.drain.cancelled(), if !open.target.is_bridged() => {}
                () = sessions.tasks.stop.cancelled() => {}
                () = sessions.hear(&session, &open) => {}
            }
        });
    }

    async fn hear(self: &Arc<Self>, session: &Arc<Session>, open: &Arc<TargetSession>) {
        let (mut pause, mut last) = (FIRST_PAUSE, None);
        loop {
            match self.hear_one(session, open, &mut last).await {
                Heard::Nothing => return,
                Heard::Ended => pause = FIRST_PAUSE,
                Heard::Failed => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            if self.tasks.drain.is_cancelled() || timeout(pause, open.gone.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    async fn hear_one(
        self: &Arc<Self>,
        session: &Arc<Session>,
        open: &Arc<TargetSession>,
        last: &mut Option<Bytes>,
    ) -> Heard {
        let wire = open.newest_wire();
        let opening = stream::open(&open.target, &wire, last.as_ref());
        let opened = timeout(open.target.connect_bound(), opening).await;
        open.listened.cancel();
        let mut stream = match opened {
            Ok(Ok(Some(stream))) => stream,
            Ok(Ok(None)) => return Heard::Nothing,
            Ok(Err(failure)) => {
                tracing::debug!(target = open.target.alias(), %failure, "no stream of the target's");
                return Heard::Failed;
            }
            Err(_) => return Heard::Failed,
        };
        while let Some(message) = stream.next().await {
            if open.gone.is_cancelled() {
                return Heard::Ended;
            }
            self.heard(session, open, &message).await;
        }
        *last = stream.last_id().or_else(|| last.take());
        Heard::Ended
    }

    /// Takes one message that a target said outside of calls.
    async fn heard(self: &Arc<Self>, session: &Arc<Session>, open: &Arc<TargetSession>, message: &Message) {
        match &message.kind {
            Kind::Request { .. } => drop(self.ask(session, open, message, Way::Any).await),
            // An answer to nothing that was asked on this stream.
            Kind::Response { .. } => {}
            Kind::Notification { method, params } => match method.as_str() {
                "notifications/cancelled" => self.withdrawn(session, open, params.request_id.as_ref()),
                "notifications/progress" => {
                    // Progress is a running call's or nobody's (2025-11-25, progress).
                    let token = params.progress_token.as_deref();
                    if let Some(token) = token
                        && let Some(handed) =
                            session.calls.deliver(&open.target, To::Progress(token), &message.bytes)
                    {
                        handed.clock.heard(Instant::now());
                    }
                }
                changed if kind::of_notification(changed).next().is_some() => {
                    self.hint(session, open, changed);
                }
                _ => {
                    let json = task_ids::expose(&message.bytes, open.target.alias());
                    if let Some(channel) = session.known_channel().filter(|channel| channel.may_be_read())
                        && let Err(fault) = channel.outbox.take(json, &self.budget)
                    {
                        tracing::debug!(target = open.target.alias(), fault = fault.label(), "not kept");
                    }
                }
            },
        }
    }
}
