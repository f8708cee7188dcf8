//! Case 033: SIGTERM makes the daemon unready at once, lets calls finish within the deadline, answers what is left, and
//! ends. Records survive it where the store does; that is told elsewhere.

use std::time::Duration;

use e2e::{
    asking::{everything, id_of, notification, request, result},
    client::{Answer, ClientError, Session},
    manifest,
    moored::{Moored, Signal},
    process,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
    two_endpoints::{Named, TwoEndpoints},
};
use http::StatusCode;
use serde_json::json;
use tokio::{net::TcpStream, task::JoinSet, time::Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(5);

fn gateway(deadline: u32) -> String {
    let drain = format!("spec: {{drain: {{deadlineSeconds: {deadline}}}, ");
    manifest::gateway("tools").replace("spec: {", &drain)
}

async fn start(deadline: u32) -> Result<(ScriptedServer, Moored, Session), Box<dyn std::error::Error>> {
    let mut script = Script::default();
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(gateway(deadline) + &manifest::target("a", "tools", &target.url())).await?;
    let session = moored.client()?.initialize().await?;
    // Behind its list a session has nothing more to hear of.
    session.tools().await?;
    Ok((target, moored, session))
}

fn call(id: u32, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn begin(session: &Session, id: u32, tool: &'static str) -> JoinSet<Result<Answer, ClientError>> {
    let (session, mut calls) = (session.clone(), JoinSet::new());
    calls.spawn(async move { session.post(call(id, tool)).await });
    calls
}

async fn end(mut calls: JoinSet<Result<Answer, ClientError>>) -> Result<Answer, Box<dyn std::error::Error>> {
    Ok(calls.join_next().await.ok_or("there was no call")???)
}

/// Tells the daemon to end, and waits until it is unready and takes no connections.
async fn drain(moored: &Moored) -> Outcome {
    moored.signal(Signal::Terminate).await?;
    let unready =
        async || moored.health("/readyz").await.is_ok_and(|answer| answer.status == 503).then_some(());
    process::poll(PATIENCE, unready).await.ok_or("it stays ready")?;
    let refused = async || TcpStream::connect(moored.address()).await.is_err().then_some(());
    process::poll(PATIENCE, refused).await.ok_or("it takes connections still")?;
    assert_eq!(moored.health("/livez").await?.status, StatusCode::OK, "what drains is alive");
    Ok(())
}

#[tokio::test]
async fn calls_in_flight_finish_and_streams_end_before_the_daemon_does() -> Outcome {
    let (target, mut moored, session) = start(10).await?;
    let mut stream = session.get().await?;
    let slow = begin(&session, 1, "a___slow");
    let mut fed = session.open(call(2, "a___fed")).await?;
    target.until_seen("tools/call", 2).await?;
    target.until_feeds(1).await?;
    let begun = Instant::now();
    drain(&moored).await?;
    assert_eq!(
        stream.next_message().await?,
        None,
        "the GET stream ends with the drain, not with the deadline"
    );
    target.feed("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n");
    assert!(fed.next_message().await?.is_some(), "a call's stream goes on during the drain");
    target.feed("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}\n\n");
    assert_eq!(fed.next_message().await?.unwrap_or_default()["result"], json!({"content": []}));
    assert_eq!(fed.next_message().await?, None);
    target.release();
    assert_eq!(end(slow).await?.tool_text().as_deref(), Some("slow: {}"));
    let status = moored.ended().await?;
    assert_eq!(status.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(9), "nothing was left to wait for: {:?}", begun.elapsed());
    // The target session belongs to a record that may outlive the process.
    let called = target.seen("tools/call").remove(0).session;
    assert!(target.seen("DELETE").iter().all(|seen| seen.session != called));
    Ok(())
}

#[tokio::test]
async fn what_is_unfinished_at_the_deadline_is_answered_with_an_error() -> Outcome {
    let (target, mut moored, session) = start(1).await?;
    let hanging = begin(&session, 1, "a___hang");
    let mut fed = session.open(call(2, "a___fed")).await?;
    target.until_seen("tools/call", 2).await?;
    target.until_feeds(1).await?;
    let begun = Instant::now();
    drain(&moored).await?;
    let answer = end(hanging).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::SERVICE_UNAVAILABLE, Some(-32603)));
    assert_eq!(answer.response()["id"], json!(1));
    assert!(answer.header("retry-after").is_some());
    let error = fed.next_message().await?.unwrap_or_default();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(-32603)));
    assert_eq!(fed.next_message().await?, None);
    let took = begun.elapsed();
    assert!((Duration::from_millis(800)..Duration::from_secs(10)).contains(&took), "{took:?}");
    assert_eq!(moored.ended().await?.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_second_signal_hurries() -> Outcome {
    let (target, mut moored, session) = start(600).await?;
    let hanging = begin(&session, 1, "a___hang");
    target.until_seen("tools/call", 1).await?;
    let begun = Instant::now();
    drain(&moored).await?;
    moored.signal(Signal::Terminate).await?;
    let answer = end(hanging).await?;
    assert_eq!((answer.error_code(), &answer.response()["id"]), (Some(-32603), &json!(1)));
    assert_eq!(moored.ended().await?.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn an_idle_daemon_ends_at_once_though_connections_are_open() -> Outcome {
    let (_target, mut moored, session) = start(600).await?;
    session.call("a___echo", json!({})).await?;
    let silent = TcpStream::connect(moored.address()).await?;
    let begun = Instant::now();
    moored.signal(Signal::Terminate).await?;
    assert_eq!(moored.ended().await?.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    drop(silent);
    Ok(())
}

/// On its own stream, since it has no other: whoever stops to listen there has the server wait in vain.
#[tokio::test]
async fn a_client_is_asked_during_the_drain_what_its_running_call_has_a_bridged_server_ask() -> Outcome {
    let server = TwoEndpoints::start(Named::Path).await?;
    let target = manifest::target("a", "tools", &server.url());
    let target = target.replace("spec: {", "spec: {protocol: SSE, ");
    let mut moored = Moored::serve(gateway(20) + &target).await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let mut calls = JoinSet::new();
    calls.spawn(async move { session.open(call(1, "a___hold")).await });
    server.until_seen("tools/call", 1).await.ok_or("no call came")?;
    drain(&moored).await?;
    assert!(server.say(&request(&json!("q"), "roots/list", &json!({}))));
    let mut events = calls.join_next().await.ok_or("there was no call")???;
    let asked = events.next_message().await?.unwrap_or_default();
    assert_eq!(asked["method"], json!("roots/list"), "{asked}");
    assert!(server.say(&notification("notifications/cancelled", &json!({"requestId": "q"}))));
    let withdrawn = events.next_message().await?.unwrap_or_default();
    assert_eq!(withdrawn.pointer("/params/requestId"), id_of(&asked).as_ref(), "{withdrawn}");
    let begun = Instant::now();
    assert!(server.say(&result(&json!(1), "done")));
    assert_eq!(events.next_message().await?, Some(result(&json!(1), "done")));
    assert_eq!(moored.ended().await?.code(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "what listens has nobody left to listen for: {:?}",
        begun.elapsed()
    );
    Ok(())
}

#[tokio::test]
async fn a_target_that_can_ask_on_the_stream_of_a_call_is_listened_to_beside_it_until_the_drain_alone()
-> Outcome {
    let (target, mut moored, _) = start(60).await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let mut fed = session.open(call(1, "a___fed")).await?;
    target.until_feeds(1).await?;
    let called = target.seen("tools/call").remove(0).session.ok_or("no session")?;
    let log = notification("notifications/message", &json!({"level": "info", "data": 1})).to_string();
    target.until("its own stream", |target| target.push_to(&called, &log) == 1).await?;
    drain(&moored).await?;
    // The catalogue's, too.
    target.until_streams(0).await?;
    target.feed(e2e::asking::event(&result(&json!(1), "done")));
    assert_eq!(fed.next_message().await?, Some(result(&json!(1), "done")));
    assert_eq!(moored.ended().await?.code(), Some(0));
    Ok(())
}
