//! One watch: from the API server into a store, and from each change to the objects it concerns. Ends at the
//! drain only: an error is logged, counted, and the watch begun again after a while.

use std::{fmt::Debug, pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use kube::{
    Api, Resource,
    api::ListParams,
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
    references::{Wanted, is_left_out},
    triggers::{Change, Wakes},
};

/// How long a watch that keeps failing waits at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long the reading of one object may take.
const READ_TIME: Duration = Duration::from_secs(10);

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
    /// What is done with an object before it is kept.
    pub keep: Keep<K>,
    /// Told of every change once it is in the store.
    pub told: Told,
}

/// What is kept of the objects that are seen.
#[derive(Debug)]
pub enum Keep<K> {
    /// All of each.
    Everything,
    /// All of those that are referred to; see [`crate::references`].
    Referenced(Referenced<K>),
}

/// The objects that are referred to, of those that are seen.
#[derive(Debug)]
pub struct Referenced<K> {
    /// Which these are.
    pub wanted: Wanted,
    /// Leaves out what is not kept.
    pub trim: fn(&mut K, &Wanted),
}

/// Told of every change once it is in the store.
pub type Told = Arc<dyn Fn() + Send + Sync>;

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
    pub async fn run(
        mut self,
        concerns: impl Fn(&Change<'_, K>) -> Wakes + Send + Sync,
        drain: CancellationToken,
    ) {
        let kind = K::kind(&self.shelf.dynamic).into_owned();
        let store = self.shelf.writer.as_reader();
        let mut events = pin!(watcher::watcher(self.api.clone(), self.config.clone()));
        let (mut failures, mut whole) = (0_u32, true);
        let mut changes = match &self.keep {
            Keep::Everything => None,
            Keep::Referenced(referenced) => Some(referenced.wanted.changes()),
        };
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = changed(changes.as_mut(), whole) => {
                    let (woken, all) = self.refer(&store, &concerns).await;
                    whole = all;
                    tokio::select! {
                        () = self.queues.wake(Wake::Some(woken)) => {}
                        () = drain.cancelled() => return,
                    }
                    continue;
                }
                () = drain.cancelled() => return,
            };
            let event = match event {
                Some(Ok(event)) => event.modify(|object| self.trim(object)),
                Some(Err(error)) => {
                    failures = failures.saturating_add(1);
                    // A stream that is not polled asks nothing.
                    if timeout(self.failed(&kind, &error, failures), drain.cancelled()).await.is_ok() {
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
            if !matches!(event, Event::Init | Event::InitApply(_)) {
                (self.told)();
            }
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

impl<K> Watch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Debug + Send + Sync,
{
    /// Leaves out what is not kept.
    fn trim(&self, object: &mut K) {
        object.meta_mut().managed_fields = None;
        if let Keep::Referenced(Referenced { wanted, trim }) = &self.keep {
            trim(object, wanted);
        }
    }

    /// Counts and tells a failure; says how long the watch waits then.
    fn failed(&self, kind: &str, error: &watcher::Error, failures: u32) -> Duration {
        self.metrics.watch_failed(kind);
        tracing::warn!(kind, error = says(error), failures, "a watch failed and is begun again");
        backoff::delay(failures, kind).min(LONGEST_WAIT)
    }

    /// Reads the objects that are referred to now and were left out when they were seen, each once; and leaves out those
    /// that nothing refers to any more. False where some could not be read.
    async fn refer(
        &mut self,
        store: &Store<K>,
        concerns: &(impl Fn(&Change<'_, K>) -> Wakes + Send + Sync),
    ) -> (Wakes, bool) {
        let (mut woken, mut whole) = (Wakes::default(), true);
        let Keep::Referenced(Referenced { wanted, trim }) = &self.keep else { return (woken, whole) };
        for old in store.state() {
            let was_left_out = is_left_out(old.meta());
            let mut now = (*old).clone();
            trim(&mut now, wanted);
            // Trimming marks what is left out and drops the mark of what is not.
            if is_left_out(now.meta()) == was_left_out {
                continue;
            }
            if was_left_out {
                let meta = old.meta();
                let api = self.api.clone();
                let (name, namespace) = (meta.name.as_deref().unwrap_or_default(), meta.namespace.as_deref());
                match timeout(READ_TIME, read(&api, name, namespace)).await {
                    Ok(Ok(Some(mut object))) => {
                        self.trim(&mut object);
                        now = object;
                    }
                    // Its deletion is on its way.
                    Ok(Ok(None)) => continue,
                    Ok(Err(error)) => {
                        tracing::warn!(kind = %K::kind(&self.shelf.dynamic), name, error = cause(&error), "an object that is referred to cannot be read");
                        whole = false;
                        continue;
                    }
                    Err(_) => {
                        whole = false;
                        continue;
                    }
                }
            }
            let event = Event::Apply(now);
            self.shelf.writer.apply_watcher_event(&event);
            if let Event::Apply(now) = &event {
                let Wakes { gateways, targets, agents } =
                    concerns(&Change { old: Some(&old), new: Some(now) });
                woken.gateways.extend(gateways);
                woken.targets.extend(targets);
                woken.agents.extend(agents);
            }
        }
        (woken, whole)
    }
}

/// Reads one object by its name, where the watch is of a whole cluster, too.
async fn read<K>(api: &Api<K>, name: &str, namespace: Option<&str>) -> kube::Result<Option<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let fields = namespace.map_or_else(
        || format!("metadata.name={name}"),
        |namespace| format!("metadata.name={name},metadata.namespace={namespace}"),
    );
    Ok(api.list(&ListParams::default().fields(&fields)).await?.items.pop())
}

/// Returns at the next change of what is referred to, or, where not all of it could be read, after a while; never, where
/// that is nothing to this watch.
async fn changed(changes: Option<&mut tokio::sync::watch::Receiver<u64>>, whole: bool) {
    let Some(changes) = changes else { return std::future::pending().await };
    let change = async {
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    if whole {
        change.await;
    } else {
        drop(timeout(READ_TIME, change).await);
    }
}

fn previous<K>(store: &Store<K>, event: &Event<K>, dynamic: &K::DynamicType) -> Option<Arc<K>>
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
