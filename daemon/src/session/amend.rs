//! Changes of a session's record: read, changed by a pure function, compared and set; again where another was faster.
//!
//! Two replicas lose no change of each other (case 014). A store that is away stops no session that is held here; only its survival is at stake.

use std::sync::Arc;

use mooring_crds::config::OnSessionLoss;

use super::{
    Session,
    record::{Binding, Record},
    table::Sessions,
    targets::TargetSession,
};
use crate::{
    fault::Fault,
    store::{Stored, Written},
};

/// How often a compare-and-set is tried again after a conflict, before the store counts as away.
pub(super) const ATTEMPTS: usize = 8;

/// What came of a change.
enum Amended {
    /// It holds.
    Done,
    /// There was nothing to change.
    Nothing,
    /// The session has ended.
    Ended,
    /// Others were always faster.
    Conflicted,
}

impl Sessions {
    async fn amend(
        &self,
        session: &Session,
        what: &'static str,
        change: impl Fn(&Record) -> Option<Record> + Send,
    ) -> Amended {
        for _ in 0..ATTEMPTS {
            let current = session.stored();
            let Some(next) = change(&current.record) else { return Amended::Nothing };
            let next = Arc::new(next);
            if session.ephemeral {
                if session.keep_unstored(&current, next) {
                    return Amended::Done;
                }
                continue;
            }
            match self.store.compare_and_set(session.key, Some(current.revision), Arc::clone(&next)).await {
                Ok(Written::Stored(revision)) => {
                    session.wrote(&current, Stored { record: next, revision });
                    return Amended::Done;
                }
                Ok(Written::Conflict(Some(newer))) => session.adopt(newer),
                Ok(Written::Conflict(None)) => return Amended::Ended,
                Err(error) => {
                    tracing::warn!(session = %session.key, %error, what, "a change of a session could not be stored");
                    if session.keep_unstored(&current, next) {
                        return Amended::Done;
                    }
                }
            }
        }
        Amended::Conflicted
    }

    /// Writes a target session into the record; `false` where the record has one for this target already.
    pub(super) async fn keep(&self, session: &Session, ours: &TargetSession) -> Result<bool, Fault> {
        let (uid, binding) = (&ours.target.config.uid, ours.binding());
        match self.amend(session, "target session", |record| record.bound(uid, binding.clone())).await {
            Amended::Done => Ok(true),
            Amended::Nothing => Ok(false),
            Amended::Ended => Err(Fault::UnknownSession),
            Amended::Conflicted => Err(Fault::StoreAway),
        }
    }

    /// Notes that the target forgot `gone`. What that means to the session is the target's policy.
    pub async fn target_session_forgotten(&self, session: &Session, gone: &TargetSession) {
        // Whoever parted from it says in the record what it is to the session, or it is of no use where its target is now.
        if gone.gone.is_cancelled() {
            return;
        }
        match gone.target.config.on_session_loss {
            OnSessionLoss::Fail => self.target_session_lost(session, gone).await,
            OnSessionLoss::Reinitialize => self.target_session_gone(session, gone).await,
        }
    }

    /// Notes that the target forgot `gone`: calls to it in this session are refused from now on.
    async fn target_session_lost(&self, session: &Session, gone: &TargetSession) {
        let (uid, binding) = (&gone.target.config.uid, gone.binding());
        match self.amend(session, "lost target session", |record| record.without(uid, &binding)).await {
            Amended::Done => gone.target.metrics.lost(),
            // Noted by another call already.
            Amended::Nothing | Amended::Conflicted => {}
            Amended::Ended => return,
        }
        session.forget(gone);
        self.rearm(session.key).await;
    }

    /// Notes that the target forgot `gone`, and that the next use of the target begins a new one.
    async fn target_session_gone(&self, session: &Session, gone: &TargetSession) {
        let (uid, binding) = (&gone.target.config.uid, gone.binding());
        match self.amend(session, "renewed target session", |record| record.untied(uid, &binding)).await {
            Amended::Done => gone.target.metrics.lost(),
            Amended::Nothing | Amended::Conflicted | Amended::Ended => {}
        }
        session.forget(gone);
    }

    /// Takes a tie to the target of this uid out of the record, unless there is another one by now: the next use begins a
    /// new one.
    pub(super) async fn untie(&self, session: &Session, uid: &str, binding: &Binding) {
        match self.amend(session, "tie to a target", |record| record.untied(uid, binding)).await {
            Amended::Done | Amended::Nothing | Amended::Conflicted | Amended::Ended => {}
        }
    }

    /// Keeps the level that the client wants logs from.
    ///
    /// # Errors
    /// [`Fault::UnknownSession`], where the session has ended; [`Fault::StoreAway`].
    pub async fn set_log_level(&self, session: &Session, level: &str) -> Result<(), Fault> {
        let change = |record: &Record| {
            let known = record.log_level.as_deref() == Some(level);
            (!known).then(|| Record { log_level: Some(level.into()), ..record.clone() })
        };
        match self.amend(session, "log level", change).await {
            Amended::Done | Amended::Nothing => Ok(()),
            Amended::Ended => Err(Fault::UnknownSession),
            Amended::Conflicted => Err(Fault::StoreAway),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{
        config::secrets::Secrets, gateway::Gateway, session::record::Principal, testing, version::LATEST,
    };

    #[tokio::test]
    async fn of_two_changes_at_once_both_hold_in_a_session_that_is_not_stored() {
        let gateway = Gateway::start(testing::gateway_config(), Secrets::default(), testing::shared());
        let session = gateway.sessions.ephemeral(Principal::Anonymous, LATEST).unwrap();
        let other_is_faster = AtomicBool::new(true);
        let change = |record: &Record| {
            if other_is_faster.swap(false, Ordering::SeqCst) {
                let current = session.stored();
                let next = current.record.bound("a", Binding::Lost).unwrap();
                assert!(session.keep_unstored(&current, Arc::new(next)));
            }
            record.bound("b", Binding::Lost)
        };
        assert!(matches!(gateway.sessions.amend(&session, "a tie", change).await, Amended::Done));
        let ties: Vec<_> = session.stored().record.targets.keys().map(ToString::to_string).collect();
        assert_eq!(ties, ["a", "b"]);
    }
}
