//! Ends of sessions under a store that fails: none is lost, none is undone, and each is counted once.

use std::sync::{Arc, atomic::Ordering};

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use moored::{
    fault::EndReason,
    metrics::Metrics,
    session::{
        record::{Principal, Record},
        table::Sessions,
    },
    store::{Records, Store},
    version::LATEST,
};
use mooring_runtime::{Clock, Tasks, Timestamp};
use prometheus::TextEncoder;
use tokio::time::{Duration, timeout};

use super::replica::{AWAY, Replica, SLOW, WELL, config, faulty, until};

/// A DELETE whose client waits for a moment and then hangs up.
async fn hang_up_on_delete(replica: &Replica, session: &str) {
    let request =
        Request::builder().method(Method::DELETE).uri(&replica.url).header("mcp-session-id", session);
    let answer = replica.client.request(request.body(Full::default()).unwrap());
    assert!(timeout(Duration::from_millis(100), answer).await.is_err(), "the store is slow");
}

#[tokio::test]
async fn a_client_that_hangs_up_on_its_delete_leaves_a_session_that_can_be_ended() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    let session = replica.session().await;
    state.store(SLOW, Ordering::SeqCst);
    hang_up_on_delete(&replica, &session).await;
    state.store(WELL, Ordering::SeqCst);
    // The first DELETE is under way still: this one waits for it and tells what it came to, which is no success.
    assert_eq!(replica.delete(&session).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(replica.ping(&session).await, StatusCode::OK);
    assert_eq!(replica.delete(&session).await, StatusCode::NO_CONTENT);
    assert_eq!(replica.ping(&session).await, StatusCode::NOT_FOUND);
    until("its release", || replica.gateway.sessions.is_empty()).await;
}

#[tokio::test]
async fn a_session_whose_time_came_during_a_delete_that_failed_still_expires() {
    let (store, state) = faulty();
    let mut short = config();
    short.session.timeout_seconds = 1;
    let replica = Replica::start_with(&store, short).await;
    let session = replica.session().await;
    state.store(SLOW, Ordering::SeqCst);
    hang_up_on_delete(&replica, &session).await;
    state.store(WELL, Ordering::SeqCst);
    until("its expiry", || replica.gateway.sessions.is_empty()).await;
    assert!(
        (replica.metric(r#"mooring_sessions_ended_total{gateway="tools",reason="expired"}"#) - 1.0).abs()
            < 0.1
    );
}

#[tokio::test]
async fn a_session_that_ended_while_the_store_was_away_is_not_read_through_again() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    let session = replica.session().await;
    state.store(AWAY, Ordering::SeqCst);
    replica.gateway.sessions.end_all(EndReason::GatewayDeleted).await;
    assert_eq!(replica.ping(&session).await, StatusCode::NOT_FOUND);
    state.store(WELL, Ordering::SeqCst);
    assert_eq!(replica.ping(&session).await, StatusCode::NOT_FOUND, "its record is still stored");
}

/// Lets paused time pass.
pub(crate) async fn pass(seconds: u64) {
    assert!(timeout(Duration::from_secs(seconds), std::future::pending::<()>()).await.is_err());
}

fn record(expires: Timestamp) -> Arc<Record> {
    Arc::new(Record {
        principal: Principal::Anonymous,
        created: Timestamp(0),
        expires,
        idle: None,
        used: Timestamp(0),
        version: LATEST,
        client_info: "{}".into(),
        capabilities: moored::capabilities::ClientCapabilities::default(),
        log_level: None,
        targets: std::collections::BTreeMap::new(),
    })
}

pub(crate) fn ended(metrics: &Metrics, reason: &str) -> bool {
    let text = TextEncoder::new().encode_to_string(&metrics.registry.gather()).unwrap();
    let once = format!("mooring_sessions_ended_total{{gateway=\"tools\",reason=\"{reason}\"}} 1");
    text.lines().any(|line| line == once)
}

#[tokio::test(start_paused = true)]
async fn the_sweep_ends_what_no_replica_holds_once_however_many_sweep() {
    let (store, _) = faulty();
    let key = moored::session::id::SessionId::mint().unwrap().key();
    store.memory.compare_and_set(key, None, record(Timestamp(30_000))).await.unwrap();
    let all = [Metrics::new().unwrap(), Metrics::new().unwrap()];
    let replicas: Vec<Arc<Sessions>> = all
        .iter()
        .map(|metrics| {
            let handles = Arc::new(metrics.gateway("tools"));
            Sessions::start(
                Store::new(store.clone()),
                moored::session::table::Around {
                    clock: Clock::tokio(Timestamp(0)),
                    tasks: &Tasks::default(),
                    budget: moored::receive::Budget::new(1 << 20),
                },
                handles,
                moored::session::table::Identity::new().unwrap(),
            )
        })
        .collect();
    pass(29).await;
    assert!(store.memory.get(key).await.unwrap().is_some());
    pass(60).await;
    assert_eq!(store.memory.get(key).await.unwrap(), None);
    assert_eq!(all.iter().filter(|metrics| ended(metrics, "expired")).count(), 1);
    assert!(replicas.iter().all(|sessions| sessions.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn the_sweep_removes_the_record_of_a_session_that_ended_while_the_store_was_away() {
    let (store, state) = faulty();
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
    let opening = moored::session::table::Opening {
        principal: Principal::Anonymous,
        version: LATEST,
        client_info: "{}".into(),
        capabilities: moored::capabilities::ClientCapabilities::default(),
        timeout: Duration::from_secs(3600),
        seen: moored::catalog::merge::Marks::default(),
        idle: None,
        most: None,
    };
    let id = sessions.create(opening).await.unwrap();
    state.store(AWAY, Ordering::SeqCst);
    sessions.end_all(EndReason::GatewayDeleted).await;
    assert!(!sessions.is_empty() && !ended(&metrics, "gateway_deleted"), "whoever removes the record counts");
    state.store(WELL, Ordering::SeqCst);
    pass(61).await;
    assert_eq!(store.memory.get(id.key()).await.unwrap(), None);
    assert!(sessions.is_empty() && ended(&metrics, "gateway_deleted"));
}
