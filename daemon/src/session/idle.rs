//! The idle timeout over a store that several replicas share: each notes its uses in the record, seldom, and a session
//! that seems unused is removed only if nobody wrote its record meanwhile (DESIGN §3.2). When is decided in `state.rs`.

use std::sync::Arc;

use mooring_runtime::Timestamp;

use super::{
    Session,
    amend::ATTEMPTS,
    state::{Step, step},
    table::Sessions,
};
use crate::{
    fault::EndReason,
    store::{Deleted, StoreError, Stored, Written},
};

/// What an attempt to remove a record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// We removed it.
    Ours,
    /// It was gone.
    Gone,
    /// It is used, here or elsewhere, and stays.
    InUse,
}

impl Sessions {
    /// Writes into the record that the session was used at `used`, so that no other replica takes it for idle. Where it
    /// cannot be written it is tried again a quarter of the timeout later.
    pub(super) async fn note_use(self: &Arc<Self>, session: &Session, used: Timestamp) {
        for _ in 0..ATTEMPTS {
            let current = session.stored();
            // Another replica noted a later one.
            let Some(next) = current.record.used_at(used) else { return };
            let next = Arc::new(next);
            match self.store.compare_and_set(session.key, Some(current.revision), Arc::clone(&next)).await {
                Ok(Written::Stored(revision)) => {
                    session.adopt(Stored { record: next, revision });
                    return;
                }
                Ok(Written::Conflict(Some(newer))) => session.adopt(newer),
                // It has ended; the watch tells.
                Ok(Written::Conflict(None)) => return,
                Err(error) => {
                    tracing::warn!(session = %session.key, %error, "a session's use could not be stored");
                    return;
                }
            }
        }
    }

    /// Removes the record of an idle session, unless it was used after all, or is by what another replica wrote.
    pub(super) async fn delete_unused(&self, session: &Session) -> Result<Removal, StoreError> {
        if step(session.facts(), self.now()) != Step::End(EndReason::Idle) {
            return Ok(Removal::InUse);
        }
        self.delete_unchanged(session).await
    }

    /// Removes the record if it is still the one that is known here.
    async fn delete_unchanged(&self, session: &Session) -> Result<Removal, StoreError> {
        match self.store.compare_and_delete(session.key, session.stored().revision).await? {
            Deleted::Removed => Ok(Removal::Ours),
            Deleted::Absent => Ok(Removal::Gone),
            Deleted::Conflict(newer) => {
                session.adopt(newer);
                Ok(Removal::InUse)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gateway_config, opening, shared};

    #[tokio::test]
    async fn of_a_use_elsewhere_and_an_end_here_the_one_that_is_written_first_holds() {
        let gateway = crate::gateway::Gateway::start(
            gateway_config(),
            crate::config::secrets::Secrets::default(),
            shared(),
        );
        let sessions = &gateway.sessions;
        let key = sessions.create(opening()).await.unwrap().key();
        let (session, before) = (sessions.held(key).unwrap(), sessions.held(key).unwrap().stored());
        // Nothing else runs until the next line but one waits: no watch has told of it.
        let used = before.record.used.plus(std::time::Duration::from_secs(1));
        let next = Arc::new(before.record.used_at(used).unwrap());
        sessions.store.compare_and_set(key, Some(before.revision), next).await.unwrap();
        assert_eq!(sessions.delete_unchanged(&session).await, Ok(Removal::InUse));
        assert_eq!(session.facts().last_used, used, "the use there is a use here");
        assert_eq!(sessions.delete_unchanged(&session).await, Ok(Removal::Ours));
        assert_eq!(sessions.delete_unchanged(&session).await, Ok(Removal::Gone));
    }

    #[tokio::test]
    async fn a_call_whose_client_left_and_a_request_that_waits_for_the_client_are_not_idle() {
        let gateway = crate::gateway::Gateway::start(
            gateway_config(),
            crate::config::secrets::Secrets::default(),
            shared(),
        );
        let opening =
            crate::session::table::Opening { idle: Some(std::time::Duration::from_secs(60)), ..opening() };
        let key = gateway.sessions.create(opening).await.unwrap().key();
        let session = gateway.sessions.held(key).unwrap();
        let busy = || session.facts().idle.unwrap().in_flight;
        assert!(!busy());
        let of = crate::testing::target_session("a");
        let beginning = crate::session::calls::Beginning {
            id: b"1",
            target: &of.target,
            clock: &Arc::default(),
            streams: false,
            token: None,
        };
        let call = crate::session::calls::Call::begin(&session, beginning).unwrap();
        assert!(busy());
        drop(call);
        assert!(!busy());
        let ask = crate::session::asks::Ask {
            of,
            id: bytes::Bytes::from_static(b"1"),
            token: None,
            closed: tokio_util::sync::CancellationToken::new(),
        };
        let asked = session.channel().asks.open(7, ask).unwrap();
        assert!(busy());
        session.channel().asks.close(asked).unwrap();
        assert!(!busy());
    }
}
