//! The sessions of a bridge by their ids, and how many servers it speaks to.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{board::Party, conversation::Conversation, queue::Queue};

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// With whom.
    pub(super) conversation: Arc<Conversation>,
    /// Who it is there.
    pub(super) party: Party,
    /// What belongs to none of its requests.
    pub(super) stream: Arc<Queue>,
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Table {
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    conversations: watch::Sender<usize>,
}

/// Counts a conversation for as long as it lives.
#[derive(Debug)]
pub(super) struct Counted(Arc<Table>);

impl Table {
    /// A new session under an id that nobody can guess.
    pub(super) fn insert(&self, session: Session) -> Result<String, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let id = format!("{:032x}", u128::from_be_bytes(random));
        self.sessions.lock().insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    /// The session of an id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.lock().get(id).cloned()
    }

    /// Takes a session out.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.lock().remove(id)
    }

    /// Takes the sessions of a conversation out: its server has ended.
    pub(super) fn forget(&self, gone: &Arc<Conversation>) {
        self.sessions.lock().retain(|_, session| !Arc::ptr_eq(&session.conversation, gone));
    }

    /// Counts a conversation.
    pub(super) fn count(self: &Arc<Self>) -> Counted {
        self.conversations.send_modify(|count| *count += 1);
        Counted(Arc::clone(self))
    }

    /// Waits until there is no conversation.
    pub(super) async fn empty(&self) {
        // Its sender is ours: it does not go away.
        drop(self.conversations.subscribe().wait_for(|count| *count == 0).await);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.conversations.send_modify(|count| *count -= 1);
    }
}
