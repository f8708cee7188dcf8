//! What goes to the client of a session beside the answers to its requests, and what comes back.
//!
//! Its streams, and the requests of targets that it is to answer. Most sessions never need one, so it is made at its first use.

use std::sync::OnceLock;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    asks::Asks,
    event_id::{STANDALONE, StreamName},
    id::Key,
    outbox::Outbox,
    posts::Posts,
    subscribed::Subscribed,
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
    /// What the client has subscribed to.
    pub subscribed: Subscribed,
    /// Whether a GET stream is open.
    pub listening: watch::Sender<bool>,
    /// Whether the client has sent `notifications/initialized`.
    pub initialized: watch::Sender<bool>,
    name: OnceLock<String>,
    stream: Mutex<Stream>,
}

/// The GET stream: one at a time, the newest.
#[derive(Debug, Default)]
struct Stream {
    /// Fires when it ends; none where none is open.
    over: Option<CancellationToken>,
    /// The last message that any was handed.
    handed: u64,
}

impl Channel {
    /// One without streams.
    pub(super) fn new(initialized: bool) -> Self {
        Self {
            asks: Asks::default(),
            posts: Posts::default(),
            outbox: Outbox::default(),
            subscribed: Subscribed::default(),
            listening: watch::Sender::new(false),
            initialized: watch::Sender::new(initialized),
            name: OnceLock::new(),
            stream: Mutex::default(),
        }
    }

    /// Makes a new GET stream the one that gets the messages; the stream before it ends, with its token. Also the message
    /// behind which it begins: `behind`, where its client says so, else the last that a stream was handed.
    #[must_use]
    pub fn take_stream(&self, ended: &CancellationToken, behind: Option<u64>) -> (CancellationToken, u64) {
        let token = ended.child_token();
        let mut stream = self.stream.lock();
        if let Some(older) = stream.over.replace(token.clone()) {
            older.cancel();
        }
        let behind = behind.unwrap_or(stream.handed);
        // Under the lock, as where a stream leaves: what is said last is what holds.
        self.listening.send_replace(true);
        drop(stream);
        (token, behind)
    }

    /// The messages behind number `after`, each with its number, for the GET stream of this token; none where it is over.
    /// What one stream was handed, a newer one is not, unless its client asks for it.
    pub fn hand(&self, over: &CancellationToken, after: u64) -> Option<Vec<(u64, Bytes)>> {
        let mut stream = self.stream.lock();
        // Under the lock: a newer stream begins either before this or behind what is handed here.
        if over.is_cancelled() {
            return None;
        }
        let messages = self.outbox.read(after).messages;
        stream.handed = messages.last().map_or(stream.handed, |(number, _)| stream.handed.max(*number));
        Some(messages)
    }

    /// Notes that the GET stream of this token has ended; a newer one stays.
    pub fn leave_stream(&self, over: &CancellationToken) {
        let mut stream = self.stream.lock();
        // A newer stream has cancelled the token of this one.
        if !over.is_cancelled() {
            stream.over = None;
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
    use crate::receive::Budget;

    #[test]
    fn the_newest_get_stream_gets_the_messages_and_an_older_one_takes_nothing_with_it() {
        let (channel, ended) = (Channel::new(true), CancellationToken::new());
        let (first, _) = channel.take_stream(&ended, None);
        let (second, _) = channel.take_stream(&ended, None);
        assert!(first.is_cancelled() && !second.is_cancelled());
        channel.leave_stream(&first);
        assert!(*channel.listening.borrow());
        channel.leave_stream(&second);
        assert!(!*channel.listening.borrow());
    }

    #[test]
    fn a_message_is_handed_to_one_get_stream_and_to_another_only_where_its_client_asks_for_it() {
        let (channel, ended) = (Channel::new(true), CancellationToken::new());
        let say = |text: &'static str| channel.outbox.push(Bytes::from(text));
        let numbers = |over: &CancellationToken, after| {
            let messages = channel.hand(over, after)?;
            Some(messages.into_iter().map(|(number, _)| number).collect::<Vec<_>>())
        };
        say("before the first");
        let (first, behind) = channel.take_stream(&ended, None);
        assert_eq!(numbers(&first, behind), Some(vec![1]));
        say("while the second comes");
        let (second, behind) = channel.take_stream(&ended, None);
        assert_eq!(numbers(&first, 1), None, "it is over, though it was not told yet");
        assert_eq!((behind, numbers(&second, behind)), (1, Some(vec![2])));
        let (third, behind) = channel.take_stream(&ended, None);
        assert_eq!((behind, numbers(&third, behind)), (2, Some(vec![])));
        let (fourth, behind) = channel.take_stream(&ended, Some(1));
        assert_eq!(numbers(&fourth, behind), Some(vec![2]));
        ended.cancel();
        assert_eq!(numbers(&fourth, 1), None);
    }

    #[test]
    fn a_large_message_is_let_go_where_no_get_stream_is_open_that_will_write_it() {
        const LARGE: usize = 1 << 20;
        let (channel, ended) = (Channel::new(true), CancellationToken::new());
        let budget = Budget::new(LARGE as u64);
        channel.outbox.take(Bytes::from(vec![b'x'; LARGE]), &budget).unwrap();
        let (stream, _) = channel.take_stream(&ended, None);
        channel.let_go_of_large();
        assert_eq!(channel.outbox.bytes(), LARGE);
        channel.leave_stream(&stream);
        channel.let_go_of_large();
        assert_eq!(channel.outbox.bytes(), 0);
        assert!(budget.share().hold(LARGE as u64).is_ok(), "what it held is given back");
    }
}
