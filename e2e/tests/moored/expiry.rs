//! The absolute timeout: it ends a session whatever the session does, and everything under way gets a defined end.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    client::Session,
    manifest,
    moored::{Moored, Start},
    process,
    scripted::{Interference, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// The daemon with targets `a` and `b`, whose sessions last so many seconds.
async fn serve(seconds: u32, a: &ScriptedServer, b: &ScriptedServer) -> Result<Moored, Error> {
    let gateway = manifest::gateway("tools")
        .replace("spec: {", &format!("spec: {{session: {{timeoutSeconds: {seconds}}}, "));
    let targets = [("a", a), ("b", b)].map(|(name, target)| manifest::target(name, "tools", &target.url()));
    let arguments = vec!["--session-timeout-min".into(), "1".into()];
    Ok(Moored::start(Start { manifests: gateway + &targets.concat(), arguments }).await?)
}

async fn two_targets() -> (ScriptedServer, ScriptedServer) {
    (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await)
}

fn ended(reason: &str) -> [(&str, &str); 1] {
    [("reason", reason)]
}

// Case 011 a and b.
#[tokio::test]
async fn steady_traffic_does_not_move_the_absolute_timeout() -> Outcome {
    let (a, b) = two_targets().await;
    let moored = serve(2, &a, &b).await?;
    let client = moored.client()?;
    let before = Instant::now();
    let session = client.initialize().await?;
    let begun = Instant::now();
    let mut calls = 0;
    let refused = process::poll(Duration::from_secs(10), async || {
        let answer = session.call("a___echo", json!({})).await.ok()?;
        calls += 1;
        (answer.status != StatusCode::OK).then_some(answer)
    });
    let refused = refused.await.ok_or("the session did not end")?;
    assert!(before.elapsed() >= Duration::from_secs(2), "it ended after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(10), "it ended after {:?}", begun.elapsed());
    assert_eq!((refused.status, refused.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    assert!(calls > 10, "there was no steady traffic: {calls} calls");
    // The call before the end, and the end itself, came in one target session.
    a.until_seen("DELETE", 1).await?;
    let sessions: BTreeSet<_> = a.seen("tools/call").into_iter().map(|seen| seen.session).collect();
    assert_eq!((sessions.len(), sessions.contains(&a.seen("DELETE")[0].session)), (1, true));
    assert_eq!(b.count("DELETE"), 0);
    Ok(())
}

// Case 011 c.
#[tokio::test]
async fn a_call_in_flight_when_the_session_expires_is_answered_with_an_error_of_its_id() -> Outcome {
    let (a, b) = two_targets().await;
    let moored = serve(1, &a, &b).await?;
    let session = moored.client()?.initialize().await?;
    let answer = session
        .post(r#"{"jsonrpc":"2.0","id":"in flight","method":"tools/call","params":{"name":"a___slow"}}"#)
        .await?;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
    let response = answer.response();
    assert_eq!(response["id"], json!("in flight"));
    assert_eq!(
        (&response["error"]["code"], &response["error"]["data"]["reason"]),
        (&json!(-32001), &json!("expired"))
    );
    // The target is told that nobody waits any more, and then that the session is over.
    a.until_seen("DELETE", 1).await?;
    let told: Vec<_> =
        a.requests().into_iter().filter(|seen| seen.session == a.seen("DELETE")[0].session).collect();
    let told: Vec<_> = told
        .iter()
        .map(|seen| (seen.method().unwrap_or(seen.verb.as_str()), &seen.message["params"]["requestId"]))
        .collect();
    assert_eq!(
        told[told.len() - 2..],
        [("notifications/cancelled", &json!("in flight")), ("DELETE", &json!(null))]
    );
    a.until("the abandoned call to be dropped", |a| a.counts().waiting == 0).await?;
    Ok(())
}

// Case 011 c.
#[tokio::test]
async fn streams_that_are_open_when_the_session_expires_get_a_defined_end() -> Outcome {
    let (a, b) = two_targets().await;
    let moored = serve(1, &a, &b).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?.len(), 24, "what it has listed it is not told of again");
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"b___hang_sse"}}"#;
    let (mut call, mut changes) = (session.open(call).await?, session.get().await?);
    assert_eq!((call.status, changes.status), (StatusCode::OK, StatusCode::OK));
    let refused = call.next_message().await?.unwrap_or_default();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32001)));
    assert_eq!(refused["error"]["data"]["reason"], json!("expired"));
    assert_eq!(call.next_message().await?, None, "something came behind the answer");
    assert_eq!(changes.next_message().await?, None, "the GET stream carried a message");
    assert_eq!(session.get().await?.status, StatusCode::NOT_FOUND);
    b.until_seen("DELETE", 1).await?;
    assert_eq!(b.seen("notifications/cancelled").len(), 1);
    Ok(())
}

// DESIGN §3.5: DELETE takes the same path as the timeout.
#[tokio::test]
async fn a_session_deleted_while_its_calls_run_ends_them_and_tells_their_targets() -> Outcome {
    let (a, b) = two_targets().await;
    let moored = serve(3600, &a, &b).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?.len(), 24, "what it has listed it is not told of again");
    let call = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"b___hang_sse"}}"#;
    let (mut stream, mut changes) = (session.open(call).await?, session.get().await?);
    let end = async {
        a.until_seen("tools/call", 1).await?;
        Ok::<_, Error>(session.delete().await?)
    };
    let (answer, end) = tokio::join!(session.call("a___hang", json!({})), end);
    assert_eq!(end?.status, StatusCode::NO_CONTENT);
    let answer = answer?;
    assert_eq!((answer.status, answer.response()["id"].clone()), (StatusCode::NOT_FOUND, json!(2)));
    assert_eq!(answer.response()["error"]["data"]["reason"], json!("deleted"));
    let refused = stream.next_message().await?.unwrap_or_default();
    assert_eq!((&refused["id"], &refused["error"]["data"]["reason"]), (&json!(8), &json!("deleted")));
    assert_eq!((stream.next_message().await?, changes.next_message().await?), (None, None));
    for (target, id) in [(&a, 2), (&b, 8)] {
        target.until_seen("DELETE", 1).await?;
        let cancelled: Vec<_> = target.seen("notifications/cancelled");
        assert_eq!(cancelled.len(), 1);
        assert_eq!(cancelled[0].message["params"]["requestId"], json!(id));
        assert_eq!(cancelled[0].session, target.seen("DELETE")[0].session);
    }
    Ok(())
}

// Case 010, ended by the timeout, their clients gone.
#[tokio::test]
async fn expired_sessions_are_deleted_once_at_each_target_and_a_hanging_one_delays_no_other() -> Outcome {
    const MANY: usize = 80;
    let (a, b) = two_targets().await;
    a.interfere("DELETE", Interference::Hang);
    let moored = serve(2, &a, &b).await?;
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let client = moored.client()?;
        workers.spawn(async move {
            for _ in 0..MANY / 8 {
                let session: Session = client.initialize().await?;
                for tool in ["a___echo", "b___echo"] {
                    assert_eq!(session.call(tool, json!({})).await?.error_code(), None);
                }
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    b.until_seen("DELETE", MANY).await?;
    assert_eq!(
        a.counts().waiting,
        a.count("DELETE"),
        "the other target's turn came after the hanging one's bound"
    );
    let gone: BTreeSet<_> = b.seen("DELETE").into_iter().filter_map(|seen| seen.session).collect();
    let used: BTreeSet<_> = b.seen("tools/call").into_iter().filter_map(|seen| seen.session).collect();
    assert_eq!((gone.len(), b.count("DELETE")), (MANY, MANY));
    assert_eq!(gone, used);
    assert_eq!(b.open_sessions().len(), 1, "the catalogue's own session is left, and no other");
    let metrics = moored.until_metrics(|metrics| metrics.sum("mooring_sessions", &[]) < 1.0).await?;
    let expired = metrics.sum("mooring_sessions_ended_total", &ended("expired"));
    assert_eq!(expired.to_string(), MANY.to_string());
    assert_eq!(metrics.sum("mooring_sessions_ended_total", &ended("deleted")).to_bits(), 0f64.to_bits());
    Ok(())
}
