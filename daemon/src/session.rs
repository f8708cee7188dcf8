//! A session as this replica holds it: the record, its ties to targets, what is in flight, its stream.

pub mod calls;
pub mod end;
pub mod id;
pub mod reaper;
pub mod record;
pub mod revoked;
pub mod state;
pub mod table;
pub mod targets;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use mooring_runtime::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{
    calls::Calls,
    end::{Claim, Ended},
    id::Key,
    record::{Principal, Record},
    state::Facts,
    targets::Slots,
};
use crate::{
    fault::EndReason,
    store::{Revision, Stored},
    version::Version,
};

/// One session. What stands in its record from the start is a plain field; the rest changes.
#[derive(Debug)]
pub struct Session {
    /// Its name in table, store and log.
    pub key: Key,
    /// Whom it belongs to.
    pub principal: Principal,
    /// The version negotiated with the client.
    pub version: Version,
    /// Its absolute end.
    pub expires: Timestamp,
    /// What is in flight.
    pub calls: Calls,
    /// Fires when it has ended.
    pub ended: CancellationToken,
    /// The catalogue's generation that the client has seen, listed or been told of.
    pub seen: AtomicU64,
    ties: Mutex<Ties>,
    stream: Mutex<Option<CancellationToken>>,
    last_used: AtomicI64,
    ending: Mutex<Option<Ended>>,
    reason: OnceLock<EndReason>,
}

/// What changes together: the record as last read or written, and the ties that follow from it.
#[derive(Debug)]
struct Ties {
    record: Arc<Record>,
    revision: Revision,
    slots: Slots,
}

impl Session {
    /// The session of a stored record.
    pub fn new(key: Key, stored: Stored, now: Timestamp, seen: u64) -> Self {
        let Stored { record, revision } = stored;
        Self {
            key,
            principal: record.principal.clone(),
            version: record.version,
            expires: record.expires,
            calls: Calls::default(),
            ended: CancellationToken::new(),
            seen: AtomicU64::new(seen),
            ties: Mutex::new(Ties { record, revision, slots: Slots::default() }),
            stream: Mutex::new(None),
            last_used: AtomicI64::new(now.0),
            ending: Mutex::default(),
            reason: OnceLock::new(),
        }
    }

    /// Notes a use.
    pub fn touch(&self, now: Timestamp) {
        self.last_used.store(now.0, Ordering::Relaxed);
    }

    /// What its end depends on.
    pub fn facts(&self) -> Facts {
        Facts {
            expires: self.expires,
            last_used: Timestamp(self.last_used.load(Ordering::Relaxed)),
            all_targets_lost: self.ties.lock().record.all_targets_lost(),
        }
    }

    /// Whether it may still be used.
    pub fn alive(&self, now: Timestamp) -> bool {
        now < self.expires && self.reason.get().is_none()
    }

    /// The record as last read or written here.
    pub fn stored(&self) -> Stored {
        let ties = self.ties.lock();
        Stored { record: Arc::clone(&ties.record), revision: ties.revision }
    }

    /// Takes a newer record, of another replica or of our own writing.
    pub fn adopt(&self, stored: Stored) {
        let mut ties = self.ties.lock();
        if stored.revision.0 > ties.revision.0 {
            ties.record = stored.record.with_unstored(&ties.record).map_or(stored.record, Arc::new);
            ties.revision = stored.revision;
        }
    }

    /// Takes `next` without a new revision: it could not be stored, and holds here all the same. `false` where the
    /// record is not `current` any more.
    fn keep_unstored(&self, current: &Stored, next: Arc<Record>) -> bool {
        let mut ties = self.ties.lock();
        let same = Arc::ptr_eq(&ties.record, &current.record);
        if same {
            ties.record = next;
        }
        same
    }

    /// Makes a new GET stream the one that gets the messages; the stream before it ends.
    #[must_use]
    pub fn take_stream(&self) -> CancellationToken {
        let token = self.ended.child_token();
        if let Some(older) = self.stream.lock().replace(token.clone()) {
            older.cancel();
        }
        token
    }

    /// Claims the right to end it, where nobody else has it.
    fn claim_end(&self) -> Claim {
        let mut ending = self.ending.lock();
        if let Some(ended) = &*ending {
            return Claim::Theirs(ended.clone());
        }
        let (tell, ended) = watch::channel(None);
        *ending = Some(ended.clone());
        Claim::Ours(tell, ended)
    }

    /// Gives the claim back: the end could not be stored.
    fn unclaim_end(&self) {
        *self.ending.lock() = None;
    }

    /// Why it ended, where it has.
    pub fn end_reason(&self) -> Option<EndReason> {
        self.reason.get().copied()
    }
}
