//! The catalogue as clients of one version and one set of capabilities see it: one catalogue session for each target,
//! and the lists merged of what they learnt.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use mooring_runtime::Tasks;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};
use tokio_util::sync::DropGuard;

use super::{
    kind::{ByKind, Kind},
    listing::{Listing, needs_a_caller},
    merge::{self, Merged},
    session,
};
use crate::{
    capabilities::ClientCapabilities,
    config::snapshot::Snapshot,
    version::{LATEST, Version},
};

/// The catalogue as some clients see it. Its catalogue sessions end when nobody holds it any more.
#[derive(Debug)]
pub struct View {
    /// The version that targets are offered.
    pub version: Version,
    /// The client capabilities that targets are offered: what they list may depend on it.
    pub capabilities: ClientCapabilities,
    tasks: Tasks,
    /// The next mark of a list. All views of a gateway share it, so that a mark never means two lists.
    marks: Arc<AtomicU64>,
    state: Mutex<State>,
    merged: ArcSwap<Merged>,
    /// Fires when any merged list changed, or what callers may see of them.
    changed: watch::Sender<u64>,
    /// Fires at every change of any listing, whether a merged list changed or not.
    heard: watch::Sender<u64>,
    begun: Instant,
    /// When it was last asked for, in whole seconds behind `begun`.
    used: AtomicU64,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    /// By the target's uid.
    entries: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    listing: Arc<Listing>,
    hints: Arc<Hints>,
    /// Ends the catalogue session.
    _stop: DropGuard,
}

/// What others heard of changes of one target's lists.
#[derive(Debug, Default)]
pub(super) struct Hints {
    kinds: Mutex<ByKind<bool>>,
    come: Notify,
}

impl Hints {
    fn add(&self, kind: Kind) {
        self.kinds.lock().set(kind, true);
        self.come.notify_one();
    }

    /// Waits for the next ones and takes them.
    pub(super) async fn next(&self) -> ByKind<bool> {
        self.come.notified().await;
        std::mem::take(&mut *self.kinds.lock())
    }
}

impl View {
    pub(super) fn new(
        version: Version,
        capabilities: ClientCapabilities,
        tasks: &Tasks,
        marks: &Arc<AtomicU64>,
        snapshot: &Arc<Snapshot>,
    ) -> Arc<Self> {
        let view = Arc::new(Self {
            version,
            capabilities,
            tasks: tasks.clone(),
            marks: Arc::clone(marks),
            state: Mutex::new(State { snapshot: Arc::clone(snapshot), entries: HashMap::new() }),
            merged: ArcSwap::from_pointee(Merged::default()),
            changed: watch::Sender::new(0),
            heard: watch::Sender::new(0),
            begun: Instant::now(),
            used: AtomicU64::new(0),
        });
        view.configure(snapshot);
        view
    }

    /// Notes that it was asked for. Written once a second at most: every call asks, on every core.
    pub fn touch(&self, now: Instant) {
        let seconds = now.saturating_duration_since(self.begun).as_secs();
        if self.used.load(Ordering::Relaxed) < seconds {
            self.used.store(seconds, Ordering::Relaxed);
        }
    }

    /// When it was last asked for, within a second.
    pub(super) fn used(&self) -> Instant {
        self.begun + Duration::from_secs(self.used.load(Ordering::Relaxed))
    }

    /// Whether the operator's report is made of it, and its targets' metrics, which are one series for all views.
    pub fn is_reported(&self) -> bool {
        self.version == LATEST && self.capabilities == ClientCapabilities::default()
    }

    /// Begins catalogue sessions for new and changed targets and ends those of removed ones.
    pub(super) fn configure(self: &Arc<Self>, snapshot: &Arc<Snapshot>) {
        let mut state = self.state.lock();
        let older = std::mem::replace(&mut state.snapshot, Arc::clone(snapshot));
        state.entries.retain(|uid, _| snapshot.targets.iter().any(|target| target.config.uid == *uid));
        for target in &snapshot.targets {
            let older = state.entries.get(&target.config.uid).map(|entry| &entry.listing);
            // The same configuration keeps its `Arc`; another one is asked anew, its old lists shown until it answers.
            if older.is_some_and(|listing| listing.is_of(target)) {
                continue;
            }
            let known = older.map(|listing| listing.known().clone()).unwrap_or_default();
            let stop = self.tasks.drain.child_token();
            let hints = Arc::new(Hints::default());
            if !needs_a_caller(target) {
                let begin = session::Begin {
                    view: Arc::downgrade(self),
                    target: Arc::clone(target),
                    version: self.version,
                    capabilities: self.capabilities.clone(),
                    hints: Arc::clone(&hints),
                    tasks: self.tasks.clone(),
                    stop: stop.clone(),
                };
                self.tasks.spawn(session::run(begin, known.clone()));
            }
            let listing = Arc::new(Listing::pending(target, known));
            let entry = Entry { listing, hints, _stop: stop.drop_guard() };
            state.entries.insert(target.config.uid.clone(), entry);
        }
        self.merge(&state);
        // The lists may be what they were, and callers see other parts of them.
        if older.config.access != snapshot.config.access {
            self.tell_changed();
        }
    }

    fn tell_changed(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes what a catalogue session learnt, and shows it in the metrics; nothing where its target was reconfigured
    /// meanwhile. Whether it was taken.
    pub(super) fn publish(&self, listing: Listing) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.entries.get_mut(listing.uid()) else { return false };
        if !entry.listing.is_of(listing.target()) {
            return false;
        }
        // Under the lock: the session that comes behind has the same series.
        if self.is_reported()
            && let Some(up) = listing.is_up()
        {
            listing.target().metrics.listed(up, listing.items(Kind::Tools).len());
        }
        entry.listing = Arc::new(listing);
        self.merge(&state);
        true
    }

    fn merge(&self, state: &State) {
        let listings: Vec<Arc<Listing>> = state
            .snapshot
            .targets
            .iter()
            .filter_map(|target| state.entries.get(&target.config.uid))
            .map(|entry| Arc::clone(&entry.listing))
            .collect();
        let before = self.merged.load_full();
        let next = || self.marks.fetch_add(1, Ordering::Relaxed);
        let merged = merge::merge(&state.snapshot.router, listings, &before, next);
        let changed = merged.marks(None) != before.marks(None);
        self.merged.store(Arc::new(merged));
        if changed {
            self.tell_changed();
        }
        self.heard.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A hint that a target changed a list, from whoever heard it say so in another session than the catalogue's. It
    /// is heeded where the catalogue has no stream of its own at that target.
    pub fn refresh(&self, uid: &str, kind: Kind) {
        if let Some(entry) = self.state.lock().entries.get(uid) {
            entry.hints.add(kind);
        }
    }

    /// What `find` makes of the merged lists of now, without holding them longer.
    pub(super) fn look<T>(&self, find: impl FnOnce(&Merged) -> T) -> T {
        find(&self.merged.load())
    }

    /// The merged lists of now.
    pub fn merged(&self) -> Arc<Merged> {
        self.merged.load_full()
    }

    /// Follows changes of the merged lists. What changed, the lists' marks say.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Follows every change of what is known of any target.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    /// The merged lists once every target's list of a kind is there, or after the longest `connectSeconds` of those
    /// that were not.
    pub async fn settled(&self, kind: Kind) -> Arc<Merged> {
        self.until(|merged| merged.list_pending(kind)).await
    }

    /// The merged lists once every target said what it announces, or after the longest `connectSeconds` of those that
    /// did not.
    pub async fn introduced(&self) -> Arc<Merged> {
        self.until(Merged::introductions_pending).await
    }

    async fn until(&self, pending: impl Fn(&Merged) -> Option<u32>) -> Arc<Merged> {
        let mut news = self.news();
        let merged = self.merged();
        let Some(bound) = pending(&merged) else { return merged };
        let settle = news.wait_for(|_| pending(&self.merged.load()).is_none());
        // After the bound the lists are what they are: a silent target delays nobody longer (case 034).
        let settled = timeout(Duration::from_secs(bound.into()), settle).await;
        tracing::trace!(in_time = settled.is_ok(), "catalogue settled");
        drop(settled);
        self.merged()
    }
}
