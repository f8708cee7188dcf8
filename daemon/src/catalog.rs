//! What targets offer, learnt by the gateway for itself, apart from any client's session (DESIGN §3.4).
//!
//! One view for each version that clients negotiated, since a target is never offered a newer version than the
//! client's; in each view one catalogue session for each target. Views are as many as there are versions.

pub mod listing;
pub mod merge;
pub mod report;
pub mod session;
pub mod tools;

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use mooring_runtime::Tasks;
use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use self::{listing::Listing, merge::Merged};
use crate::{config::snapshot::Snapshot, version::Version};

/// The catalogue of one gateway.
#[derive(Debug)]
pub struct Catalog {
    tasks: Tasks,
    views: Mutex<Views>,
}

/// Under one lock, so that no view begins with a configuration older than the others'.
#[derive(Debug)]
struct Views {
    /// The newest.
    snapshot: Arc<Snapshot>,
    by_version: HashMap<Version, Arc<View>>,
}

/// The catalogue as clients of one version see it.
#[derive(Debug)]
pub struct View {
    version: Version,
    tasks: Tasks,
    state: Mutex<State>,
    merged: ArcSwap<Merged>,
    /// The merged list's generation; it grows when, and only when, the list changed.
    generation: watch::Sender<u64>,
    /// Fires at every change of any listing, whether the merged list changed or not.
    heard: watch::Sender<u64>,
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
    /// Ends the catalogue session.
    stop: CancellationToken,
}

impl Catalog {
    /// The catalogue of a configuration, without views yet.
    pub fn new(tasks: &Tasks, snapshot: &Arc<Snapshot>) -> Self {
        let views = Views { snapshot: Arc::clone(snapshot), by_version: HashMap::new() };
        Self { tasks: tasks.clone(), views: Mutex::new(views) }
    }

    /// The view of one version, begun now where no client had that version yet.
    pub fn view(&self, version: Version) -> Arc<View> {
        let mut views = self.views.lock();
        let Views { snapshot, by_version } = &mut *views;
        let view = by_version.entry(version).or_insert_with(|| {
            let view = View::new(version, &self.tasks, snapshot);
            view.configure(snapshot);
            view
        });
        Arc::clone(view)
    }

    /// Takes a new configuration into every view.
    pub fn configure(&self, snapshot: &Arc<Snapshot>) {
        let mut views = self.views.lock();
        views.snapshot = Arc::clone(snapshot);
        for view in views.by_version.values() {
            view.configure(snapshot);
        }
    }
}

impl View {
    fn new(version: Version, tasks: &Tasks, snapshot: &Arc<Snapshot>) -> Arc<Self> {
        Arc::new(Self {
            version,
            tasks: tasks.clone(),
            state: Mutex::new(State { snapshot: Arc::clone(snapshot), entries: HashMap::new() }),
            merged: ArcSwap::from_pointee(Merged::default()),
            generation: watch::Sender::new(0),
            heard: watch::Sender::new(0),
        })
    }

    /// Begins catalogue sessions for new and changed targets and ends those of removed ones.
    fn configure(self: &Arc<Self>, snapshot: &Arc<Snapshot>) {
        let mut state = self.state.lock();
        state.snapshot = Arc::clone(snapshot);
        state.entries.retain(|uid, entry| {
            let kept = snapshot.targets.iter().any(|target| target.config.uid == *uid);
            if !kept {
                entry.stop.cancel();
            }
            kept
        });
        for target in &snapshot.targets {
            let known = state.entries.get(&target.config.uid).map(|entry| &entry.listing);
            // The same configuration keeps its `Arc`; another one is asked anew, its old tools shown until it answers.
            if known.is_some_and(|listing| listing.is_of(target)) {
                continue;
            }
            let listing = Arc::new(Listing::pending(target, known.and_then(|listing| listing.tools())));
            let stop = self.tasks.drain.child_token();
            if let Some(old) =
                state.entries.insert(target.config.uid.clone(), Entry { listing, stop: stop.clone() })
            {
                old.stop.cancel();
            }
            let view: Weak<Self> = Arc::downgrade(self);
            let tasks = self.tasks.clone();
            self.tasks.spawn(session::run(view, Arc::clone(target), self.version, tasks, stop));
        }
        self.merge(&state);
    }

    /// Takes what a catalogue session learnt; nothing where its target was reconfigured meanwhile.
    fn publish(&self, listing: Listing) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(listing.uid())
            && entry.listing.is_of_same_target(&listing)
        {
            entry.listing = Arc::new(listing);
            self.merge(&state);
        }
    }

    fn merge(&self, state: &State) {
        let listings: Vec<Arc<Listing>> = state
            .snapshot
            .targets
            .iter()
            .filter_map(|target| state.entries.get(&target.config.uid))
            .map(|entry| Arc::clone(&entry.listing))
            .collect();
        let merged = merge::merge(&state.snapshot.router, &listings);
        let changed = !merged.same_list(&self.merged.load());
        self.merged.store(Arc::new(merged));
        if changed {
            self.generation.send_modify(|generation| *generation += 1);
        }
        self.heard.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The merged list of now.
    pub fn merged(&self) -> Arc<Merged> {
        self.merged.load_full()
    }

    /// The generation of the merged list.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Follows the generation.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Follows every change of any listing.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    /// The merged list once every target was heard of, or after the longest `connectSeconds` of those that were not.
    pub async fn settled(&self) -> Arc<Merged> {
        let mut changes = self.changes();
        let merged = self.merged();
        let Some(bound) = merged.pending else { return merged };
        let settle = changes.wait_for(|_| self.merged.load().pending.is_none());
        // After the bound the list is what it is: a silent target delays nobody longer (case 034).
        let settled = timeout(Duration::from_secs(bound.into()), settle).await;
        tracing::trace!(in_time = settled.is_ok(), "catalogue settled");
        drop(settled);
        self.merged()
    }
}
