//! Streams whose answer is written, kept a while for a client that did not get it.
//!
//! That a connection is gone is often seen only by a write to it that is lost, and a stream's last write is its answer.
//! Bounded over all sessions in number, bytes and time; knows nothing of HTTP.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use mooring_runtime::Timestamp;
use parking_lot::Mutex;

use super::{Session, posts::Post};

/// How long one is kept, at most, while others follow it; until the next sweep where none does.
const KEPT: Duration = Duration::from_secs(60);
/// How many are kept, of all sessions together.
const MOST_STREAMS: usize = 16_384;
/// What they may hold together.
const MOST_BYTES: usize = 64 << 20;

/// The finished streams of all sessions, oldest first.
#[derive(Debug, Default)]
pub struct Finished(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    streams: VecDeque<Stream>,
    bytes: usize,
}

#[derive(Debug)]
struct Stream {
    until: Timestamp,
    bytes: usize,
    session: Weak<Session>,
    number: u32,
}

impl Finished {
    /// Nothing will be written to `post` any more: it is kept from now on, and the oldest beyond the bounds are not.
    pub fn keep(&self, session: &Arc<Session>, post: &Post, now: Timestamp) {
        // Before its end is told: a reader that leaves by that must not find it among those under way.
        let kept = session.channel().posts.finish(post.number);
        post.outbox.close();
        if !kept {
            return;
        }
        let stream = Stream {
            until: now.plus(KEPT),
            bytes: post.outbox.bytes(),
            session: Arc::downgrade(session),
            number: post.number,
        };
        let mut queue = self.0.lock();
        queue.bytes += stream.bytes;
        queue.streams.push_back(stream);
        queue.forget(now);
    }

    /// Forgets those whose time is over.
    pub fn sweep(&self, now: Timestamp) {
        self.0.lock().forget(now);
    }
}

impl Queue {
    fn forget(&mut self, now: Timestamp) {
        let beyond = |queue: &Self, oldest: &Stream| {
            oldest.until <= now || queue.streams.len() > MOST_STREAMS || queue.bytes > MOST_BYTES
        };
        while let Some(oldest) = self.streams.front().filter(|oldest| beyond(self, oldest)) {
            let (number, session) = (oldest.number, oldest.session.upgrade());
            self.bytes -= oldest.bytes;
            self.streams.pop_front();
            if let Some(session) = session {
                session.channel().posts.close(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::testing::session;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn finished(session: &Arc<Session>, kept: &Finished, bytes: usize, now: Timestamp) -> u32 {
        let (post, _reader) = session.channel().posts.open();
        post.outbox.push(Bytes::from(vec![b'x'; bytes]));
        kept.keep(session, &post, now);
        post.number
    }

    fn held(session: &Session, number: u32) -> bool {
        session.channel().posts.take(number).is_some()
    }

    #[test]
    fn a_finished_stream_is_kept_for_its_time_and_no_longer() {
        let (session, kept) = (session(), Finished::default());
        let number = finished(&session, &kept, 10, NOW);
        kept.sweep(NOW.plus(KEPT.mul_f32(0.99)));
        let (post, _reader) = session.channel().posts.take(number).unwrap();
        assert_eq!((post.outbox.read(0).messages.len(), post.outbox.read(0).closed), (1, true));
        kept.sweep(NOW.plus(KEPT));
        assert!(!held(&session, number));
        assert_eq!(kept.0.lock().bytes, 0);
    }

    #[test]
    fn of_all_sessions_together_the_oldest_go_where_they_hold_too_much() {
        let kept = Finished::default();
        let sessions = [session(), session()];
        let big = MOST_BYTES / 4;
        let numbers: Vec<u32> = (0..5).map(|n| finished(&sessions[n % 2], &kept, big, NOW)).collect();
        let there: Vec<bool> =
            numbers.iter().enumerate().map(|(n, number)| held(&sessions[n % 2], *number)).collect();
        assert_eq!(there, [false, true, true, true, true]);
    }

    #[test]
    fn of_too_many_the_oldest_goes_and_a_session_that_is_gone_is_in_nobodys_way() {
        let (first, kept) = (session(), Finished::default());
        let number = finished(&first, &kept, 1, NOW);
        for _ in 0..MOST_STREAMS - 1 {
            finished(&session(), &kept, 1, NOW);
        }
        assert!(held(&first, number));
        finished(&session(), &kept, 1, NOW);
        assert!(!held(&first, number));
        assert_eq!(kept.0.lock().streams.len(), MOST_STREAMS);
    }
}
