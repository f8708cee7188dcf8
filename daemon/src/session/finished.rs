//! Streams whose answer is written, kept a while for a client that did not get it.
//!
//! That a connection is gone is often seen only by a write to it that is lost, and a stream's last write is its answer.
//! Bounded over all sessions in number, bytes and time; knows nothing of HTTP.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
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
pub struct Finished {
    /// Some of these are no longer kept: a session that finishes many lets its own oldest go.
    oldest_first: Mutex<VecDeque<Stream>>,
    held: Arc<Held>,
}

#[derive(Debug)]
struct Stream {
    until: Timestamp,
    session: Weak<Session>,
    number: u32,
}

/// What the streams that are kept hold together: how many they are, and their bytes, in one number, so that sessions on
/// all cores have one thing to write, and nothing where one stream takes the place of one as large.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicU64);

/// What one stream holds: itself, and its bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Part(u64);

/// One stream; what is below it counts bytes.
const ONE: u64 = 1 << 40;

impl Part {
    fn new(bytes: usize) -> Self {
        Self(ONE + bytes as u64)
    }
}

impl Held {
    /// Counts `taken` and counts `let_go` no longer.
    pub(super) fn exchange(&self, let_go: Part, taken: Part) {
        if let_go.0 != taken.0 {
            self.0.fetch_add(taken.0.wrapping_sub(let_go.0), Ordering::Relaxed);
        }
    }

    fn is_too_much(&self) -> bool {
        let all = self.0.load(Ordering::Relaxed);
        all / ONE > MOST_STREAMS as u64 || all % ONE > MOST_BYTES as u64
    }
}

impl Finished {
    /// Nothing will be written to `post` any more: it is kept from now on, and the oldest beyond the bounds are not.
    pub fn keep(&self, session: &Arc<Session>, post: &Post, now: Timestamp) {
        let part = Part::new(post.outbox.bytes());
        // Before its end is told: a reader that leaves by that must not find it among those under way.
        let is_kept = session.channel().posts.finish(post.number, part, &self.held);
        post.outbox.close();
        if !is_kept {
            return;
        }
        let mut streams = self.oldest_first.lock();
        streams.push_back(Stream {
            until: now.plus(KEPT),
            session: Arc::downgrade(session),
            number: post.number,
        });
        self.forget(&mut streams, now);
    }

    /// Forgets those whose time is over.
    pub fn sweep(&self, now: Timestamp) {
        self.forget(&mut self.oldest_first.lock(), now);
    }

    fn forget(&self, streams: &mut VecDeque<Stream>, now: Timestamp) {
        while let Some(oldest) = streams.pop_front_if(|oldest| oldest.until <= now || self.held.is_too_much())
        {
            if let Some(session) = oldest.session.upgrade() {
                session.channel().posts.close(oldest.number);
            }
        }
        // As many again may stand here that are no longer kept; then, once for as many, they are looked for.
        if streams.len() > 2 * MOST_STREAMS {
            streams.retain(|Stream { session, number, .. }| {
                session.upgrade().is_some_and(|session| session.channel().posts.holds(*number))
            });
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
        assert_eq!((kept.oldest_first.lock().len(), kept.held.0.load(Ordering::Relaxed)), (0, 0));
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
    fn of_too_many_the_oldest_goes() {
        let (first, kept) = (session(), Finished::default());
        let number = finished(&first, &kept, 1, NOW);
        let others: Vec<_> = (0..MOST_STREAMS).map(|_| session()).collect();
        for other in &others[1..] {
            finished(other, &kept, 1, NOW);
        }
        assert!(held(&first, number));
        finished(&others[0], &kept, 1, NOW);
        assert!(!held(&first, number));
        assert_eq!(kept.oldest_first.lock().len(), MOST_STREAMS);
    }

    #[test]
    fn a_busy_session_and_those_that_are_gone_shorten_no_others_time() {
        let (first, busy, kept) = (session(), session(), Finished::default());
        let number = finished(&first, &kept, 1, NOW);
        for _ in 0..100 {
            finished(&busy, &kept, MOST_BYTES / 32, NOW);
            finished(&session(), &kept, MOST_BYTES / 32, NOW);
        }
        for _ in 0..2 * MOST_STREAMS {
            finished(&busy, &kept, 1, NOW);
        }
        assert!(held(&first, number));
        assert!(
            kept.oldest_first.lock().len() <= 2 * MOST_STREAMS,
            "what is no longer kept is listed forever"
        );
    }
}
