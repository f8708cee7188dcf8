//! What one session, one caller and one daemon may have at once: each limit has a refusal of its own, which leaves
//! nothing behind and ends with what was too much.

use std::time::Duration;

use e2e::{
    asking::{call, everything, progress, say},
    client::{Answer, Client, Events, Session},
    manifest,
    moored::{Moored, Start},
    process,
    scripted::{Interference, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// How many refused requests there are in all, and how many come before the first look.
const REFUSED: usize = 5000;
const WARMING: usize = 1000;
/// What so many sessions, streams or calls that are kept would take at least, in KiB.
const MEMORY_KIB: u64 = 4096;

/// A gateway with target `a` and these fields.
async fn serve(target: &ScriptedServer, fields: &str) -> Result<Moored, Error> {
    let gateway = manifest::gateway("tools").replace("spec: {", &format!("spec: {{{fields}, "));
    let manifests = gateway + &manifest::target("a", "tools", &target.url());
    let arguments = vec!["--session-timeout-min".to_owned(), "1".to_owned()];
    Ok(Moored::start(Start { manifests, arguments }).await?)
}

/// A call that is in flight for as long as its stream is held.
async fn hanging(session: &Session, id: u32) -> Result<Events, Error> {
    let events = session.open(call(&json!(id), "a___hang_sse", None)).await?;
    assert_eq!(events.status, StatusCode::OK);
    Ok(events)
}

/// Whether it is the refusal of too much for one caller.
fn assert_limited(answer: &Answer) {
    assert_eq!((answer.status, answer.error_code()), (StatusCode::TOO_MANY_REQUESTS, Some(-32005)));
    assert!(answer.header("retry-after").is_some());
}

async fn faults(moored: &Moored, fault: &str) -> Result<f64, Error> {
    Ok(moored.metrics().await?.sum("mooring_faults_total", &[("fault", fault)]))
}

#[tokio::test]
async fn one_request_more_than_a_session_may_have_in_flight_is_refused_with_its_id_and_cancelling_makes_room()
-> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "limits: {requestsInFlightPerSession: 2}").await?;
    let client = moored.client()?;
    let (session, other) = (client.initialize().await?, client.initialize().await?);
    let (mut first, _second) = (hanging(&session, 901).await?, hanging(&session, 902).await?);
    let refused = session.post(r#"{"jsonrpc":"2.0","id":"one more","method":"ping"}"#).await?;
    assert_limited(&refused);
    assert_eq!(refused.response().get("id"), Some(&json!("one more")));
    assert_eq!(other.ask("ping", json!({})).await?.status, StatusCode::OK, "another session has its own");
    // Only a notification can make room, so it is none of what is counted.
    let cancel = session.notify("notifications/cancelled", json!({"requestId": 901})).await?;
    assert_eq!(cancel.status, StatusCode::ACCEPTED);
    assert_eq!(first.next_message().await?.unwrap_or_default().get("id"), Some(&json!(901)));
    assert_eq!(first.next_message().await?, None);
    let served = async || {
        let answer = session.ask("ping", json!({})).await.ok()?;
        (answer.status == StatusCode::OK).then_some(())
    };
    assert!(process::poll(Duration::from_secs(10), served).await.is_some(), "no place came back");
    assert!(faults(&moored, "too_many_in_session").await? > 0.5);
    Ok(())
}

#[tokio::test]
async fn one_request_more_than_a_daemon_may_have_in_flight_is_503_whoever_sends_it() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "limits: {requestsInFlight: 2}").await?;
    let client = moored.client()?;
    let (session, other) = (client.initialize().await?, client.initialize().await?);
    let hung = (hanging(&session, 901).await?, hanging(&other, 901).await?);
    let in_flight = |at: f64| {
        move |metrics: &e2e::moored::Metrics| {
            (metrics.sum("mooring_requests_in_flight", &[]) - at).abs() < 0.5
        }
    };
    moored.until_metrics(in_flight(2.0)).await?;
    for refused in [
        session.ask("ping", json!({})).await?,
        other.ask("tools/list", json!({})).await?,
        client.post_initialize("2025-11-25", json!({})).await?,
    ] {
        assert_eq!((refused.status, refused.error_code()), (StatusCode::SERVICE_UNAVAILABLE, Some(-32603)));
        assert!(refused.header("retry-after").is_some() && refused.header("mcp-session-id").is_none());
    }
    assert!((faults(&moored, "too_many_requests").await? - 3.0).abs() < 0.5);
    drop(hung);
    moored.until_metrics(in_flight(0.0)).await?;
    assert_eq!(session.ask("ping", json!({})).await?.status, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn one_stream_more_than_a_session_may_have_is_refused_and_a_call_is_answered_in_json_then() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "limits: {streamsPerSession: 1}").await?;
    let session = moored.client()?.initialize().await?;
    assert!(session.call("a___echo_sse", json!({})).await?.is_stream(), "a place is free");
    let streams = |at: f64| {
        move |metrics: &e2e::moored::Metrics| (metrics.sum("mooring_streams", &[]) - at).abs() < 0.5
    };
    moored.until_metrics(streams(0.0)).await?;
    let open = session.get().await?;
    assert_eq!(open.status, StatusCode::OK);
    moored.until_metrics(streams(1.0)).await?;
    assert_limited(&session.get().await?.collect().await?);
    let answer = session.call("a___echo_sse", json!({})).await?;
    assert_eq!((answer.status, answer.is_stream(), answer.error_code()), (StatusCode::OK, false, None));
    drop(open);
    moored.until_metrics(streams(0.0)).await?;
    assert_eq!(session.get().await?.status, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_refused_a_stream_twice_is_counted_as_one() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "limits: {streamsPerSession: 1}").await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let _place = hanging(&session, 901).await?;
    let at_target = target.seen("tools/call").remove(0).session.ok_or("no session")?;
    target.interfere_once("tools/call", Interference::Hold);
    let (calling, mut calls) = (session.clone(), JoinSet::new());
    calls.spawn(async move { calling.post(call(&json!(902), "a___echo_sse", Some(&json!("t")))).await });
    target.until_seen("tools/call", 2).await?;
    // What is for it on another stream has it seek a place, and so does its answer, which is a stream.
    say(&target, &at_target, &progress(&json!("t"), 1)).await?;
    let refused = |metrics: &e2e::moored::Metrics| {
        metrics.sum("mooring_faults_total", &[("fault", "too_many_streams")])
    };
    moored.until_metrics(|metrics| refused(metrics) > 0.5).await?;
    target.release();
    let answer = calls.join_next().await.ok_or("there was no call")???;
    assert_eq!((answer.is_stream(), answer.error_code()), (false, None), "{}", answer.text());
    let times = refused(&moored.metrics().await?);
    assert!((times - 1.0).abs() < 0.5, "{times}");
    Ok(())
}

#[tokio::test]
async fn of_many_who_race_for_the_last_sessions_of_a_caller_no_more_than_it_may_have_get_one() -> Outcome {
    const MOST: usize = 3;
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "session: {maxPerPrincipal: 3}").await?;
    let mut racers = JoinSet::new();
    for _ in 0..24 {
        let client = moored.client()?;
        racers.spawn(async move { client.post_initialize("2025-11-25", json!({})).await });
    }
    let mut begun = Vec::new();
    while let Some(answer) = racers.join_next().await {
        let answer = answer??;
        match answer.header("mcp-session-id") {
            Some(id) => begun.push(moored.client()?.session(id)),
            None => assert_limited(&answer),
        }
    }
    assert_eq!(begun.len(), MOST);
    assert_eq!(begun[0].delete().await?.status, StatusCode::NO_CONTENT);
    let client: Client = moored.client()?;
    assert_eq!(client.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::OK);
    assert_limited(&client.post_initialize("2025-11-25", json!({})).await?);
    assert!((moored.metrics().await?.sum("mooring_sessions", &[]) - 3.0).abs() < 0.5);
    Ok(())
}

// Case 011: no traffic, an open GET stream, and a call that is longer than the timeout.
#[tokio::test]
async fn an_idle_session_ends_with_its_stream_and_its_target_sessions_and_a_busy_one_does_not() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target, "session: {timeoutSeconds: 60, idleTimeoutSeconds: 1}").await?;
    let client = moored.client()?;
    let (idle, busy) = (client.initialize().await?, client.initialize().await?);
    let mut call = hanging(&busy, 901).await?;
    assert_eq!(idle.tools().await?.len(), 12, "what it has listed it is not told of again");
    assert_eq!(idle.call("a___echo", json!({})).await?.error_code(), None);
    let used = Instant::now();
    let mut stream = idle.get().await?;
    assert_eq!(stream.next_message().await?, None, "the stream carried a message");
    assert!(used.elapsed() >= Duration::from_millis(900), "it ended after {:?}", used.elapsed());
    assert_eq!(idle.ask("ping", json!({})).await?.status, StatusCode::NOT_FOUND);
    target.until_seen("DELETE", 1).await?;
    let ended = moored.metrics().await?.sum("mooring_sessions_ended_total", &[("reason", "idle")]);
    assert!((ended - 1.0).abs() < 0.5, "{ended} were idle");
    assert_eq!(busy.ask("ping", json!({})).await?.status, StatusCode::OK);
    busy.notify("notifications/cancelled", json!({"requestId": 901})).await?;
    assert_eq!(call.next_message().await?.unwrap_or_default()["id"], json!(901));
    let over = moored.until_metrics(|metrics| metrics.sum("mooring_sessions", &[]) < 0.5).await?;
    assert!((over.sum("mooring_sessions_ended_total", &[("reason", "idle")]) - 2.0).abs() < 0.5);
    Ok(())
}

/// Sends so many requests, each over another limit than the one before.
async fn too_much(client: &Client, session: &Session, requests: usize) -> Outcome {
    for n in 0..requests {
        let refused = match n % 3 {
            0 => client.post_initialize("2025-11-25", json!({})).await?,
            1 => session.ask("ping", json!({})).await?,
            _ => session.get().await?.collect().await?,
        };
        assert_limited(&refused);
    }
    Ok(())
}

// Case 009.
#[tokio::test]
async fn five_thousand_requests_over_a_limit_leave_nothing_behind() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let limits =
        "session: {maxPerPrincipal: 1}, limits: {requestsInFlightPerSession: 1, streamsPerSession: 2}";
    let moored = serve(&target, limits).await?;
    let client = moored.client()?;
    let session = client.initialize().await?;
    let (call, stream) = (hanging(&session, 901).await?, session.get().await?);
    assert_eq!(stream.status, StatusCode::OK);
    too_much(&client, &session, WARMING).await?;
    let (files, memory) =
        (moored.open_files().ok_or("cannot say")?, moored.resident_kib().ok_or("cannot say")?);
    let asked = target.requests().len();

    too_much(&client, &session, REFUSED).await?;

    let grown = moored.resident_kib().ok_or("cannot say")?.saturating_sub(memory);
    assert!(grown < MEMORY_KIB, "the process grew by {grown} KiB");
    assert!(moored.open_files().ok_or("cannot say")? <= files, "files are open that were not");
    assert_eq!(target.requests().len(), asked);
    let metrics = moored.metrics().await?;
    for (name, wanted) in
        [("mooring_sessions", 1.0), ("mooring_streams", 2.0), ("mooring_requests_in_flight", 1.0)]
    {
        let now = metrics.sum(name, &[]);
        assert!((now - wanted).abs() < 0.5, "{name} is {now}");
    }
    drop((call, stream));
    moored.until_metrics(|metrics| metrics.sum("mooring_requests_in_flight", &[]) < 0.5).await?;
    assert_eq!(session.ask("ping", json!({})).await?.response()["result"], json!({}));
    let lines = moored.log();
    let limited = |line: &&Value| line.get("fault") == Some(&json!("too_many_streams"));
    assert!(lines.iter().filter(limited).count() >= REFUSED / 3, "a refusal has its line in the access log");
    Ok(())
}
