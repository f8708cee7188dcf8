//! Runs one kind in one scope: queue -> gather -> reconcile -> report. The only use of kube's controller machinery.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream};
use kube::runtime::{
    controller::{self, Action, ReconcileRequest},
    reflector::{ObjectRef, Store},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    context::Context,
    error::Error,
    gather::gather,
    key::Key,
    kind::Kind,
    metrics::Metrics,
    queue::{self, Item},
    reconcile::{failed, guarded},
    stores::Guarded,
};

/// How long equal wakes are gathered: a burst of changes makes one reconcile, still well within a second. (kube's own
/// debounce waits until wakes stop coming: a stream of them would starve it.)
const WINDOW: Duration = Duration::from_millis(100);

/// How many objects of a kind are reconciled at once; one object never twice at once.
const CONCURRENCY: u16 = 8;

/// Reconciles until the drain, then ends what it is at. Begins when what it reads is there: after `seen`.
pub async fn run<K: Kind>(
    ctx: Arc<Context>,
    (store, queue): (Store<Guarded<K>>, mpsc::Receiver<Item>),
    seen: impl Future<Output = ()> + Send,
    drain: CancellationToken,
) {
    // Deciding before everything was seen once would take what exists for missing.
    tokio::select! {
        biased;
        () = drain.cancelled() => return,
        () = seen => {}
    }
    tracing::info!(kind = K::KIND, objects = store.len(), "reconciling");
    let requests = requests::<K>(store.clone(), queue, ctx.metrics.clone(), drain);
    let reconcile = |object: Arc<Guarded<K>>,
                     ctx: Arc<Context>|
     -> BoxFuture<'static, Result<Action, Error>> { Box::pin(guarded(object, ctx)) };
    let policy = |object: Arc<Guarded<K>>, error: &Error, ctx: Arc<Context>| failed(&object, error, &ctx);
    let config = controller::Config::default().debounce(Duration::ZERO).concurrency(CONCURRENCY);
    controller::applier(reconcile, policy, ctx.clone(), store, requests, config)
        .for_each(|result| {
            report::<K>(result, &ctx);
            std::future::ready(())
        })
        .await;
}

fn requests<K: Kind>(
    store: Store<Guarded<K>>,
    queue: mpsc::Receiver<Item>,
    metrics: Metrics,
    drain: CancellationToken,
) -> impl stream::Stream<Item = Result<ReconcileRequest<Guarded<K>>, Infallible>> {
    let items = stream::unfold(queue, |mut queue| async { Some((queue.recv().await?, queue)) })
        .inspect(move |_| metrics.took_wake(K::KIND));
    // The drain ends it from outside: what is still being gathered then is the successor's.
    gather(items, WINDOW, queue::CAPACITY).take_until(drain.cancelled_owned()).flat_map(move |batch| {
        let objects: HashSet<ObjectRef<Guarded<K>>> = batch
            .into_iter()
            .flat_map(|item| match item {
                Item::One(key) => vec![ObjectRef::new(&key.name).within(&key.namespace)],
                Item::Every => store.state().iter().map(|object| ObjectRef::from_obj(&**object)).collect(),
            })
            .collect();
        stream::iter(objects.into_iter().map(|object| Ok(ReconcileRequest::from(object))))
    })
}

/// What came of one reconcile.
type Reconciled<K> = Result<(ObjectRef<Guarded<K>>, Action), controller::Error<Error, Infallible>>;

fn report<K: Kind>(result: Reconciled<K>, ctx: &Context) {
    match result {
        Ok((object, _)) => tracing::debug!(kind = K::KIND, %object, "reconciled"),
        Err(controller::Error::ObjectNotFound(gone)) => {
            let key = Key::new(gone.namespace.clone().unwrap_or_default(), &gone.name);
            ctx.ledger.forget((K::KIND, &key));
            tracing::debug!(kind = K::KIND, object = %key, "gone");
        }
        // Logged where the wait before the next attempt is decided.
        Err(controller::Error::ReconcilerFailed(..)) => {}
        Err(controller::Error::QueueError(never)) => match never {},
        Err(controller::Error::RunnerError(error)) => {
            tracing::error!(kind = K::KIND, %error, "the controller's runner failed");
        }
    }
}
