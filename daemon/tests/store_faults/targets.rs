//! Sessions of targets over a shared store: what one replica began, another goes on with and parts from.

use std::sync::atomic::Ordering;

use e2e::scripted::{Script, ScriptedServer};
use http::StatusCode;

use super::replica::{AWAY, Replica, WELL, config_with, faulty, until};

/// The handshakes of client sessions; the catalogue's go by another name.
fn handshakes(target: &ScriptedServer) -> usize {
    let name = |seen: &e2e::scripted::Seen| {
        seen.message.pointer("/params/clientInfo/name").is_some_and(|name| name == "t")
    };
    target.seen("initialize").iter().filter(|seen| name(seen)).count()
}

fn called_sessions(target: &ScriptedServer) -> Vec<Option<String>> {
    target.seen("tools/call").into_iter().map(|seen| seen.session).collect()
}

/// How often the target session of the client's calls was deleted.
fn deletes(target: &ScriptedServer) -> usize {
    let called = called_sessions(target);
    target.seen("DELETE").iter().filter(|seen| called.contains(&seen.session)).count()
}

#[tokio::test]
async fn a_second_replica_goes_on_with_the_target_session_and_only_one_ends_it() {
    let (store, _) = faulty();
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let here = Replica::start_with(&store, config_with(target.url())).await;
    let there = Replica::start_with(&store, config_with(target.url())).await;
    let session = here.session().await;
    assert_eq!(here.call(&session).await, StatusCode::OK);
    assert_eq!(there.call(&session).await, StatusCode::OK);
    assert_eq!(handshakes(&target), 1);
    let called = called_sessions(&target);
    assert!(called[0].is_some() && called[0] == called[1], "{called:?}");
    assert_eq!(there.delete(&session).await, StatusCode::NO_CONTENT);
    until("its end here", || here.gateway.sessions.is_empty()).await;
    until("the farewell", || deletes(&target) >= 1).await;
    let ended = |replica: &Replica| replica.metric("mooring_sessions_ended_total{");
    assert!((ended(&here) + ended(&there) - 1.0).abs() < 0.1, "{} and {}", ended(&here), ended(&there));
    // A farewell of the other would have begun before its session was gone; a handshake behind it bounds the wait.
    let after = here.session().await;
    assert_eq!(here.call(&after).await, StatusCode::OK);
    let of_first = target.seen("DELETE").iter().filter(|seen| seen.session == called[0]).count();
    assert_eq!(of_first, 1);
}

#[tokio::test]
async fn a_replica_that_never_used_a_target_parts_from_it_by_the_record() {
    let (store, _) = faulty();
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let here = Replica::start_with(&store, config_with(target.url())).await;
    let there = Replica::start_with(&store, config_with(target.url())).await;
    let session = here.session().await;
    assert_eq!(here.call(&session).await, StatusCode::OK);
    // Read through by the DELETE itself.
    assert_eq!(there.delete(&session).await, StatusCode::NO_CONTENT);
    until("the farewell", || deletes(&target) == 1).await;
}

#[tokio::test]
async fn a_target_session_that_could_not_be_stored_is_lost_aloud() {
    let (store, state) = faulty();
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let replica = Replica::start_with(&store, config_with(target.url())).await;
    for back in [AWAY, WELL] {
        let session = replica.session().await;
        let before = handshakes(&target);
        state.store(AWAY, Ordering::SeqCst);
        assert_eq!(replica.call(&session).await, StatusCode::OK, "a session in memory goes on");
        state.store(back, Ordering::SeqCst);
        target.forget_sessions();
        for _ in 0..2 {
            assert_eq!(replica.call(&session).await, StatusCode::NOT_FOUND);
        }
        assert_eq!(handshakes(&target), before + 1, "no new target session behind the client's back");
        state.store(WELL, Ordering::SeqCst);
    }
    let lost = replica.metric("mooring_target_sessions_lost_total{");
    assert!((lost - 2.0).abs() < 0.1, "sessions are counted, not refused calls: {lost}");
}
