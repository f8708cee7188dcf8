//! How target sessions begin: at the first use, once, in the target's own version, and without a trace where they fail.

use e2e::{
    client::{Answer, Client, Session},
    manifest::{self, gateway_with},
    moored::Moored,
    scripted::{Interference, NotificationAnswer, RawAnswer, Script, ScriptedServer, Seen, Version},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// How many calls race for one target session.
const RACING: usize = 8;

/// The handshakes for clients' sessions; the catalogue's own goes by another name.
fn handshakes(target: &ScriptedServer) -> Vec<Seen> {
    let of_client = |seen: &Seen| seen.message.pointer("/params/clientInfo/name") == Some(&json!("raw"));
    target.seen("initialize").into_iter().filter(of_client).collect()
}

/// The gateway `tools` with target `a`, whose handshake may take a second.
fn impatient(target: &ScriptedServer) -> String {
    let hasty = manifest::target("a", "tools", &target.url());
    manifest::gateway("tools") + &hasty.replace("spec: {", "spec: {timeouts: {connectSeconds: 1}, ")
}

/// A session whose gateway has learnt its targets' tools, so that from now on every handshake is a client's.
async fn begin(client: &Client, tools: usize) -> Result<Session, Error> {
    let session = client.initialize().await?;
    assert_eq!(session.tools().await?.len(), tools);
    Ok(session)
}

/// Calls a tool `RACING` times at once, each with its own argument, in one session.
fn race(session: &Session) -> JoinSet<Result<(usize, Answer), Error>> {
    let mut calls = JoinSet::new();
    for n in 0..RACING {
        let session = session.clone();
        calls.spawn(async move { Ok((n, session.call("a___echo", json!({"n": n})).await?)) });
    }
    calls
}

// Case 008.
#[tokio::test]
async fn concurrent_first_calls_begin_one_target_session_and_all_are_answered() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = begin(&moored.client()?, 12).await?;
    assert_eq!(handshakes(&target).len(), 0, "listing began a target session");
    target.interfere_once("initialize", Interference::Hold);
    let mut calls = race(&session);
    target.until("the handshake", |target| handshakes(target).len() == 1).await?;
    target.release();
    while let Some(call) = calls.join_next().await {
        let (n, answer) = call??;
        assert_eq!(answer.tool_text(), Some(format!("echo: {{\"n\":{n}}}")));
    }
    assert_eq!((handshakes(&target).len(), target.count("tools/call")), (1, RACING));
    let used = target.seen("tools/call").into_iter().filter_map(|seen| seen.session);
    assert_eq!(used.collect::<std::collections::BTreeSet<_>>().len(), 1);
    assert_eq!(target.open_sessions().len(), 2, "the catalogue's and the client's");
    Ok(())
}

// Case 008.
#[tokio::test]
async fn a_failed_handshake_is_told_to_all_who_wait_and_to_nobody_after() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(impatient(&target)).await?;
    let session = begin(&moored.client()?, 12).await?;
    target.interfere("initialize", Interference::Hang);
    let mut calls = race(&session);
    while let Some(call) = calls.join_next().await {
        let (_, answer) = call??;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)), "{}", answer.text());
        let data = answer.response()["error"]["data"].clone();
        assert_eq!(data, json!({"target": "a", "reason": "target_timeout"}));
    }
    assert_eq!((handshakes(&target).len(), target.count("tools/call")), (1, 0));
    target.behave("initialize");
    assert_eq!(session.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    assert_eq!((handshakes(&target).len(), target.open_sessions().len()), (2, 2));
    Ok(())
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_take_the_others_handshake_with_it() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = begin(&moored.client()?, 12).await?;
    target.interfere_once("initialize", Interference::Hold);
    let leaving = session.through(&Client::with_fresh_connections(&moored.url())?);
    let mut first = JoinSet::new();
    first.spawn(async move { leaving.call("a___echo", json!({})).await });
    target.until("the handshake", |target| handshakes(target).len() == 1).await?;
    first.shutdown().await;
    let mut calls = race(&session);
    target.release();
    while let Some(call) = calls.join_next().await {
        assert_eq!(call??.1.error_code(), None);
    }
    assert_eq!(handshakes(&target).len(), 1);
    Ok(())
}

/// Has one handshake of a client fail, and expects the session that the target may have issued to be deleted.
async fn leaves_no_session(kind: &str, interference: Interference, reason: &str) -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(impatient(&target)).await?;
    let session = begin(&moored.client()?, 12).await?;
    target.interfere_once(kind, interference);
    let answer = session.call("a___echo", json!({})).await?;
    let data = json!({"target": "a", "reason": reason});
    assert_eq!(answer.response().pointer("/error/data"), Some(&data), "{}", answer.text());
    target.until("the failed session's DELETE", |target| target.count("DELETE") == 1).await?;
    assert_eq!(target.open_sessions().len(), 1, "the catalogue's own session is left, and no other");
    assert_eq!(session.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    Ok(())
}

// Case 008: no orphaned session.
#[tokio::test]
async fn a_handshake_that_fails_half_way_leaves_no_session_at_the_target() -> Outcome {
    let refusal = Interference::Answer(RawAnswer::status(StatusCode::INTERNAL_SERVER_ERROR));
    leaves_no_session("notifications/initialized", refusal, "target_status").await?;
    leaves_no_session("notifications/initialized", Interference::Cut, "target_unreachable").await?;
    leaves_no_session("notifications/initialized", Interference::Hang, "target_timeout").await?;
    let wrong =
        RawAnswer::json(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).with_header("mcp-session-id", "orphan");
    leaves_no_session("initialize", Interference::Answer(wrong), "target_protocol").await?;
    let newer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2099-01-01","capabilities":{}}}"#;
    let newer = RawAnswer::json(newer).with_header("mcp-session-id", "orphan");
    leaves_no_session("initialize", Interference::Answer(newer), "target_unsupported_version").await
}

#[tokio::test]
async fn a_session_that_ends_during_a_handshake_leaves_no_session_at_the_target() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = begin(&moored.client()?, 12).await?;
    target.interfere_once("initialize", Interference::Hold);
    let end = async {
        target.until("the handshake", |target| handshakes(target).len() == 1).await?;
        Ok::<_, Error>(session.delete().await?)
    };
    let (answer, end) = tokio::join!(session.call("a___echo", json!({})), end);
    assert_eq!(end?.status, StatusCode::NO_CONTENT);
    let answer = answer?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    assert_eq!(answer.response()["error"]["data"]["reason"], json!("deleted"));
    target.release();
    target.until("the late session's DELETE", |target| target.count("DELETE") == 1).await?;
    assert_eq!((target.open_sessions().len(), target.count("tools/call")), (1, 0));
    Ok(())
}

// Case 016, towards targets.
#[tokio::test]
async fn each_target_receives_the_version_negotiated_with_that_target() -> Outcome {
    let older = Script { protocol_version: Version::Always("2025-06-18".into()), ..Script::default() };
    let (a, b) = (ScriptedServer::start(Script::default()).await, ScriptedServer::start(older).await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = begin(&moored.client()?, 24).await?;
    assert_eq!(session.protocol_version(), "2025-11-25");
    for tool in ["a___echo", "b___echo", "b___echo_sse"] {
        assert_eq!(session.call(tool, json!({})).await?.error_code(), None);
    }
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    for (target, negotiated) in [(&a, "2025-11-25"), (&b, "2025-06-18")] {
        target.until_seen("DELETE", 1).await?;
        for seen in target.requests() {
            let version = seen.header("mcp-protocol-version");
            if seen.method() == Some("initialize") {
                assert_eq!((version, &seen.session), (None, &None));
                assert_eq!(seen.message["params"]["protocolVersion"], json!("2025-11-25"));
            } else {
                assert_eq!(version, Some(negotiated), "{seen:?}");
                assert_eq!(seen.headers.get_all("mcp-protocol-version").iter().count(), 1);
                assert!(seen.session.is_some());
            }
        }
    }
    Ok(())
}

// Case 016: never seeded with the newest.
#[tokio::test]
async fn a_target_is_offered_the_clients_version_and_the_clients_own_capabilities() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    for (begun, version) in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].into_iter().enumerate() {
        let client = moored.client()?;
        let able = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}, "experimental": {"x": {}}});
        let answer = client.post_initialize(version, able.clone()).await?;
        let id = answer.header("mcp-session-id").ok_or("no session")?.to_owned();
        let client = client.with_header("mcp-session-id", &id)?;
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a___echo"}}"#;
        assert_eq!(client.post(call).await?.error_code(), None);
        let offered = handshakes(&target);
        assert_eq!(offered.len(), begun + 1);
        let params = &offered[begun].message["params"];
        assert_eq!((&params["protocolVersion"], &params["capabilities"]), (&json!(version), &able));
        assert_eq!(target.seen("tools/call")[begun].header("mcp-protocol-version"), Some(version));
    }
    let newest = |seen: &Seen| seen.message["params"]["protocolVersion"].as_str() > Some("2025-11-25");
    assert!(!target.seen("initialize").iter().any(newest));
    Ok(())
}

// Case 017, as client of a target.
#[tokio::test]
async fn whatever_success_a_target_acknowledges_notifications_with_is_taken() -> Outcome {
    let acknowledges = async |notifications| {
        ScriptedServer::start(Script { notifications, ..Script::echoing(["echo"]) }).await
    };
    let targets = [
        acknowledges(NotificationAnswer::Accepted).await,
        acknowledges(NotificationAnswer::AcceptedAsJson).await,
        acknowledges(NotificationAnswer::NoContent).await,
        acknowledges(NotificationAnswer::EmptyOk).await,
        acknowledges(NotificationAnswer::NullOk).await,
    ];
    let names = ["by-the-book", "as-json", "no-content", "empty", "null-text"];
    let manifests =
        names.iter().zip(&targets).map(|(name, target)| manifest::target(name, "tools", &target.url()));
    let moored = Moored::serve(manifest::gateway("tools") + &manifests.collect::<String>()).await?;
    let session = begin(&moored.client()?, targets.len()).await?;
    for (name, target) in names.into_iter().zip(&targets) {
        let answer = session.call(&format!("{name}___echo"), json!({})).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("echo: {}"), "{name}: {}", answer.text());
        assert_eq!(target.count("notifications/initialized"), 2, "the catalogue's and the client's");
        let order: Vec<_> = target.requests().iter().map(|seen| seen.message["method"].clone()).collect();
        let announced = order.iter().rposition(|method| method == "notifications/initialized");
        assert!(announced < order.iter().position(|method: &Value| method == "tools/call"), "{order:?}");
    }
    Ok(())
}
