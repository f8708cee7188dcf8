//! Follows what other replicas do to the sessions that are held here, by the store's watch. Writes nothing.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::{Session, table::Sessions};
use crate::store::Change;

/// Runs until the drain.
pub(super) async fn watch(sessions: Arc<Sessions>, mut changes: broadcast::Receiver<Change>) {
    loop {
        let change = tokio::select! {
            () = sessions.tasks.drain.cancelled() => return,
            change = changes.recv() => change,
        };
        match change {
            Ok(change) => sessions.follow(change).await,
            Err(RecvError::Lagged(_)) => {
                for session in sessions.all() {
                    sessions.read_again(&session).await;
                }
            }
            Err(RecvError::Closed) => return,
        }
    }
}

impl Sessions {
    async fn follow(self: &Arc<Self>, change: Change) {
        match change {
            Change::Removed(key) => {
                if let Some(session) = self.held(key) {
                    self.ended_elsewhere(&session);
                }
            }
            Change::Written(key, revision) => {
                let held = self.held(key);
                if let Some(session) = held.filter(|session| session.stored().revision.0 < revision.0) {
                    self.read_again(&session).await;
                }
            }
        }
    }

    pub(super) async fn read_again(self: &Arc<Self>, session: &Arc<Session>) {
        match self.store.get(session.key).await {
            Ok(Some(stored)) => session.adopt(stored),
            Ok(None) => self.ended_elsewhere(session),
            Err(error) => tracing::warn!(session = %session.key, %error, "a session could not be read again"),
        }
    }
}
