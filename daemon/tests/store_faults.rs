//! A store that is slow, full or away, under a gateway that listens on loopback: what clients are answered then.
//! From inside, since no engine can be told from outside to fail.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "store_faults/ends.rs"]
mod ends;
#[path = "store_faults/idle.rs"]
mod idle;
#[path = "support/listening.rs"]
mod listening;
#[path = "store_faults/replica.rs"]
mod replica;
#[path = "store_faults/streams.rs"]
mod streams;
#[path = "support/gateway.rs"]
mod support;
#[path = "store_faults/targets.rs"]
mod targets;

use std::sync::atomic::Ordering;

use http::{Method, StatusCode};

use self::replica::{AWAY, FULL, PING, Replica, SLOW, WELL, faulty, until};

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_503_never_404_and_sessions_in_memory_go_on() {
    let (store, state) = faulty();
    let here = Replica::start(&store).await;
    let session = here.session().await;
    for fault in [AWAY, SLOW] {
        let there = Replica::start(&store).await;
        state.store(fault, Ordering::SeqCst);
        let (status, response) = there.send(Method::POST, Some(&session), PING).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        let error: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(error["id"], 2);
        assert_eq!(here.ping(&session).await, StatusCode::OK, "this replica holds it");
        state.store(WELL, Ordering::SeqCst);
        assert_eq!(there.ping(&session).await, StatusCode::OK, "it is read through once the store is back");
    }
}

#[tokio::test]
async fn a_full_or_absent_store_takes_no_new_session_and_leaves_nothing_behind() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    for fault in [FULL, AWAY, SLOW] {
        state.store(fault, Ordering::SeqCst);
        let (status, response) = replica.initialize().await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        assert!(!response.headers().contains_key("mcp-session-id"));
        assert!(replica.gateway.sessions.is_empty());
    }
    state.store(WELL, Ordering::SeqCst);
    assert_eq!(replica.initialize().await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_delete_that_cannot_be_stored_is_503_and_the_session_goes_on() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    let session = replica.session().await;
    state.store(AWAY, Ordering::SeqCst);
    assert_eq!(replica.send(Method::DELETE, Some(&session), "").await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(replica.ping(&session).await, StatusCode::OK);
    state.store(WELL, Ordering::SeqCst);
    assert_eq!(replica.send(Method::DELETE, Some(&session), "").await.0, StatusCode::NO_CONTENT);
    assert_eq!(replica.ping(&session).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_serves_on_any_replica_of_a_shared_store_and_ends_on_all_of_them() {
    let (store, _) = faulty();
    let (here, there) = (Replica::start(&store).await, Replica::start(&store).await);
    let session = here.session().await;
    assert_eq!(there.ping(&session).await, StatusCode::OK);
    assert_eq!(here.send(Method::DELETE, Some(&session), "").await.0, StatusCode::NO_CONTENT);
    // The removal reaches the other replica by the store's watch.
    until("its end there", || there.gateway.sessions.is_empty()).await;
    assert_eq!(there.ping(&session).await, StatusCode::NOT_FOUND);
}
