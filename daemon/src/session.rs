//! A session as this replica holds it: the record, its ties to targets, what is in flight, its stream.

pub mod admission;
pub mod amend;
pub mod asking;
pub mod asks;
pub mod calls;
pub mod channel;
#[cfg(test)]
mod crossing_properties;
pub mod driven;
mod elsewhere;
pub mod end;
pub mod ephemeral;
pub mod event_id;
pub mod finished;
mod follow;
mod hidden;
pub mod id;
mod idle;
pub mod listen;
pub mod outbox;
pub mod places;
pub mod posts;
pub mod principals;
pub mod reaper;
pub mod record;
pub mod revoked;
mod slots;
pub mod state;
pub mod subscribed;
pub mod table;
pub mod target_session;
pub mod targets;
pub mod task_ids;

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use mooring_runtime::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::{
    calls::Calls,
    channel::Channel,
    end::{Claim, Ended},
    id::Key,
    places::Places,
    record::{Principal, Record},
    slots::{Slots, drop_untied},
    state::{Facts, Idle},
};
use crate::{
    auth::Caller,
    catalog::{
        merge::Marks,
        per_session::{OwnLists, Seen},
        view::View,
    },
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
    /// Whether it is of one request only and nothing of it is stored (`session.mode: Stateless`).
    pub ephemeral: bool,
    /// Whether the client announced that it answers any request of a target's.
    pub answers_requests: bool,
    /// What is in flight.
    pub calls: Calls,
    /// Fires when it has ended.
    pub ended: CancellationToken,
    /// The lists that the client has seen.
    pub seen: Seen,
    /// The lists of targets that list for each session.
    pub lists: OwnLists,
    /// The catalogue as its client sees it, once it was asked for.
    pub view: Mutex<Weak<View>>,
    /// Places of its requests in flight.
    pub requests: Places,
    /// Places of its open event streams.
    pub streams: Places,
    /// Who sent its newest request, where callers can be told apart: other claims may have come with a newer token.
    caller: Mutex<Option<Caller>>,
    ties: Mutex<Ties>,
    channel: OnceLock<Box<Channel>>,
    initialized: AtomicBool,
    last_used: AtomicI64,
    /// When its use was last written into the record, by this replica.
    noted: AtomicI64,
    ending: Mutex<Option<Ended>>,
    reason: OnceLock<EndReason>,
}

/// What changes together: the record as last read or written, and the ties that follow from it.
#[derive(Debug)]
struct Ties {
    record: Arc<Record>,
    revision: Revision,
    /// Whether the record has what could not be stored: then a newer one may lack it by no intention.
    unstored: bool,
    slots: Slots,
}

impl Session {
    /// The session of a stored record, last used at `used`.
    pub fn new(key: Key, stored: Stored, used: Timestamp, seen: Marks) -> Self {
        let Stored { record, revision } = stored;
        Self {
            key,
            principal: record.principal.clone(),
            version: record.version,
            answers_requests: record.capabilities.answer_anything(),
            expires: record.expires,
            ephemeral: false,
            calls: Calls::default(),
            ended: CancellationToken::new(),
            seen: Seen::new(seen),
            lists: OwnLists::default(),
            view: Mutex::default(),
            caller: Mutex::default(),
            ties: Mutex::new(Ties { record, revision, unstored: false, slots: Slots::default() }),
            channel: OnceLock::new(),
            initialized: AtomicBool::new(false),
            requests: Places::default(),
            streams: Places::default(),
            last_used: AtomicI64::new(used.0),
            noted: AtomicI64::new(used.0),
            ending: Mutex::default(),
            reason: OnceLock::new(),
        }
    }

    /// Notes who sent its newest request.
    pub fn called_by(&self, caller: &Caller) {
        if caller.principal == Principal::Anonymous {
            return;
        }
        let mut newest = self.caller.lock();
        if newest.as_ref().is_none_or(|newest| !newest.claims.are(&caller.claims)) {
            *newest = Some(caller.clone());
        }
    }

    /// Who sent its newest request here; none where nobody did, or all callers are one.
    pub fn newest_caller(&self) -> Option<Caller> {
        self.caller.lock().clone()
    }

    /// Notes a use.
    pub fn touch(&self, now: Timestamp) {
        self.last_used.fetch_max(now.0, Ordering::AcqRel);
    }

    /// Notes that its use is being written into the record at `now`.
    pub(crate) fn noting(&self, now: Timestamp) {
        self.noted.store(now.0, Ordering::Relaxed);
    }

    /// What its end depends on.
    pub fn facts(&self) -> Facts {
        // Before the time of the last use: a request that ends between the two is seen as one or the other.
        // A call whose client left, and a request that waits for the client, are not idle either (DESIGN §3.2).
        let asked = || self.known_channel().is_some_and(|channel| !channel.asks.is_empty());
        let in_flight = self.requests.taken() > 0 || !self.calls.is_empty() || asked();
        let last_used = Timestamp(self.last_used.load(Ordering::Acquire));
        let record = Arc::clone(&self.ties.lock().record);
        let idle = record.idle.map(|timeout| Idle {
            timeout,
            in_flight,
            stored: record.used,
            noted: Timestamp(self.noted.load(Ordering::Relaxed)),
        });
        Facts { expires: self.expires, last_used, all_targets_lost: record.all_targets_lost(), idle }
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
        self.touch(stored.record.used);
        if stored.revision.0 > ties.revision.0 {
            let both = ties.unstored.then(|| stored.record.with_unstored(&ties.record)).flatten();
            ties.unstored = both.is_some();
            ties.record = both.map_or(stored.record, Arc::new);
            ties.revision = stored.revision;
            drop_untied(&mut ties);
        }
    }

    /// Takes what we have just stored in the place of `current`, which had all that could not be stored before.
    fn wrote(&self, current: &Stored, written: Stored) {
        let mut ties = self.ties.lock();
        if Arc::ptr_eq(&ties.record, &current.record) {
            ties.unstored = false;
        }
        drop(ties);
        self.adopt(written);
    }

    /// Takes `next` without a new revision: it could not be stored, and holds here all the same. `false` where the
    /// record is not `current` any more.
    fn keep_unstored(&self, current: &Stored, next: Arc<Record>) -> bool {
        let mut ties = self.ties.lock();
        let same = Arc::ptr_eq(&ties.record, &current.record);
        if same {
            (ties.record, ties.unstored) = (next, true);
        }
        same
    }

    /// What goes to the client beside answers.
    pub fn channel(&self) -> &Channel {
        let channel = self.channel.get_or_init(|| Box::new(Channel::new(false)));
        // Looked at behind the entry: who sets the flag looks for the channel behind it.
        if self.initialized.load(Ordering::SeqCst) {
            channel.initialized.send_if_modified(|known| !std::mem::replace(known, true));
        }
        channel
    }

    /// The same, where it was needed already.
    pub fn known_channel(&self) -> Option<&Channel> {
        self.channel.get().map(|channel| &**channel)
    }

    /// Notes that the client has sent `notifications/initialized`: from now on targets may ask it.
    pub fn initialized(&self) {
        self.initialized.store(true, Ordering::SeqCst);
        // Whoever makes the channel now reads the flag, or is found here.
        if let Some(channel) = self.channel.get() {
            channel.initialized.send_replace(true);
        }
    }

    /// Whether anything that a target says outside of calls would reach the client: it listens, or it announced that it
    /// answers requests.
    pub fn wants_word(&self) -> bool {
        self.answers_requests || self.listens()
    }

    /// Whether its client has a GET stream open.
    fn listens(&self) -> bool {
        self.known_channel().is_some_and(|channel| *channel.listening.borrow())
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
