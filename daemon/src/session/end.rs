//! The one path that every end of a session takes (DESIGN §3.5).

use std::sync::Arc;

use futures_util::future::join_all;

use super::{Session, calls::Running, reaper::Command, table::Sessions, targets::TargetSession};
use crate::{
    fault::{EndReason, Fault},
    jsonrpc::reply,
};

impl Sessions {
    /// Ends `session`: removes the record, answers what is in flight, ends its stream, says farewell to its targets.
    ///
    /// # Errors
    /// [`Fault::StoreAway`], where a client's DELETE could not be stored: the session then goes on. Any other end
    /// holds here whatever the store says, and the record is swept later.
    pub async fn end(&self, session: &Arc<Session>, reason: EndReason) -> Result<(), Fault> {
        if !session.claim_end() {
            return Ok(());
        }
        match self.store.delete(session.key).await {
            Ok(_) => {}
            Err(error) if reason == EndReason::Deleted => {
                session.unclaim_end();
                return Err(error.into());
            }
            Err(error) => {
                tracing::warn!(session = %session.key, %error, "an ended session's record is still stored");
            }
        }
        self.finish(session, reason).await;
        Ok(())
    }

    /// Ends a session whose record is gone already.
    pub(super) async fn ended_elsewhere(&self, session: &Arc<Session>, reason: EndReason) {
        if session.claim_end() {
            self.finish(session, reason).await;
        }
    }

    /// Ends all sessions.
    pub async fn end_all(&self, reason: EndReason) {
        for session in self.all() {
            // Only a client's DELETE can fail.
            if let Err(fault) = self.end(&session, reason).await {
                tracing::warn!(session = %session.key, fault = fault.label(), "a session could not be ended");
            }
        }
    }

    async fn finish(&self, session: &Arc<Session>, reason: EndReason) {
        // Claimed once, so set once.
        session.reason.get_or_init(|| reason);
        self.release(session.key);
        let running = session.calls.end_all(&Fault::SessionEnded(reason));
        session.ended.cancel();
        self.command(Command::Disarm(session.key)).await;
        self.metrics.session_ended(reason);
        tracing::info!(
            target: "audit",
            gateway = self.metrics.gateway(),
            session = %session.key,
            reason = reason.label(),
            event = "session ended"
        );
        self.farewell(session, running);
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
    pub(super) fn farewell(&self, session: &Session, running: Vec<Running>) {
        let targets = session.take_targets();
        if targets.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            join_all(targets.iter().map(|open| part(open, &running))).await;
        });
    }
}

/// Tells a target that nobody waits for its answers any more, and then that its session is over.
async fn part(open: &TargetSession, running: &[Running]) {
    let of_target = running.iter().filter(|call| call.target.config.uid == open.target.config.uid);
    join_all(of_target.map(|call| open.notify(reply::cancelled(&call.id, "the session ended")))).await;
    open.target.delete(&open.wire).await;
}
