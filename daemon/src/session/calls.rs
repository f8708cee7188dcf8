//! Requests in flight in one session, by the client's id: no two at once with one id, and each can be ended, or handed
//! a message to deliver on its stream.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque, hash_map::Entry::Vacant},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::Session;
use crate::{
    fault::Fault,
    jsonrpc::envelope::canonical_id,
    relay::{pause::Pause, progress},
    target::Target,
};

/// Messages that wait to be delivered on one call's stream.
const MOST_WAITING: usize = 64;
/// Calls that lost their client and can still be cancelled; the oldest are forgotten.
const MOST_ABANDONED: usize = 16;

/// The requests in flight.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By ids in one spelling.
    running: HashMap<Box<[u8]>, Entry>,
    /// Whose client left before their answer: their targets still work, and may be told to stop.
    abandoned: VecDeque<Running>,
    /// Wakes the calls when there is something to deliver; made when it is first needed.
    delivered: Option<watch::Sender<u64>>,
}

#[derive(Debug)]
struct Entry {
    target: Arc<Target>,
    end: Option<oneshot::Sender<Fault>>,
    clock: Arc<Pause>,
    /// Whether its answer may be a stream.
    streams: bool,
    token: Option<Box<str>>,
    waiting: Vec<Waiting>,
}

/// A message that waits to be written on a call's stream.
#[derive(Debug)]
pub struct Waiting {
    /// It.
    pub json: Bytes,
    handled: oneshot::Sender<Handling>,
}

/// Which call a message is for.
#[derive(Debug, Clone, Copy)]
pub enum To<'a> {
    /// The one with this id of the client's, raw JSON.
    Call(&'a [u8]),
    /// The one that wants to hear of progress under this token, raw JSON.
    Progress(&'a [u8]),
    /// Whichever.
    Any,
}

/// What a message was handed to.
#[derive(Debug)]
pub struct Handed {
    /// The call's clock.
    pub clock: Arc<Pause>,
    /// Tells what became of it; an error, where the call's stream ended before that, or never became one.
    pub handled: oneshot::Receiver<Handling>,
}

/// What became of a message that was handed to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// It was written on the call's stream.
    Written,
    /// There was no room to keep it.
    NoRoom,
}

impl Waiting {
    /// Tells whoever handed it over.
    pub fn tell(self, handling: Handling) {
        if self.handled.send(handling).is_err() {
            tracing::trace!(?handling, "few wait for this to be told");
        }
    }
}

/// A request that was in flight when all were ended: what its target must be told of.
#[derive(Debug)]
pub struct Running {
    /// The client's id, which the target knows it by.
    pub id: Box<[u8]>,
    /// Where it went.
    pub target: Arc<Target>,
}

/// What a request is entered with.
#[derive(Debug)]
pub struct Beginning<'a> {
    /// The client's id, raw JSON.
    pub id: &'a [u8],
    /// Where it goes.
    pub target: &'a Arc<Target>,
    /// Its clock.
    pub clock: &'a Arc<Pause>,
    /// Whether its answer may be a stream.
    pub streams: bool,
    /// Its progress token, raw JSON.
    pub token: Option<Box<str>>,
}

/// A request in flight, for as long as it is held.
#[derive(Debug)]
pub struct Call {
    session: Arc<Session>,
    id: Box<[u8]>,
    answered: bool,
    /// Whether something may still be handed to it.
    streams: bool,
    /// Tells why it must end before its answer.
    pub ended: oneshot::Receiver<Fault>,
}

impl Calls {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().running.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the request of this id as cancelled by the client. Returns its target, which must be told; none where
    /// no such request is in flight, or it was told already (unknown and finished ids are ignored).
    pub fn cancel(&self, id: &[u8]) -> Option<Arc<Target>> {
        let id = &*canonical_id(id);
        let mut calls = self.0.lock();
        let Some(entry) = calls.running.get_mut(id) else {
            let at = calls.abandoned.iter().position(|call| *call.id == *id)?;
            return calls.abandoned.remove(at).map(|call| call.target);
        };
        let end = entry.end.take()?;
        let target = Arc::clone(&entry.target);
        drop(calls);
        // A receiver that is gone has its answer already.
        drop(end.send(Fault::Cancelled));
        Some(target)
    }

    /// Ends all of them, and returns those that were not ended before.
    pub fn end_all(&self, fault: &Fault) -> Vec<Running> {
        let mut calls = self.0.lock();
        let ends = calls.running.iter_mut().filter_map(|(id, entry)| {
            let running = Running { id: id.clone(), target: Arc::clone(&entry.target) };
            Some((entry.end.take()?, running))
        });
        let (ends, mut running): (Vec<_>, Vec<_>) = ends.unzip();
        running.extend(calls.abandoned.drain(..));
        drop(calls);
        for end in ends {
            drop(end.send(fault.clone()));
        }
        running
    }

    /// The clocks of those that run at `target`: what it asks of the client outside of them may be for any.
    pub fn clocks(&self, target: &Target) -> Vec<Arc<Pause>> {
        let calls = self.0.lock();
        let at_it = calls.running.values().filter(|entry| entry.target.config.uid == target.config.uid);
        at_it.map(|entry| Arc::clone(&entry.clock)).collect()
    }

    /// Whether some run at `target`, and none of them whose answer may be a stream.
    pub fn take_json_only(&self, target: &Target) -> bool {
        let calls = self.0.lock();
        let mut at_it =
            calls.running.values().filter(|entry| entry.target.config.uid == target.config.uid).peekable();
        at_it.peek().is_some() && at_it.all(|entry| !entry.streams)
    }

    /// Hands a message of `target` to a running call to it whose answer may be a stream; none where there is no such.
    pub fn deliver(&self, target: &Target, to: To<'_>, message: &Bytes) -> Option<Handed> {
        let mut calls = self.0.lock();
        let fits = |id: &[u8], entry: &Entry| {
            entry.target.config.uid == target.config.uid
                && entry.streams
                && entry.end.is_some()
                && entry.waiting.len() < MOST_WAITING
                && match to {
                    To::Call(of) => *canonical_id(of) == *id,
                    To::Progress(token) => progress::reports_on(Some(token), entry.token.as_deref()),
                    To::Any => true,
                }
        };
        let (_, entry) = calls.running.iter_mut().find(|(id, entry)| fits(id, entry))?;
        let clock = Arc::clone(&entry.clock);
        let (sender, handled) = oneshot::channel();
        entry.waiting.push(Waiting { json: message.clone(), handled: sender });
        if let Some(delivered) = &calls.delivered {
            delivered.send_modify(|count| *count = count.wrapping_add(1));
        }
        Some(Handed { clock, handled })
    }
}

impl Call {
    /// Enters a request.
    ///
    /// # Errors
    /// [`Fault::DuplicateId`], where one with this id is in flight (2025-11-25, base protocol, requests).
    pub fn begin(session: &Arc<Session>, beginning: Beginning<'_>) -> Result<Self, Fault> {
        let Beginning { id, target, clock, streams, token } = beginning;
        let (end, ended) = oneshot::channel();
        let (id, key): (Box<[u8]>, Box<[u8]>) = (id.into(), canonical_id(id).into());
        let mut calls = session.calls.0.lock();
        let Vacant(place) = calls.running.entry(key) else { return Err(Fault::DuplicateId) };
        place.insert(Entry {
            target: Arc::clone(target),
            end: Some(end),
            clock: Arc::clone(clock),
            streams,
            token,
            waiting: Vec::new(),
        });
        if !calls.abandoned.is_empty() {
            calls.abandoned.retain(|call| *call.id != *canonical_id(&id));
        }
        drop(calls);
        // A session that ended meanwhile has called `end_all` already.
        if let Some(reason) = session.end_reason() {
            session.calls.end_all(&Fault::SessionEnded(reason));
        }
        Ok(Self { session: Arc::clone(session), id, answered: false, streams, ended })
    }

    /// Its id, as the client wrote it.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// What it is found by: whoever names it may spell its id another way.
    fn key(&self) -> Cow<'_, [u8]> {
        canonical_id(&self.id)
    }

    /// Its session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Follows what is handed to the session's calls. What waits for this one already counts as news.
    pub fn deliveries(&self) -> watch::Receiver<u64> {
        let mut calls = self.session.calls.0.lock();
        let waits = calls.running.get(&*self.key()).is_some_and(|entry| !entry.waiting.is_empty());
        let mut deliveries = calls.delivered.get_or_insert_with(|| watch::Sender::new(0)).subscribe();
        drop(calls);
        if waits {
            deliveries.mark_changed();
        }
        deliveries
    }

    /// What was handed to it, to be written now.
    pub fn take_waiting(&self) -> Vec<Waiting> {
        let mut calls = self.session.calls.0.lock();
        let waiting = calls.running.get_mut(&*self.key()).map(|entry| std::mem::take(&mut entry.waiting));
        drop(calls);
        waiting.unwrap_or_default()
    }

    /// Notes that its answer is no stream, or is one no longer: nothing can be handed to it, and what waits goes another
    /// way. Whether that was not noted before.
    pub fn no_stream(&mut self) -> bool {
        if !std::mem::take(&mut self.streams) {
            return false;
        }
        let mut calls = self.session.calls.0.lock();
        let waiting = calls.running.get_mut(&*self.key()).map(|entry| {
            entry.streams = false;
            std::mem::take(&mut entry.waiting)
        });
        drop(calls);
        drop(waiting);
        true
    }

    /// Notes that its answer is a stream after all: a place for it was found.
    pub fn stream(&mut self) {
        if std::mem::replace(&mut self.streams, true) {
            return;
        }
        if let Some(entry) = self.session.calls.0.lock().running.get_mut(&*self.key()) {
            entry.streams = true;
        }
    }

    /// Notes that it has its answer, or a refusal in its place.
    pub fn answered(&mut self) {
        self.answered = true;
        self.no_stream();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = self.session.calls.0.lock();
        let Some(Entry { target, end, clock: _, streams: _, token: _, waiting: _ }) =
            calls.running.remove(&*self.key())
        else {
            return;
        };
        // A client that left cancels nothing by that, and may still say so (2025-11-25, transports, sending messages).
        if !self.answered && end.is_some() {
            if calls.abandoned.len() == MOST_ABANDONED {
                calls.abandoned.pop_front();
            }
            calls.abandoned.push_back(Running { id: self.key().into(), target });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn what_is_for_a_call_waits_for_it_where_its_answer_is_a_stream_and_only_there() {
        let (session, target, clock) = (testing::session(), testing::target("a"), Arc::new(Pause::default()));
        let beginning = Beginning { id: b"1", target: &target, clock: &clock, streams: true, token: None };
        let mut call = Call::begin(&session, beginning).unwrap();
        let deliver = || session.calls.deliver(&target, To::Any, &Bytes::from_static(b"{}"));
        let waits = deliver().unwrap();
        assert!(call.no_stream());
        assert!(waits.handled.await.is_err(), "it goes another way");
        assert!(deliver().is_none() && !call.no_stream());
        call.stream();
        assert!(deliver().is_some());
        assert_eq!(call.take_waiting().len(), 1);
        call.answered();
        assert!(deliver().is_none());
    }
}
