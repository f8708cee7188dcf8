//! The sessions of a bridge by their ids, and how many servers it speaks to.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{board::Party, conversation::Conversation, queue::Queue};

/// How long a session may go unused once it has begun. A client's next word is `notifications/initialized`.
pub(super) const UNUSED: Duration = Duration::from_secs(30);

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// With whom.
    pub(super) conversation: Arc<Conversation>,
    /// Who it is there.
    pub(super) party: Party,
    /// What belongs to none of its requests.
    pub(super) stream: Arc<Queue>,
    /// Fires when anybody comes with its id.
    used: Notify,
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

impl Session {
    /// One that nobody has used yet.
    pub(super) fn new(conversation: Arc<Conversation>, party: Party, stream: Arc<Queue>) -> Self {
        Self { conversation, party, stream, used: Notify::new() }
    }

    /// Notes that somebody has its id.
    pub(super) fn touch(&self) {
        self.used.notify_one();
    }

    /// Waits until it was used or is over; `false` where neither comes in time.
    pub(super) async fn is_used(&self) -> bool {
        let word = async {
            tokio::select! {
                () = self.used.notified() => {}
                () = self.conversation.end.cancelled() => {}
            }
        };
        timeout(UNUSED, word).await.is_ok()
    }
}

impl Table {
    /// A new session under an id that nobody can guess.
    pub(super) fn insert(&self, session: Session) -> Result<(String, Arc<Session>), getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let id = format!("{:032x}", u128::from_be_bytes(random));
        let session = Arc::new(session);
        self.sessions.lock().insert(id.clone(), Arc::clone(&session));
        Ok((id, session))
    }

    /// The session of an id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.lock().get(id).cloned()
    }

    /// Ends a session, and the server that is its own.
    pub(super) fn end(&self, id: &str) {
        let Some(session) = self.sessions.lock().remove(id) else { return };
        session.conversation.part(session.party);
        if !session.conversation.is_shared() {
            session.conversation.end.cancel();
        }
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
