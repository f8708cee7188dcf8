//! One watch: from the API server into a store, and from each change to the objects it concerns. Ends at the
//! drain only: an error is logged, counted, and the watch begun again after a while.

use std::{fmt::Debug, pin::pin, time::Duration};

use futures_util::StreamExt;
use kube::{
    Api, Resource,
    runtime::{
        reflector::{ObjectRef, Store, store::Writer},
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    backoff,
    metrics::Metrics,
    queue::{Queues, Wake},
    triggers::{Change, Wakes},
};

/// How long a watch that keeps failing waits at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Where the objects of one watch are kept.
pub struct Shelf<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    /// The store's writing end.
    pub writer: Writer<K>,
    /// Cancelled when everything has been seen once.
    pub seen: CancellationToken,
    /// The objects' type, where that is not in `K`.
    pub dynamic: K::DynamicType,
}

impl<K> Shelf<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    /// An empty one.
    pub fn new(dynamic: K::DynamicType) -> Self {
        Self { writer: Writer::new(dynamic.clone()), seen: CancellationToken::new(), dynamic }
    }
}

impl<K> Debug for Shelf<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").field("kind", &K::kind(&self.dynamic)).finish_non_exhaustive()
    }
}

/// A watch that has not begun.
pub struct Watch<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    /// What is watched.
    pub api: Api<K>,
    /// Which of it.
    pub config: watcher::Config,
    /// Where it is kept.
    pub shelf: Shelf<K>,
    /// Where wakes go.
    pub queues: Queues,
    /// Where errors are counted.
    pub metrics: Metrics,
}

impl<K> Debug for Watch<K>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("kind", &K::kind(&self.shelf.dynamic)).finish_non_exhaustive()
    }
}

impl<K> Watch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Debug + Send + Sync,
{
    /// Watches until the drain. `concerns` says whom a change concerns.
    pub async fn run(mut self, concerns: impl Fn(&Change<'_, K>) -> Wakes + Send, drain: CancellationToken) {
        let kind = K::kind(&self.shelf.dynamic).into_owned();
        let store = self.shelf.writer.as_reader();
        let mut events = pin!(watcher::watcher(self.api.clone(), self.config.clone()));
        let mut failures = 0_u32;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = drain.cancelled() => return,
            };
            let event = match event {
                Some(Ok(event)) => event.modify(|object| object.meta_mut().managed_fields = None),
                Some(Err(error)) => {
                    self.metrics.watch_failed(&kind);
                    failures = failures.saturating_add(1);
                    let wait = backoff::delay(failures, &kind).min(LONGEST_WAIT);
                    tracing::warn!(kind, error = says(&error), failures, "a watch failed and is begun again");
                    // A stream that is not polled asks nothing.
                    if timeout(wait, drain.cancelled()).await.is_ok() {
                        return;
                    }
                    continue;
                }
                None => return,
            };
            // A list that only begins proves nothing; one that ends, or an event, that the watch works again.
            if !matches!(event, Event::Init | Event::InitApply(_)) {
                failures = 0;
            }
            let old = previous(&store, &event, &self.shelf.dynamic);
            self.shelf.writer.apply_watcher_event(&event);
            let woken = match &event {
                Event::Apply(new) => Wake::Some(concerns(&Change { old: old.as_deref(), new: Some(new) })),
                Event::Delete(gone) => {
                    Wake::Some(concerns(&Change { old: old.as_deref().or(Some(gone)), new: None }))
                }
                // What was missed in between is not told: everything is looked at again.
                Event::InitDone => {
                    self.shelf.seen.cancel();
                    Wake::All
                }
                Event::Init | Event::InitApply(_) => continue,
            };
            tokio::select! {
                () = self.queues.wake(woken) => {}
                () = drain.cancelled() => return,
            }
        }
    }
}

fn previous<K>(store: &Store<K>, event: &Event<K>, dynamic: &K::DynamicType) -> Option<std::sync::Arc<K>>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    match event {
        Event::Apply(object) | Event::Delete(object) => {
            store.get(&ObjectRef::from_obj_with(object, dynamic.clone()))
        }
        Event::Init | Event::InitApply(_) | Event::InitDone => None,
    }
}

/// A watch's error in what the API server said: a missing right is named there.
fn says(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(source) => format!("it could not be listed: {}", cause(source)),
        watcher::Error::WatchStartFailed(source) => format!("it could not be begun: {}", cause(source)),
        watcher::Error::WatchFailed(source) => format!("it broke off: {}", cause(source)),
        watcher::Error::WatchError(status) => format!("it was ended: {}", status.message),
        watcher::Error::NoResourceVersion => "the list came without a version".to_owned(),
    }
}

fn cause(source: &kube::Error) -> String {
    if let kube::Error::Api(status) = source { status.message.clone() } else { source.to_string() }
}
