//! The one path that every end of a session takes (DESIGN §3.5).

use std::sync::Arc;

use futures_util::{
    future::join_all,
    stream::{self, StreamExt},
};
use tokio::sync::watch;

use super::{
    Session, calls::Running, idle::Removal, reaper::Command, table::Sessions, targets::TargetSession,
};
use crate::{
    fault::{EndReason, Fault},
    jsonrpc::reply,
    store::StoreError,
};

/// What an end came to: told to all who wait for it, however many want the same end.
pub(super) type Ended = watch::Receiver<Option<Result<(), NotEnded>>>;

/// Why a session did not end.
#[derive(Debug, Clone)]
pub(super) enum NotEnded {
    /// The store could not be asked.
    Store(Fault),
    /// It was to end for being idle, and is in use.
    InUse,
}

/// Who ends a session.
#[derive(Debug)]
pub(super) enum Claim {
    /// The caller does, and tells the others.
    Ours(watch::Sender<Option<Result<(), NotEnded>>>, Ended),
    /// Somebody else does, or did.
    Theirs(Ended),
}

/// Ends that run at once where all sessions end.
const AT_ONCE: usize = 64;

impl Sessions {
    /// Ends `session`: removes the record, answers what is in flight, ends its stream, says farewell to its targets.
    /// The work is a task of its own: a client that hangs up must not leave a session half ended.
    ///
    /// # Errors
    /// [`Fault::StoreAway`], where a client's DELETE could not be stored: the session then goes on. Any other end
    /// holds here whatever the store says, and the record is removed later.
    pub async fn end(self: &Arc<Self>, session: &Arc<Session>, reason: EndReason) -> Result<(), Fault> {
        loop {
            let mut ended = match session.claim_end() {
                Claim::Ours(tell, ended) => {
                    self.begin_end(session, reason, tell);
                    ended
                }
                Claim::Theirs(ended) => ended,
            };
            match ended.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Ok(()))) => return Ok(()),
                // As it should be: nothing has gone wrong.
                Ok(Some(Err(NotEnded::InUse))) if reason == EndReason::Idle => return Ok(()),
                Ok(Some(Err(NotEnded::Store(fault)))) if reason == EndReason::Deleted => {
                    return Err(fault.clone());
                }
                // What came first asked for more than this end does: that nobody uses it, or that the store says so.
                Ok(Some(Err(NotEnded::InUse | NotEnded::Store(_)))) => {}
                // The shutdown dropped the task.
                Ok(None) | Err(_) => return Err(Fault::ShuttingDown),
            }
        }
    }

    /// Ends a session whose record is gone already.
    pub(super) fn ended_elsewhere(self: &Arc<Self>, session: &Arc<Session>) {
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move { sessions.end_or_log(&session, EndReason::Removed).await });
    }

    /// Ends all sessions.
    pub async fn end_all(self: &Arc<Self>, reason: EndReason) {
        let all = stream::iter(self.all());
        all.for_each_concurrent(AT_ONCE, |session| async move { self.end_or_log(&session, reason).await })
            .await;
    }

    /// Ends those that the configuration of now revokes, each in a task of its own.
    pub(super) fn end_revoked(self: &Arc<Self>) {
        for session in self.all().into_iter().filter(|session| self.revokes(session)) {
            self.revoke(session);
        }
    }

    /// Has clients that are away not hold what others need.
    pub(super) fn let_go_of_large_messages(&self) {
        for session in self.all() {
            if let Some(channel) = session.known_channel() {
                channel.let_go_of_large();
            }
        }
    }

    /// Ends one session that the configuration revokes.
    pub(super) fn revoke(self: &Arc<Self>, session: Arc<Session>) {
        let sessions = Arc::clone(self);
        self.tasks.spawn(async move { sessions.end_or_log(&session, EndReason::Administrator).await });
    }

    /// As [`Self::end`], where nobody waits for the result.
    pub(super) async fn end_or_log(self: &Arc<Self>, session: &Arc<Session>, reason: EndReason) {
        if let Err(fault) = self.end(session, reason).await {
            tracing::warn!(session = %session.key, fault = fault.label(), "a session could not be ended");
        }
    }

    fn begin_end(
        self: &Arc<Self>,
        session: &Arc<Session>,
        reason: EndReason,
        tell: watch::Sender<Option<Result<(), NotEnded>>>,
    ) {
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move {
            let outcome = sessions.carry_out(&session, reason).await;
            let failed = outcome.is_err();
            if failed {
                session.unclaim_end();
            }
            tell.send_replace(Some(outcome));
            if failed {
                // Its time may have come, or its record have gone, while the end was claimed: both are looked at again.
                sessions.rearm(session.key).await;
                sessions.read_again(&session).await;
            }
        });
    }

    async fn carry_out(&self, session: &Session, reason: EndReason) -> Result<(), NotEnded> {
        let removed = match reason {
            EndReason::Removed => Ok(Removal::Gone),
            EndReason::Idle => self.delete_unused(session).await,
            EndReason::Deleted
            | EndReason::Expired
            | EndReason::TargetsLost
            | EndReason::GatewayDeleted
            | EndReason::Administrator => self.delete(session).await,
        };
        let (ours, still_stored) = match removed {
            Ok(Removal::Ours) => (true, false),
            Ok(Removal::Gone) => (false, false),
            Ok(Removal::InUse) => return Err(NotEnded::InUse),
            Err(error) if reason == EndReason::Deleted => return Err(NotEnded::Store(error.into())),
            Err(error) => {
                tracing::warn!(session = %session.key, %error, "an ended session's record is still stored");
                (false, true)
            }
        };
        session.reason.get_or_init(|| reason);
        // An ended session whose record could be read through again stays here, ended, until the sweep removes the
        // record. An expired record is never read through.
        if !still_stored || reason == EndReason::Expired {
            self.release(session.key);
        }
        let running = session.calls.end_all(&Fault::SessionEnded(reason));
        session.ended.cancel();
        self.command(Command::Disarm(session.key)).await;
        if ours {
            self.account(session, reason);
            self.farewell(session, running);
        } else {
            self.give_up(session, running);
        }
        Ok(())
    }

    async fn delete(&self, session: &Session) -> Result<Removal, StoreError> {
        let ours = self.store.delete(session.key).await?;
        Ok(if ours { Removal::Ours } else { Removal::Gone })
    }

    /// Removes the records of sessions that ended here while the store was away. One that was idle here, and was used
    /// elsewhere meanwhile, goes on there, and here once it is asked for.
    pub(super) async fn remove_ended(&self) -> Result<(), StoreError> {
        for (session, reason) in self.ended() {
            let removed = match reason {
                EndReason::Idle => self.delete_unused(&session).await?,
                EndReason::Deleted
                | EndReason::Expired
                | EndReason::TargetsLost
                | EndReason::Removed
                | EndReason::GatewayDeleted
                | EndReason::Administrator => self.delete(&session).await?,
            };
            self.release(session.key);
            if removed == Removal::Ours {
                self.account(&session, reason);
                self.farewell(&session, Vec::new());
            }
        }
        Ok(())
    }

    /// Counts an end. Of all replicas and all who race, only whoever removed the record does.
    fn account(&self, session: &Session, reason: EndReason) {
        self.metrics.session_ended(reason);
        tracing::info!(
            target: "audit",
            gateway = self.metrics.gateway(),
            session = %session.key,
            reason = reason.label(),
            event = "session ended"
        );
    }

    /// Answers every request in flight with `fault` and tells the targets: the shutdown's deadline has come. The
    /// sessions go on elsewhere, so nothing of theirs ends.
    pub fn end_calls(&self, fault: &Fault) {
        for session in self.all() {
            for call in session.calls.end_all(fault) {
                if let Some(open) = session.open_target(&call.target) {
                    let notice = reply::cancelled(&call.id, "the gateway is shutting down");
                    self.tasks.spawn(async move { open.notify(notice).await });
                }
            }
        }
    }

    /// Parts from the target sessions, each on its own: one that hangs must not keep the others waiting (case 010).
    /// They are those of the record, be they in use here or not; a target that is configured no more is left alone.
    fn farewell(&self, session: &Session, running: Vec<Running>) {
        let targets = session.take_targets(&self.targets.load());
        if targets.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            join_all(targets.iter().map(|open| async {
                give_up(open, &running).await;
                open.target.delete(&open.newest_wire()).await;
            }))
            .await;
        });
    }

    /// Ends a session of which nothing was stored.
    pub(super) fn part(&self, session: &Session) {
        let reason = *session.reason.get_or_init(|| EndReason::Deleted);
        session.ended.cancel();
        let running = session.calls.end_all(&Fault::SessionEnded(reason));
        self.farewell(session, running);
    }

    /// Tells the targets that nobody waits here any more. The sessions there are for whoever removed the record.
    fn give_up(&self, session: &Session, running: Vec<Running>) {
        for call in running {
            if let Some(open) = session.open_target(&call.target) {
                self.tasks.spawn(async move { give_up(&open, &[call]).await });
            }
        }
    }
}

/// Tells a target that nobody waits for its answers any more.
async fn give_up(open: &TargetSession, running: &[Running]) {
    let of_target = running.iter().filter(|call| call.target.config.uid == open.target.config.uid);
    join_all(of_target.map(|call| open.notify(reply::cancelled(&call.id, "the session ended")))).await;
}
