//! The idle timeout over a store that two replicas share: a use at one of them is a use at both, and the end is one.

use std::sync::{Arc, atomic::Ordering};

use moored::{
    metrics::Metrics,
    session::{
        id::SessionId,
        record::Principal,
        table::{Opening, Sessions},
    },
    store::{Records, Store},
    version::LATEST,
};
use mooring_runtime::{Clock, Tasks, Timestamp};
use tokio::time::Duration;

use super::{
    ends::{ended, pass},
    replica::{AWAY, Faulty, WELL, faulty},
};

const IDLE: &str = "idle";

/// One replica's sessions, and its metrics.
struct Replica {
    sessions: Arc<Sessions>,
    metrics: Metrics,
}

fn replica(store: &Faulty) -> Replica {
    let metrics = Metrics::new().unwrap();
    let handles = Arc::new(metrics.gateway("tools"));
    let sessions = Sessions::start(
        Store::new(store.clone()),
        moored::session::table::Around {
            clock: Clock::tokio(Timestamp(0)),
            tasks: &Tasks::default(),
            budget: moored::receive::Budget::new(1 << 20),
        },
        handles,
        moored::session::table::Identity::new().unwrap(),
    );
    Replica { sessions, metrics }
}

impl Replica {
    /// Begins a session that may go unused for 100 s.
    async fn begin(&self) -> SessionId {
        let opening = Opening {
            principal: Principal::Anonymous,
            version: LATEST,
            client_info: "{}".into(),
            capabilities: moored::capabilities::ClientCapabilities::default(),
            timeout: Duration::from_secs(3600),
            idle: Some(Duration::from_secs(100)),
            most: None,
            seen: moored::catalog::merge::Marks::default(),
        };
        self.sessions.create(opening).await.unwrap()
    }

    async fn uses(&self, id: &SessionId) -> bool {
        self.sessions.find(Some(&id.to_string()), &Principal::Anonymous).await.is_ok()
    }
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_ends_after_its_idle_timeout_and_an_open_stream_is_no_use() {
    let (store, _) = faulty();
    let here = replica(&store);
    let id = here.begin().await;
    let session = here.sessions.find(Some(&id.to_string()), &Principal::Anonymous).await.unwrap();
    let stream = here.sessions.open_stream(&session).unwrap();
    pass(99).await;
    assert_eq!(here.sessions.len(), 1);
    pass(2).await;
    assert!(here.sessions.is_empty() && ended(&here.metrics, IDLE));
    assert!(session.ended.is_cancelled(), "its stream is told");
    assert_eq!(store.memory.get(id.key()).await.unwrap(), None);
    assert!(!here.uses(&id).await);
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn a_request_in_flight_is_a_use_until_its_end() {
    let (store, _) = faulty();
    let (here, there) = (replica(&store), replica(&store));
    let id = here.begin().await;
    assert!(there.uses(&id).await);
    let session = here.sessions.find(Some(&id.to_string()), &Principal::Anonymous).await.unwrap();
    let request = here.sessions.admit(&session).unwrap();
    pass(1000).await;
    assert_eq!((here.sessions.len(), there.sessions.len()), (1, 1));
    drop(request);
    pass(98).await;
    assert_eq!((here.sessions.len(), there.sessions.len()), (1, 1));
    pass(30).await;
    assert!(here.sessions.is_empty() && there.sessions.is_empty());
    assert!(ended(&here.metrics, IDLE) != ended(&there.metrics, IDLE), "one of them counts it");
}

#[tokio::test(start_paused = true)]
async fn a_session_used_at_one_replica_is_not_idle_at_another() {
    let (store, _) = faulty();
    let (here, there) = (replica(&store), replica(&store));
    let id = here.begin().await;
    assert!(there.uses(&id).await);
    for _ in 0..30 {
        pass(30).await;
        assert!(here.uses(&id).await);
        assert_eq!(there.sessions.len(), 1);
    }
    // Of 30 uses in 900 s no more are written than there are quarters, and one revision is the first.
    let written = store.memory.get(id.key()).await.unwrap().unwrap().revision.0 - 1;
    assert!((9..=36).contains(&written), "{written} writes");
    pass(130).await;
    assert!(here.sessions.is_empty() && there.sessions.is_empty());
    assert!(ended(&here.metrics, IDLE) != ended(&there.metrics, IDLE), "one of them counts it");
}

#[tokio::test(start_paused = true)]
async fn a_use_that_another_replica_notes_at_the_last_moment_calls_the_end_off() {
    let (store, _) = faulty();
    let here = replica(&store);
    let id = here.begin().await;
    pass(99).await;
    // Another replica's use.
    let stored = store.memory.get(id.key()).await.unwrap().unwrap();
    let used = Arc::new(stored.record.used_at(Timestamp(99_000)).unwrap());
    store.memory.compare_and_set(id.key(), Some(stored.revision), used).await.unwrap();
    pass(90).await;
    assert_eq!(here.sessions.len(), 1, "it was used");
    pass(20).await;
    assert!(here.sessions.is_empty() && ended(&here.metrics, IDLE));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_idle_while_the_store_was_away_goes_on_where_it_was_used() {
    let (store, state) = faulty();
    let here = replica(&store);
    let id = here.begin().await;
    state.store(AWAY, Ordering::SeqCst);
    pass(110).await;
    assert!(!here.uses(&id).await, "here it is over");
    let stored = store.memory.get(id.key()).await.unwrap().unwrap();
    let used = Arc::new(stored.record.used_at(Timestamp(105_000)).unwrap());
    store.memory.compare_and_set(id.key(), Some(stored.revision), used).await.unwrap();
    state.store(WELL, Ordering::SeqCst);
    pass(61).await;
    assert!(here.uses(&id).await, "the sweep saw that it was used elsewhere");
    assert!(!ended(&here.metrics, IDLE));
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_that_no_replica_holds_is_swept_with_its_reason() {
    let (store, _) = faulty();
    let gone = replica(&store);
    let id = gone.begin().await;
    let stored = store.memory.get(id.key()).await.unwrap().unwrap();
    drop(gone);
    let (other, _) = faulty();
    other.memory.compare_and_set(id.key(), None, Arc::clone(&stored.record)).await.unwrap();
    let here = replica(&other);
    pass(119).await;
    assert!(other.memory.get(id.key()).await.unwrap().is_some());
    pass(70).await;
    assert_eq!(other.memory.get(id.key()).await.unwrap(), None);
    assert!(here.sessions.is_empty() && ended(&here.metrics, IDLE));
}
