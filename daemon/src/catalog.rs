//! What targets offer, learnt by the gateway for itself, apart from any client's session (DESIGN §3.4).
//!
//! One view for each version and set of capabilities that clients announced, since a target is never offered a newer
//! version than the client's and may list by what the client can do; in each view one catalogue session for each
//! target. Views are bounded in number, and one that nobody uses ends.

pub mod capabilities;
pub mod item;
pub mod kind;
pub mod listing;
pub mod lists;
pub mod merge;
pub mod pages;
pub mod per_session;
pub mod report;
pub mod session;
pub mod template;
pub mod view;

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::Duration,
};

use mooring_runtime::Tasks;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::view::View;
use crate::{
    capabilities::ClientCapabilities,
    config::snapshot::Snapshot,
    version::{VERSIONS, Version},
};

/// The most views at once; those without capabilities, one for each version, always have their place among them.
const MOST_VIEWS: usize = 32;
/// How long a view lives without use.
const UNUSED: Duration = Duration::from_secs(600);

/// The catalogue of one gateway.
#[derive(Debug)]
pub struct Catalog {
    views: Arc<Views>,
    /// Ends the task that ends views.
    _expiry: DropGuard,
}

#[derive(Debug)]
struct Views {
    tasks: Tasks,
    marks: Arc<AtomicU64>,
    table: Mutex<Table>,
    /// Fires when a view begins.
    begun: Notify,
}

/// Under one lock, so that no view begins with a configuration older than the others'.
#[derive(Debug)]
struct Table {
    /// The newest.
    snapshot: Arc<Snapshot>,
    held: HashMap<Key, Held>,
    /// Views that made room or were not used, while somebody who remembers one may still have taken it up.
    parted: Vec<Weak<View>>,
}

type Key = (Version, ClientCapabilities);

#[derive(Debug)]
struct Held {
    view: Arc<View>,
    /// When somebody was last seen to have it, or asked the table for it.
    seen_in_use: Instant,
}

impl Held {
    /// Whether a stream or a request has it.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.view) > 1
    }

    /// Until when it lives where nobody uses it any more.
    fn until(&self) -> Instant {
        self.seen_in_use.max(self.view.used()) + UNUSED
    }
}

impl Catalog {
    /// The catalogue of a configuration, without views yet.
    pub fn new(tasks: &Tasks, snapshot: &Arc<Snapshot>) -> Self {
        let table = Table { snapshot: Arc::clone(snapshot), held: HashMap::new(), parted: Vec::new() };
        let views = Arc::new(Views {
            tasks: tasks.clone(),
            marks: Arc::new(AtomicU64::new(1)),
            table: Mutex::new(table),
            begun: Notify::new(),
        });
        let stop = tasks.drain.child_token();
        tasks.spawn(expire(Arc::downgrade(&views), stop.clone()));
        Self { views, _expiry: stop.drop_guard() }
    }

    /// The view of one version and these capabilities, begun now where no client had them yet.
    ///
    /// Beyond the bound the view that was used least recently and that nobody has now makes room; where all are in use,
    /// it is the view of that version without capabilities. Whoever holds a view keeps it.
    pub fn view(&self, version: Version, capabilities: &ClientCapabilities) -> Arc<View> {
        let now = Instant::now();
        let mut table = self.views.table.lock();
        let mut key = (version, capabilities.clone());
        if !table.held.contains_key(&key) && !is_plain(&key) && !table.make_room() {
            key = (version, ClientCapabilities::default());
        }
        let Table { snapshot, held, parted: _ } = &mut *table;
        let held = held.entry(key).or_insert_with_key(|(version, capabilities)| {
            let Views { tasks, marks, table: _, begun } = &*self.views;
            begun.notify_one();
            Held { view: View::new(*version, capabilities.clone(), tasks, marks, snapshot), seen_in_use: now }
        });
        held.seen_in_use = now;
        held.view.touch(now);
        Arc::clone(&held.view)
    }

    /// Takes a new configuration into every view that lives.
    pub fn configure(&self, snapshot: &Arc<Snapshot>) {
        let mut table = self.views.table.lock();
        table.snapshot = Arc::clone(snapshot);
        for held in table.held.values() {
            held.view.configure(snapshot);
        }
        for view in table.parted.iter().filter_map(Weak::upgrade) {
            view.configure(snapshot);
        }
    }
}

fn is_plain((_, capabilities): &Key) -> bool {
    *capabilities == ClientCapabilities::default()
}

impl Table {
    /// Makes room for one more view with capabilities; `false` where all are in use.
    fn make_room(&mut self) -> bool {
        let others = || self.held.iter().filter(|(key, _)| !is_plain(key));
        if others().count() < MOST_VIEWS - VERSIONS.len() {
            return true;
        }
        let oldest = others().filter(|(_, held)| !held.in_use()).min_by_key(|(_, held)| held.view.used());
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return false };
        self.part(&key)
    }

    /// Takes a view out. It ends with whoever has it still.
    fn part(&mut self, key: &Key) -> bool {
        self.parted.retain(|view| view.strong_count() > 0);
        let Some(held) = self.held.remove(key) else { return false };
        self.parted.push(Arc::downgrade(&held.view));
        true
    }

    /// Ends the views that were not used for their time, and says when to look again. The one that reports are made of
    /// stays.
    fn end_unused(&mut self, now: Instant) -> Option<Instant> {
        for held in self.held.values_mut().filter(|held| held.in_use()) {
            held.seen_in_use = now;
        }
        let unused = self.held.iter().filter(|(_, held)| !held.view.is_reported() && held.until() <= now);
        let unused: Vec<Key> = unused.map(|(key, _)| key.clone()).collect();
        for key in unused {
            self.part(&key);
        }
        self.held.values().filter(|held| !held.view.is_reported()).map(Held::until).min()
    }
}

/// Ends views that nobody uses, for as long as there is the catalogue.
async fn expire(views: Weak<Views>, stop: CancellationToken) {
    loop {
        let Some(views) = views.upgrade() else { return };
        let next = views.table.lock().end_unused(Instant::now());
        let begun = views.begun.notified();
        let wake = async {
            match next {
                Some(next) => drop(timeout_at(next, begun).await),
                None => begun.await,
            }
        };
        if stop.run_until_cancelled(wake).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::{gateway_config, shared},
        version::LATEST,
    };

    fn catalog() -> Catalog {
        let shared = shared();
        let snapshot =
            Snapshot::new(gateway_config(), crate::config::secrets::Secrets::default(), None, &shared);
        Catalog::new(&shared.tasks, &Arc::new(snapshot))
    }

    fn able(n: usize) -> ClientCapabilities {
        ClientCapabilities::parse(format!(r#"{{"experimental":{{"n":{n}}}}}"#).as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn equal_capabilities_share_a_view_and_others_have_their_own() {
        let catalog = catalog();
        let view = catalog.view(LATEST, &able(1));
        assert!(Arc::ptr_eq(&view, &catalog.view(LATEST, &able(1))));
        assert!(!Arc::ptr_eq(&view, &catalog.view(LATEST, &able(2))));
        assert!(!Arc::ptr_eq(&view, &catalog.view(Version::V2025_06_18, &able(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_bound_the_least_recently_used_makes_room_and_where_all_are_used_the_plain_one_is_shared()
     {
        let catalog = catalog();
        let most = MOST_VIEWS - VERSIONS.len();
        let mut held = Vec::new();
        for n in 0..most {
            held.push(catalog.view(LATEST, &able(n)));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let over = catalog.view(LATEST, &able(most));
        assert!(over.is_reported(), "all are in use");
        let (first, second) = (Arc::downgrade(&held[0]), Arc::downgrade(&held[1]));
        held.drain(..2);
        assert!(!catalog.view(LATEST, &able(most)).is_reported());
        assert_eq!((first.strong_count(), second.strong_count()), (0, 1));
        assert_eq!(catalog.views.table.lock().held.len(), most + 1);
    }

    #[tokio::test]
    async fn a_view_that_made_room_follows_the_configuration_for_as_long_as_somebody_has_it() {
        let catalog = catalog();
        let view = catalog.view(LATEST, &able(1));
        assert!(catalog.views.table.lock().part(&(LATEST, able(1))));
        let mut config = gateway_config();
        config.targets = vec![crate::testing::target_config("a")];
        let secrets = crate::config::secrets::Secrets::default();
        catalog.configure(&Arc::new(Snapshot::new(config, secrets, None, &shared())));
        assert_eq!(view.merged().listings.len(), 1);
        drop(view);
        catalog.view(LATEST, &able(2));
        assert!(catalog.views.table.lock().part(&(LATEST, able(2))));
        assert_eq!(catalog.views.table.lock().parted.len(), 1, "the first is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_without_use_ends_after_ten_minutes_and_one_that_somebody_holds_does_not() {
        let catalog = catalog();
        let reported = Arc::downgrade(&catalog.view(LATEST, &ClientCapabilities::default()));
        let unused = Arc::downgrade(&catalog.view(LATEST, &able(1)));
        let held = catalog.view(LATEST, &able(2));
        let weak = Arc::downgrade(&held);
        // The runtime has time stand still while anything can run, so the task has seen all that is due.
        tokio::time::sleep_until(Instant::now() + UNUSED - Duration::from_secs(1)).await;
        assert_eq!(unused.strong_count(), 1);
        tokio::time::sleep_until(Instant::now() + Duration::from_secs(2)).await;
        assert_eq!((unused.strong_count(), weak.strong_count(), reported.strong_count()), (0, 2, 1));
        drop(held);
        tokio::time::sleep_until(Instant::now() + 2 * UNUSED).await;
        assert_eq!((weak.strong_count(), reported.strong_count()), (0, 1));
    }
}
