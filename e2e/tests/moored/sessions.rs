//! A session towards its targets: what one target loses stays its own loss, and each end is told once to each target.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    client::{Answer, Client, Session},
    manifest::gateway_with,
    moored::Moored,
    process,
    scripted::{Interference, LostSession, RawAnswer, Script, ScriptedServer, Sessions},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// How many sessions the tests of many sessions begin and end.
const MANY: usize = 80;
/// How many of those that are to leave nothing behind: half of the report's thousand, for the time that they take. A
/// multiple of the tasks that run them.
const SESSIONS: usize = 504;

/// The target sessions that calls of clients were sent in, each once.
fn called_in(target: &ScriptedServer) -> BTreeSet<String> {
    target.seen("tools/call").into_iter().filter_map(|seen| seen.session).collect()
}

/// The target sessions that were deleted, in order.
fn deleted(target: &ScriptedServer) -> Vec<String> {
    target.seen("DELETE").into_iter().filter_map(|seen| seen.session).collect()
}

fn assert_lost(answer: &Answer, id: u64, target: &str) {
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let response = answer.response();
    let data = json!({"target": target, "reason": "target_session_lost"});
    assert_eq!(response.get("id"), Some(&json!(id)));
    assert_eq!((answer.error_code(), response.pointer("/error/data")), (Some(-32001), Some(&data)));
}

async fn use_both(client: &Client) -> Result<Session, Error> {
    let session = client.initialize().await?;
    for tool in ["a___echo", "b___echo"] {
        let answer = session.call(tool, json!({})).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, None), "{}", answer.text());
    }
    Ok(session)
}

// Case 001.
#[tokio::test]
async fn a_target_that_lost_its_session_is_refused_by_name_until_the_client_initialises_again() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let client = moored.client()?;
    let session = use_both(&client).await?;
    a.forget_sessions();
    assert_lost(&session.call("a___counter", json!({})).await?, 3, "a");
    assert_lost(&session.call("a___counter", json!({})).await?, 4, "a");
    assert_eq!(a.count("tools/call"), 2, "the first refused call reached the target, the second need not");

    // The other target goes on in its own session, and so does the client's.
    assert_eq!(session.call("b___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    assert_eq!(called_in(&b).len(), 1);

    let anew = use_both(&client).await?;
    assert_eq!(anew.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    assert_lost(&session.call("a___counter", json!({})).await?, 6, "a");
    let metrics = moored.metrics().await?;
    assert_eq!(
        metrics.sum("mooring_target_sessions_lost_total", &[("target", "a")]).to_bits(),
        1f64.to_bits()
    );

    // Only what a target still has is deleted there.
    let known = called_in(&b);
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    b.until("the old session's DELETE", |b| deleted(b).iter().any(|id| known.contains(id))).await?;
    assert_eq!(anew.delete().await?.status, StatusCode::NO_CONTENT);
    a.until("the new session's DELETE", |a| !deleted(a).is_empty()).await?;
    let lost = a.seen("tools/call").first().and_then(|seen| seen.session.clone()).unwrap_or_default();
    assert!(!deleted(&a).contains(&lost), "a forgotten session was deleted");
    Ok(())
}

// Case 001, for servers that do not say 404.
#[tokio::test]
async fn a_lost_session_is_known_by_what_the_server_says_of_it() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    for lost in [
        LostSession::BadRequest("Bad Request: No valid session ID provided".into()),
        LostSession::Error(StatusCode::BAD_REQUEST, -32600, "Session not found".into()),
        LostSession::Error(StatusCode::OK, -32001, "Session expired".into()),
        LostSession::Error(StatusCode::NOT_FOUND, -32600, "Session has been terminated".into()),
    ] {
        let session = moored.client()?.initialize().await?;
        assert_eq!(session.call("a___echo", json!({})).await?.status, StatusCode::OK);
        target.change(|script| script.lost_session = lost.clone());
        target.forget_sessions();
        let calls = target.count("tools/call");
        assert_lost(&session.call("a___echo", json!({})).await?, 2, "a");
        assert_lost(&session.call("a___echo", json!({})).await?, 3, "a");
        assert_eq!(target.count("tools/call"), calls + 1, "{lost:?}");
    }
    Ok(())
}

// Case 001: only what speaks of the session ends it.
#[tokio::test]
async fn a_refused_call_that_does_not_speak_of_the_session_leaves_it_as_it_is() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"session_name is missing"}}"#;
    let refusal = RawAnswer { status: StatusCode::BAD_REQUEST, ..RawAnswer::json(refusal) };
    target.interfere_once("tools/call", Interference::Answer(refusal));
    let answer = session.call("a___echo", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32602)), "{}", answer.text());
    assert_eq!(session.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    assert_eq!(called_in(&target).len(), 1);
    Ok(())
}

/// Runs one session after another in eight tasks at a time, so many in all, and ends each by DELETE.
async fn many_sessions(moored: &Moored, many: usize) -> Outcome {
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let client = moored.client()?;
        workers.spawn(async move {
            for _ in 0..many / 8 {
                let session = use_both(&client).await?;
                assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
                assert_eq!(session.delete().await?.status, StatusCode::NOT_FOUND);
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    Ok(())
}

// Case 010.
#[tokio::test]
async fn a_deleted_session_is_deleted_once_at_each_target_that_it_used() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let unused = ScriptedServer::start(Script::default()).await;
    // A target may refuse to have sessions deleted; that is no reason to ask again.
    b.interfere("DELETE", Interference::Answer(RawAnswer::status(StatusCode::METHOD_NOT_ALLOWED)));
    let targets = [("a", a.url()), ("b", b.url()), ("unused", unused.url())];
    let moored = Moored::serve(gateway_with(targets)).await?;
    // What is kept once and for all, pooled connections to targets, is there behind the first.
    many_sessions(&moored, MANY).await?;
    a.until_seen("DELETE", MANY).await?;
    let files = moored.open_files().ok_or("this system cannot say")?;
    let connections = [a.counts().connections, b.counts().connections];
    many_sessions(&moored, SESSIONS).await?;
    for target in [&a, &b] {
        target.until_seen("DELETE", MANY + SESSIONS).await?;
        let ended = deleted(target);
        assert_eq!(ended.len(), MANY + SESSIONS);
        assert_eq!(ended.into_iter().collect::<BTreeSet<_>>(), called_in(target));
        for seen in target.seen("DELETE") {
            assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
        }
    }
    assert_eq!(a.open_sessions().len(), 1, "the catalogue's own session is left, and no other");
    assert_eq!((unused.count("DELETE"), unused.counts().initializes), (0, 1));
    let metrics = moored.metrics().await?;
    assert_eq!(metrics.sum("mooring_sessions", &[]).to_bits(), 0f64.to_bits());
    let ended = metrics.sum("mooring_sessions_ended_total", &[("reason", "deleted")]);
    assert_eq!(ended.to_string(), (MANY + SESSIONS).to_string());
    // A pool may have had a moment of more at once; a session may not have left anything.
    let few = async || moored.open_files().filter(|now| *now < files + SESSIONS / 20);
    let left = process::poll(Duration::from_secs(10), few).await;
    assert!(left.is_some(), "{:?} files are open, and were {files}", moored.open_files());
    for (target, before) in [&a, &b].into_iter().zip(connections) {
        let now = target.counts().connections;
        assert!(now < before + SESSIONS / 20, "{now} connections, and were {before}");
    }
    Ok(())
}

// Case 010.
#[tokio::test]
async fn a_target_whose_delete_hangs_keeps_no_other_target_waiting() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    a.interfere("DELETE", Interference::Hold);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    many_sessions(&moored, MANY).await?;
    b.until_seen("DELETE", MANY).await?;
    assert_eq!(
        a.counts().waiting,
        a.count("DELETE"),
        "the other target's turn came after the hanging one's bound"
    );
    assert_eq!(b.count("DELETE"), MANY);
    // Every session is told of at the slow target all the same.
    a.behave("DELETE");
    a.release();
    a.until_seen("DELETE", MANY).await?;
    a.until("all its DELETEs to be answered", |a| a.open_sessions().len() == 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_target_without_sessions_is_called_without_and_has_none_deleted() -> Outcome {
    let script = Script { sessions: Sessions::Withheld, ..Script::default() };
    let (a, b) = (ScriptedServer::start(script).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = use_both(&moored.client()?).await?;
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    b.until_seen("DELETE", 1).await?;
    assert_eq!(a.count("DELETE"), 0);
    assert!(a.requests().iter().all(|seen| seen.session.is_none()));
    Ok(())
}

#[tokio::test]
async fn session_ids_are_long_visible_and_never_the_targets() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        let session = client.initialize().await?;
        assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
        assert!(session.id().len() >= 32 && session.id().bytes().all(|byte| byte.is_ascii_graphic()));
        ids.insert(session.id().to_owned());
    }
    assert_eq!(ids.len(), 20);
    let told: Vec<Value> = target.requests().into_iter().map(|seen| json!(format!("{seen:?}"))).collect();
    assert!(
        told.iter().all(|seen| ids.iter().all(|id| !seen.to_string().contains(id))),
        "an id of ours left the gateway"
    );
    Ok(())
}
