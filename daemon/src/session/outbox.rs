//! What one client stream carries: its last messages, numbered, so that a client that lost its connection can be given
//! what it missed. Bounded; knows nothing of HTTP.

use std::{collections::VecDeque, sync::OnceLock};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    fault::Fault,
    jsonrpc::sse::SMALL,
    receive::{Budget, Share},
};

/// Messages that are kept.
const MOST_MESSAGES: usize = 256;
/// What they may take. The newest message is kept whatever it takes, and one that takes more than this by itself counts
/// against what all bodies may take.
const MOST_BYTES: usize = 256 << 10;

/// The messages of one stream.
#[derive(Debug, Default)]
pub struct Outbox {
    ring: Mutex<Ring>,
    /// Made for the first who follows: most streams have one reader, which needs none.
    changed: OnceLock<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct Ring {
    /// How many messages there were before those that are held.
    gone: u64,
    held: VecDeque<Held>,
    bytes: usize,
    closed: bool,
}

#[derive(Debug)]
struct Held {
    message: Bytes,
    /// Of a large one: what it holds of the budget.
    share: Option<Share>,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// The messages behind the one that it has, each with its number. What was dropped meanwhile is not among them.
    pub messages: Vec<(u64, Bytes)>,
    /// Whether nothing will come behind them.
    pub closed: bool,
}

impl Ring {
    /// Small messages are slices of buffers that may be much larger, while their own bytes are what is counted: what is
    /// kept on is copied, all into one.
    fn gather(&mut self) {
        let mut small = BytesMut::with_capacity(self.bytes.min(MOST_BYTES));
        for held in self.held.iter().filter(|held| held.message.len() <= SMALL) {
            small.extend_from_slice(&held.message);
        }
        let mut small = small.freeze();
        for held in &mut self.held {
            held.share = None;
            if held.message.len() <= SMALL {
                held.message = small.split_to(held.message.len());
            }
        }
    }
}

impl Outbox {
    /// Adds a message of our own, which is small; its number. Numbers begin at 1 and grow by 1.
    pub fn push(&self, message: Bytes) -> u64 {
        self.add(Held { message, share: None })
    }

    /// Adds a message of somebody else's; its number.
    ///
    /// # Errors
    /// [`Fault::Overloaded`], where it is large and `budget` has no room for it: then it is not added.
    pub fn take(&self, message: Bytes, budget: &Budget) -> Result<u64, Fault> {
        let share = if message.len() > MOST_BYTES {
            let mut share = budget.share();
            share.hold(message.len() as u64)?;
            Some(share)
        } else {
            None
        };
        Ok(self.add(Held { message, share }))
    }

    fn add(&self, held: Held) -> u64 {
        let mut ring = self.ring.lock();
        ring.bytes += held.message.len();
        ring.held.push_back(held);
        while ring.held.len() > 1 && (ring.held.len() > MOST_MESSAGES || ring.bytes > MOST_BYTES) {
            let dropped = ring.held.pop_front().map_or(0, |oldest| oldest.message.len());
            ring.bytes -= dropped;
            ring.gone += 1;
        }
        let number = ring.gone + ring.held.len() as u64;
        drop(ring);
        // Who begins to follow behind this finds the message in the ring.
        if let Some(changed) = self.changed.get() {
            changed.send_replace(number);
        }
        number
    }

    /// Lets go of a large message that is kept though it was written, up to number `written`: a client that lost it may not
    /// hold what others need. Then it is missing among the others.
    pub fn let_go(&self, written: u64) {
        let mut ring = self.ring.lock();
        // It displaced whatever was before it, so it is the first.
        let is_large = ring.held.front().is_some_and(|held| held.share.is_some());
        if is_large && ring.gone < written {
            let message = ring.held.pop_front();
            ring.bytes -= message.map_or(0, |held| held.message.len());
            ring.gone += 1;
        }
    }

    /// Says that no message will come any more. What it holds is counted elsewhere from now on.
    pub fn close(&self) {
        let mut ring = self.ring.lock();
        ring.closed = true;
        ring.gather();
        drop(ring);
        if let Some(changed) = self.changed.get() {
            changed.send_modify(|_| {});
        }
    }

    /// The messages behind number `after`; 0 for all that are held.
    pub fn read(&self, after: u64) -> Read {
        let ring = self.ring.lock();
        let skip = usize::try_from(after.saturating_sub(ring.gone)).unwrap_or(usize::MAX);
        let numbers = ring.gone + 1..;
        let messages = numbers.zip(ring.held.iter().map(|held| held.message.clone())).skip(skip).collect();
        Read { messages, closed: ring.closed }
    }

    /// What the messages that are held take.
    pub fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }

    /// Follows what is pushed, and the end.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.changed.get_or_init(|| watch::Sender::new(0)).subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(read: &Read) -> Vec<u64> {
        read.messages.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn small_messages_that_are_kept_on_hold_on_to_no_buffer_and_a_large_one_needs_room() {
        let (outbox, budget) = (Outbox::default(), Budget::new(MOST_BYTES as u64 + 10));
        let buffer = Bytes::from(vec![b'x'; 1 << 20]);
        let kept = Outbox::default();
        for text in [buffer.slice(..10), buffer.slice(..=SMALL), Bytes::from_static(b"last")] {
            kept.take(text, &budget).unwrap();
        }
        let before = kept.read(0).messages;
        kept.close();
        let (messages, own) = (kept.read(0).messages, [false, true, false]);
        assert_eq!(messages, before);
        for (((_, message), (_, before)), own) in messages.iter().zip(&before).zip(own) {
            assert_eq!(message.as_ptr() == before.as_ptr(), own, "{} bytes", message.len());
        }
        outbox.take(buffer.slice(..10), &budget).unwrap();
        let large = || buffer.slice(..=MOST_BYTES);
        assert_eq!(outbox.take(large(), &budget), Ok(2));
        assert_eq!(Outbox::default().take(large(), &budget), Err(Fault::Overloaded));
        assert_eq!(outbox.take(buffer.slice(..10), &budget), Ok(3), "in the place of the large one");
        assert_eq!(Outbox::default().take(large(), &budget), Ok(1));
    }

    #[test]
    fn a_reader_gets_what_lies_behind_the_message_that_it_has() {
        let outbox = Outbox::default();
        for text in ["a", "b", "c"] {
            outbox.push(Bytes::from(text));
        }
        assert_eq!(numbers(&outbox.read(0)), [1, 2, 3]);
        assert_eq!(outbox.read(2).messages, [(3, Bytes::from("c"))]);
        assert!(outbox.read(3).messages.is_empty());
        let beyond = outbox.read(u64::MAX).messages;
        assert!(beyond.is_empty(), "a number that was never given has nothing behind it");
        assert!(!outbox.read(3).closed);
        outbox.close();
        assert!(outbox.read(0).closed);
    }

    #[test]
    fn the_oldest_messages_are_dropped_and_numbers_stay() {
        let outbox = Outbox::default();
        for _ in 0..MOST_MESSAGES + 10 {
            outbox.push(Bytes::from("x"));
        }
        let read = outbox.read(0);
        assert_eq!((read.messages.len(), read.messages[0].0), (MOST_MESSAGES, 11));
        outbox.push(Bytes::from(vec![b'y'; 2 * MOST_BYTES]));
        assert_eq!(
            numbers(&outbox.read(0)),
            [MOST_MESSAGES as u64 + 11],
            "the newest is kept whatever it takes"
        );
    }

    #[test]
    fn a_large_message_that_was_written_is_let_go_with_its_share_and_nothing_else_is() {
        let (outbox, budget) = (Outbox::default(), Budget::new(MOST_BYTES as u64 + 1));
        let large = || Bytes::from(vec![b'x'; MOST_BYTES + 1]);
        let is_room = || Outbox::default().take(large(), &budget).is_ok();
        outbox.push(Bytes::from("a"));
        outbox.let_go(u64::MAX);
        assert_eq!(numbers(&outbox.read(0)), [1], "a small one stays");
        assert_eq!(outbox.take(large(), &budget), Ok(2));
        outbox.let_go(1);
        assert_eq!(numbers(&outbox.read(0)), [2], "it was not written yet");
        assert!(!is_room());
        outbox.let_go(2);
        assert_eq!((numbers(&outbox.read(0)), outbox.bytes()), (vec![], 0));
        assert!(is_room());
        assert_eq!(outbox.push(Bytes::from("b")), 3);
        outbox.let_go(3);
        assert_eq!(outbox.read(1).messages, [(3, Bytes::from("b"))], "it is missing among the others");
    }
}
