//! Messages of a server on their way to one stream: bounded, one reader, the oldest notifications give way. No IO.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Messages held for a stream that nobody reads.
const MOST: usize = 1024;
/// Bytes of them.
const MOST_BYTES: usize = 4 << 20;

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// The message.
    pub(super) message: Bytes,
    /// What it is.
    pub(super) role: Role,
}

/// What a message is to the one who waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// May be lost.
    Notification,
    /// Wants an answer under this id, and has waited since then.
    Request(Bytes, Instant),
    /// The answer that ends the stream.
    Answer,
}

/// What became of a message that was queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queued {
    /// It waits.
    Kept,
    /// It waits, and an older notification does not any more.
    Displaced,
    /// There is no room for it.
    Refused,
}

/// A queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    word: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: VecDeque<Held>,
    bytes: usize,
    /// Nothing more comes.
    closed: bool,
    /// Counts readers: the newest gets the messages.
    reader: u64,
}

/// The reader of a queue. One that is replaced by a newer one has reached its end.
#[derive(Debug)]
pub(super) struct Reader {
    queue: Arc<Queue>,
    number: u64,
}

impl Queue {
    /// Adds a message. An answer always finds room.
    pub(super) fn push(&self, message: Held) -> Queued {
        let mut state = self.state.lock();
        if state.closed {
            return Queued::Refused;
        }
        let mut queued = Queued::Kept;
        while state.is_full(message.message.len()) && message.role != Role::Answer {
            let Some(at) = state.held.iter().position(|held| held.role == Role::Notification) else {
                return Queued::Refused;
            };
            state.remove(at);
            queued = Queued::Displaced;
        }
        state.bytes += message.message.len();
        state.closed = message.role == Role::Answer;
        state.held.push_back(message);
        drop(state);
        self.word.notify_waiters();
        queued
    }

    /// Nothing more comes; what is held is still read.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.word.notify_waiters();
    }

    /// Begins to read; whoever read before has reached the end.
    pub(super) fn read(self: &Arc<Self>) -> Reader {
        let mut state = self.state.lock();
        state.reader += 1;
        let number = state.reader;
        drop(state);
        self.word.notify_waiters();
        Reader { queue: Arc::clone(self), number }
    }

    /// Takes out the requests that have waited longer than `bound` for a reader, and gives back their ids.
    pub(super) fn overdue(&self, now: Instant, bound: Duration) -> Vec<Bytes> {
        let mut state = self.state.lock();
        let mut ids = Vec::new();
        let is_overdue = |held: &Held| match &held.role {
            Role::Request(_, since) => now.saturating_duration_since(*since) >= bound,
            Role::Notification | Role::Answer => false,
        };
        while let Some(at) = state.held.iter().position(is_overdue) {
            if let Some(Held { role: Role::Request(id, _), message: _ }) = state.remove(at) {
                ids.push(id);
            }
        }
        ids
    }

    /// Since when the oldest request waits.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.state.lock().held.iter().find_map(|held| match &held.role {
            Role::Request(_, since) => Some(*since),
            Role::Notification | Role::Answer => None,
        })
    }
}

impl State {
    fn is_full(&self, more: usize) -> bool {
        self.held.len() >= MOST || (!self.held.is_empty() && self.bytes + more > MOST_BYTES)
    }

    fn remove(&mut self, at: usize) -> Option<Held> {
        let held = self.held.remove(at)?;
        self.bytes -= held.message.len();
        Some(held)
    }
}

impl Reader {
    /// The next message; none behind the last one, and where a newer reader reads.
    pub(super) async fn next(&self) -> Option<Held> {
        loop {
            let word = self.queue.word.notified();
            tokio::pin!(word);
            // Before the look, so that no word between the look and the wait is missed.
            word.as_mut().enable();
            {
                let mut state = self.queue.state.lock();
                if state.reader != self.number {
                    return None;
                }
                if let Some(held) = state.remove(0) {
                    return Some(held);
                }
                if state.closed {
                    return None;
                }
            }
            word.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(text: &'static str) -> Held {
        Held { message: Bytes::from_static(text.as_bytes()), role: Role::Notification }
    }

    fn request(id: &'static str, since: Instant) -> Held {
        Held {
            message: Bytes::from_static(b"{}"),
            role: Role::Request(Bytes::from_static(id.as_bytes()), since),
        }
    }

    #[tokio::test]
    async fn when_nobody_reads_the_oldest_notifications_give_way_and_requests_do_not() {
        let queue = Arc::new(Queue::default());
        assert_eq!(queue.push(request("1", Instant::now())), Queued::Kept);
        for _ in 1..MOST {
            assert_eq!(queue.push(notification("old")), Queued::Kept);
        }
        assert_eq!(queue.push(notification("new")), Queued::Displaced);
        let reader = queue.read();
        assert!(matches!(reader.next().await.unwrap().role, Role::Request(..)));
        for _ in 2..MOST {
            assert_eq!(reader.next().await.unwrap().message, "old");
        }
        assert_eq!(reader.next().await.unwrap().message, "new");
    }

    #[tokio::test]
    async fn large_messages_are_bounded_by_their_bytes_and_one_of_any_size_passes() {
        let queue = Queue::default();
        let large = || Held { message: Bytes::from(vec![b'x'; MOST_BYTES + 1]), role: Role::Notification };
        assert_eq!(queue.push(large()), Queued::Kept);
        assert_eq!(queue.push(large()), Queued::Displaced);
    }

    #[tokio::test]
    async fn an_answer_finds_room_and_is_the_last() {
        let queue = Arc::new(Queue::default());
        for _ in 0..MOST {
            assert_eq!(queue.push(request("1", Instant::now())), Queued::Kept);
        }
        assert_eq!(queue.push(request("2", Instant::now())), Queued::Refused);
        let answer = Held { message: Bytes::from_static(b"{}"), role: Role::Answer };
        assert_eq!(queue.push(answer.clone()), Queued::Kept);
        assert_eq!(queue.push(notification("late")), Queued::Refused);
        let reader = queue.read();
        for _ in 0..MOST {
            assert_ne!(reader.next().await.unwrap().role, Role::Answer);
        }
        assert_eq!(reader.next().await, Some(answer));
        assert_eq!(reader.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_nobody_reads_is_given_back_in_time() {
        let queue = Arc::new(Queue::default());
        let begun = Instant::now();
        queue.push(notification("stays"));
        queue.push(request("7", begun));
        let bound = Duration::from_secs(10);
        assert_eq!(queue.waiting_since(), Some(begun));
        assert!(queue.overdue(begun + bound / 2, bound).is_empty());
        assert_eq!(queue.overdue(begun + bound, bound), [Bytes::from_static(b"7")]);
        assert_eq!(queue.waiting_since(), None);
        assert_eq!(queue.read().next().await, Some(notification("stays")));
    }

    #[tokio::test]
    async fn a_newer_reader_ends_the_older_one() {
        let queue = Arc::new(Queue::default());
        let old = queue.read();
        let new = queue.read();
        queue.push(notification("one"));
        assert_eq!(old.next().await, None);
        assert_eq!(new.next().await, Some(notification("one")));
        queue.close();
        assert_eq!(new.next().await, None);
    }
}
