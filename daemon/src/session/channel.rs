//! What goes to the client of a session beside the answers to its requests, and what comes back.
//!
//! Its streams, and the requests of targets that it is to answer. Most sessions never need one, so it is made at its first use.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    asks::Asks,
    event_id::{STANDALONE, StreamName},
    id::Key,
    outbox::Outbox,
    posts::Posts,
};
use crate::seal::{NoSeal, Seal};

/// The channel of one session on this replica.
#[derive(Debug)]
pub struct Channel {
    /// Requests of targets.
    pub asks: Asks,
    /// Streams that answer POSTs.
    pub posts: Posts,
    /// What the GET stream carries.
    pub outbox: Outbox,
    /// Whether a GET stream is open.
    pub listening: watch::Sender<bool>,
    /// Whether the client has sent `notifications/initialized`.
    pub initialized: watch::Sender<bool>,
    name: OnceLock<String>,
    stream: Mutex<Option<CancellationToken>>,
}

impl Channel {
    /// One without streams.
    pub(super) fn new(initialized: bool) -> Self {
        Self {
            asks: Asks::default(),
            posts: Posts::default(),
            outbox: Outbox::default(),
            listening: watch::Sender::new(false),
            initialized: watch::Sender::new(initialized),
            name: OnceLock::new(),
            stream: Mutex::new(None),
        }
    }

    /// Makes a new GET stream the one that gets the messages; the stream before it ends, with its token.
    #[must_use]
    pub fn take_stream(&self, ended: &CancellationToken) -> CancellationToken {
        let token = ended.child_token();
        if let Some(older) = self.stream.lock().replace(token.clone()) {
            older.cancel();
        }
        self.listening.send_replace(true);
        token
    }

    /// Notes that the GET stream of this token has ended; a newer one stays.
    pub fn leave_stream(&self, over: &CancellationToken) {
        let mut stream = self.stream.lock();
        // A newer stream has cancelled the token of this one.
        if !over.is_cancelled() {
            *stream = None;
            self.listening.send_replace(false);
        }
    }

    /// Lets go of a large message that waits for a client which has no GET stream open.
    pub fn let_go_of_large(&self) {
        if !*self.listening.borrow() {
            self.outbox.let_go(u64::MAX);
        }
    }

    /// Whether the client reads its GET stream, or may come back to it: one whose events have ids was opened before.
    pub fn may_be_read(&self) -> bool {
        self.name.get().is_some() || *self.listening.borrow()
    }

    /// What the ids of the GET stream's events begin with.
    ///
    /// # Errors
    /// [`NoSeal`].
    pub fn stream_name(&self, replica: u32, seal: &Seal, session: Key) -> Result<&str, NoSeal> {
        if let Some(name) = self.name.get() {
            return Ok(name);
        }
        let stream = StreamName { replica, number: STANDALONE, request: Vec::new() };
        let name = stream.seal(seal, session)?;
        Ok(self.name.get_or_init(|| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_get_stream_gets_the_messages_and_an_older_one_takes_nothing_with_it() {
        let (channel, ended) = (Channel::new(true), CancellationToken::new());
        let first = channel.take_stream(&ended);
        let second = channel.take_stream(&ended);
        assert!(first.is_cancelled() && !second.is_cancelled());
        channel.leave_stream(&first);
        assert!(*channel.listening.borrow());
        channel.leave_stream(&second);
        assert!(!*channel.listening.borrow());
    }
}
