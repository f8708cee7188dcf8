//! Requests in flight in one session, by the client's id: no two at once with one id, and each can be ended.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Session;
use crate::{fault::Fault, target::Target};

/// The requests in flight.
#[derive(Debug, Default)]
pub struct Calls(Mutex<HashMap<Box<[u8]>, Entry>>);

#[derive(Debug)]
struct Entry {
    target: Arc<Target>,
    end: Option<oneshot::Sender<Fault>>,
}

/// A request that was in flight when all were ended: what its target must be told of.
#[derive(Debug)]
pub struct Running {
    /// The client's id, which the target knows it by.
    pub id: Box<[u8]>,
    /// Where it went.
    pub target: Arc<Target>,
}

/// A request in flight, for as long as it is held.
#[derive(Debug)]
pub struct Call {
    session: Arc<Session>,
    id: Box<[u8]>,
    /// Tells why it must end before its answer.
    pub ended: oneshot::Receiver<Fault>,
}

impl Calls {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the request of this id as cancelled by the client. Returns its target, which must be told; none where
    /// no such request is in flight, or it was told already (unknown and finished ids are ignored).
    pub fn cancel(&self, id: &[u8]) -> Option<Arc<Target>> {
        let mut calls = self.0.lock();
        let entry = calls.get_mut(id)?;
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
        let ends = calls.iter_mut().filter_map(|(id, entry)| {
            let running = Running { id: id.clone(), target: Arc::clone(&entry.target) };
            Some((entry.end.take()?, running))
        });
        let (ends, running): (Vec<_>, Vec<_>) = ends.unzip();
        drop(calls);
        for end in ends {
            drop(end.send(fault.clone()));
        }
        running
    }
}

impl Call {
    /// Enters a request to `target`.
    ///
    /// # Errors
    /// [`Fault::DuplicateId`], where one with this id is in flight (2025-11-25, base protocol, requests).
    pub fn begin(session: &Arc<Session>, id: &[u8], target: &Arc<Target>) -> Result<Self, Fault> {
        let (end, ended) = oneshot::channel();
        let id: Box<[u8]> = id.into();
        let mut calls = session.calls.0.lock();
        if calls.contains_key(&id) {
            return Err(Fault::DuplicateId);
        }
        calls.insert(id.clone(), Entry { target: Arc::clone(target), end: Some(end) });
        drop(calls);
        // A session that ended meanwhile has called `end_all` already.
        if let Some(reason) = session.end_reason() {
            session.calls.end_all(&Fault::SessionEnded(reason));
        }
        Ok(Self { session: Arc::clone(session), id, ended })
    }

    /// Its id, as the client wrote it.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// Its session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.session.calls.0.lock().remove(&self.id);
    }
}
