//! Streams that answer POSTs, for as long as a client may come back to them. Bounded; knows nothing of HTTP.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    driven::{Driven, Rest},
    finished::{Held, Part},
    outbox::Outbox,
};

/// Streams of one session that lost their client and are kept all the same. Of more, the oldest is given up.
const MOST_DETACHED: usize = 16;
/// Streams of one session whose answer is written, and that are kept for a client that did not get it.
const MOST_FINISHED: usize = 16;

/// The streams of one session.
#[derive(Debug, Default)]
pub struct Posts {
    numbered: Mutex<Numbered>,
    /// What all sessions' finished streams hold, and these among them.
    held: OnceLock<Arc<Held>>,
}

#[derive(Debug, Default)]
struct Numbered {
    last: u32,
    streams: HashMap<u32, Arc<Post>>,
    /// Those under way that lost their client, oldest first.
    detached: VecDeque<u32>,
    /// Those whose answer is written, and what each holds, oldest first.
    finished: VecDeque<(u32, Part)>,
}

/// One stream.
#[derive(Debug)]
pub struct Post {
    /// Its number in its session.
    pub number: u32,
    /// What it carries.
    pub outbox: Outbox,
    /// Which connection reads it: the newest.
    reader: AtomicU32,
    given_up: AtomicBool,
    /// Fires at every change of the two.
    changed: Notify,
    /// What has it go on, while a connection does.
    driven: OnceLock<Weak<Driven>>,
}

/// A connection that reads a stream, one of several that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader(u32);

/// What ends a connection's part in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parted {
    /// Another connection has taken it over.
    Taken,
    /// Nobody will come back to it.
    GivenUp,
}

impl Post {
    /// Whether the part of `reader` has ended, or, where no connection reads it, the stream was given up.
    pub fn has_parted(&self, reader: Option<Reader>) -> Option<Parted> {
        if self.given_up.load(Ordering::Acquire) {
            return Some(Parted::GivenUp);
        }
        reader.filter(|Reader(number)| *number != self.reader.load(Ordering::Acquire)).map(|_| Parted::Taken)
    }

    /// Waits for that.
    pub async fn parted(&self, reader: Option<Reader>) -> Parted {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before the state is looked at, so that no change is missed.
            changed.as_mut().enable();
            if let Some(parted) = self.has_parted(reader) {
                return parted;
            }
            changed.await;
        }
    }

    /// Notes what has it go on.
    pub fn driven_by(&self, driven: &Arc<Driven>) {
        // Once, by the connection that reads it first.
        let _: &Weak<Driven> = self.driven.get_or_init(|| Arc::downgrade(driven));
    }

    /// Takes it from the connection that has it go on: whoever took it over sees to that from now on. None where none
    /// does.
    pub fn rest(&self) -> Option<Rest> {
        self.driven.get()?.upgrade()?.take()
    }

    fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn next_reader(&self) -> Reader {
        let reader = Reader(self.reader.fetch_add(1, Ordering::AcqRel).wrapping_add(1));
        self.changed.notify_waiters();
        reader
    }
}

impl Posts {
    /// A new stream, and the connection that reads it first.
    pub fn open(&self) -> (Arc<Post>, Reader) {
        let mut numbered = self.numbered.lock();
        numbered.last = numbered.last.checked_add(1).unwrap_or(1);
        let post = Arc::new(Post {
            number: numbered.last,
            outbox: Outbox::default(),
            reader: AtomicU32::new(0),
            given_up: AtomicBool::new(false),
            changed: Notify::new(),
            driven: OnceLock::new(),
        });
        numbered.streams.insert(post.number, Arc::clone(&post));
        (post, Reader(0))
    }

    /// The stream of that number, taken over from whoever reads it.
    pub fn take(&self, number: u32) -> Option<(Arc<Post>, Reader)> {
        let mut numbered = self.numbered.lock();
        let post = numbered.streams.get(&number).cloned()?;
        // It has a client again, and is none of those that are given up for want of one.
        numbered.detached.retain(|detached| *detached != number);
        let reader = post.next_reader();
        Some((post, reader))
    }

    /// Notes that a stream lost the client that read it as `reader`; nothing, where another has taken it over.
    pub fn detach(&self, number: u32, reader: Reader) {
        let mut numbered = self.numbered.lock();
        let Some(post) = numbered.streams.get(&number) else { return };
        if post.has_parted(Some(reader)).is_some()
            || numbered.finished.iter().any(|(finished, _)| *finished == number)
        {
            return;
        }
        numbered.detached.push_back(number);
        if numbered.detached.len() > MOST_DETACHED
            && let Some(oldest) = numbered.detached.pop_front()
            && let Some(post) = numbered.streams.remove(&oldest)
        {
            post.give_up();
        }
    }

    /// Notes that a stream's answer is written; of more than are kept, the oldest is forgotten. Whether it is kept: not
    /// where it was given up before.
    pub(super) fn finish(&self, number: u32, part: Part, held: &Arc<Held>) -> bool {
        let mut numbered = self.numbered.lock();
        if !numbered.streams.contains_key(&number) {
            return false;
        }
        numbered.detached.retain(|detached| *detached != number);
        numbered.finished.push_back((number, part));
        let mut let_go = Part::default();
        if numbered.finished.len() > MOST_FINISHED
            && let Some((oldest, part)) = numbered.finished.pop_front()
        {
            numbered.streams.remove(&oldest);
            let_go = part;
        }
        drop(numbered);
        self.held.get_or_init(|| Arc::clone(held)).exchange(let_go, part);
        true
    }

    /// Whether a stream of that number is there.
    pub fn holds(&self, number: u32) -> bool {
        self.numbered.lock().streams.contains_key(&number)
    }

    /// Forgets a stream.
    pub fn close(&self, number: u32) {
        let mut numbered = self.numbered.lock();
        numbered.streams.remove(&number);
        numbered.detached.retain(|detached| *detached != number);
        let at = numbered.finished.iter().position(|(finished, _)| *finished == number);
        let let_go = at.and_then(|at| numbered.finished.remove(at));
        drop(numbered);
        if let Some((held, (_, part))) = self.held.get().zip(let_go) {
            held.exchange(part, Part::default());
        }
    }
}

impl Drop for Posts {
    fn drop(&mut self) {
        if let Some(held) = self.held.get() {
            for (_, part) in self.numbered.get_mut().finished.drain(..) {
                held.exchange(part, Part::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_takes_the_stream_over() {
        let posts = Posts::default();
        let (post, first) = posts.open();
        let (same, second) = posts.take(post.number).unwrap();
        assert!(Arc::ptr_eq(&post, &same));
        assert_eq!(
            (post.has_parted(Some(first)), post.has_parted(Some(second))),
            (Some(Parted::Taken), None)
        );
        posts.close(post.number);
        assert!(posts.take(post.number).is_none());
    }

    #[tokio::test]
    async fn whoever_waits_for_the_end_of_its_part_hears_of_it() {
        let posts = Posts::default();
        let (post, first) = posts.open();
        let mut waits = Box::pin(post.parted(Some(first)));
        assert!(futures_util::poll!(&mut waits).is_pending());
        let (_, second) = posts.take(post.number).unwrap();
        assert_eq!(waits.await, Parted::Taken);
        let mut waits = Box::pin(post.parted(Some(second)));
        assert!(futures_util::poll!(&mut waits).is_pending());
        post.give_up();
        assert_eq!(waits.await, Parted::GivenUp);
    }

    #[test]
    fn of_too_many_streams_without_a_client_the_oldest_is_given_up() {
        let posts = Posts::default();
        let (all, readers): (Vec<_>, Vec<_>) = (0..=MOST_DETACHED).map(|_| posts.open()).unzip();
        for (post, reader) in all.iter().zip(&readers) {
            posts.detach(post.number, *reader);
        }
        let given_up: Vec<bool> = all.iter().map(|post| post.has_parted(None).is_some()).collect();
        assert!(given_up[0] && !given_up[1..].contains(&true), "{given_up:?}");
        assert!(posts.take(all[0].number).is_none() && posts.take(all[1].number).is_some());
    }

    #[test]
    fn finished_streams_are_kept_beside_those_under_way_and_take_no_place_of_theirs() {
        let posts = Posts::default();
        let (away, reader) = posts.open();
        posts.detach(away.number, reader);
        let finished: Vec<u32> = (0..=MOST_FINISHED)
            .map(|_| {
                let (post, reader) = posts.open();
                assert!(posts.finish(post.number, Part::default(), &Arc::default()));
                // Its connection is seen to be gone only now.
                posts.detach(post.number, reader);
                post.number
            })
            .collect();
        let kept: Vec<bool> = finished.iter().map(|number| posts.take(*number).is_some()).collect();
        assert!(!kept[0] && !kept[1..].contains(&false), "{kept:?}");
        assert!(away.has_parted(None).is_none() && posts.take(away.number).is_some());
        posts.close(away.number);
        assert!(
            !posts.finish(away.number, Part::default(), &Arc::default()),
            "one that was given up came back"
        );
    }

    #[test]
    fn a_stream_that_was_taken_up_again_is_not_given_up_until_it_is_lost_again() {
        let posts = Posts::default();
        let (kept, first) = posts.open();
        posts.detach(kept.number, first);
        let (_, second) = posts.take(kept.number).unwrap();
        // The connection that it was taken from is seen to be gone only now.
        posts.detach(kept.number, first);
        let lose_others = || {
            for _ in 0..=MOST_DETACHED {
                let (other, reader) = posts.open();
                posts.detach(other.number, reader);
            }
        };
        lose_others();
        assert!(kept.has_parted(None).is_none());
        posts.detach(kept.number, second);
        lose_others();
        assert!(kept.has_parted(None).is_some());
    }
}
