//! Targets that end a call's stream before its answer (2025-11-25, resumability; SEP-1699): the stream is taken up again
//! behind its last event, and the client learns of that only what its version knows.

use std::time::Duration;

use e2e::{
    client::{Event, Events, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, EventIds, Interference, RawAnswer, Script, ScriptedServer, Seen, Tool},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// How often a stream that ends without a message is taken up again.
const RESUMES: usize = 5;

async fn start(fields: &str) -> Result<(ScriptedServer, Moored), Error> {
    let tools = vec![Tool::new("fed", Behaviour::Fed), Tool::new("echo", Behaviour::Echo)];
    let script = Script { tools, capabilities: json!({"tools": {}}), ..Script::default() };
    let target = ScriptedServer::start(Script { event_ids: EventIds::Present, ..script }).await;
    let manifest = manifest::target("a", "tools", &target.url());
    let manifest = manifest.replace("spec: {", &format!("spec: {{{fields}"));
    let moored = Moored::serve(manifest::gateway("tools") + &manifest).await?;
    Ok((target, moored))
}

fn call(id: u64) -> String {
    let params = json!({"name": "a___fed", "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn log(n: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}})
}

fn result(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
}

/// Opens a call, and has its target close the stream behind an event of this id, to be taken up after `retry` ms.
async fn closed_early(
    target: &ScriptedServer,
    session: &Session,
    id: &str,
    retry: u64,
) -> Result<Events, Error> {
    let events = session.open(call(1)).await?;
    target.until_feeds(1).await?;
    target.feed(format!("id: {id}\nretry: {retry}\ndata: {}\n\n", log(0)));
    target.end_feeds();
    Ok(events)
}

/// The GETs that took a stream up.
fn resumes(target: &ScriptedServer) -> Vec<Seen> {
    target.seen("GET").into_iter().filter(|seen| seen.header("last-event-id").is_some()).collect()
}

/// Waits until a stream was taken up so many times, the last behind this event, and returns the target's session.
async fn resumed(target: &ScriptedServer, times: usize, behind: &str) -> Result<String, Error> {
    target.until("a stream to be taken up", |target| resumes(target).len() >= times).await?;
    let seen = resumes(target).pop().ok_or("no GET")?;
    assert_eq!((seen.header("last-event-id"), resumes(target).len()), (Some(behind), times));
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    let called = target.seen("tools/call").into_iter().next();
    let session = called.and_then(|seen| seen.session).ok_or("no session")?;
    assert_eq!(seen.session.as_deref(), Some(session.as_str()));
    target.until_streams(1).await?;
    Ok(session)
}

#[tokio::test]
async fn the_stream_of_an_older_client_stays_open_while_its_targets_is_taken_up_again() -> Outcome {
    for version in ["2024-11-05", "2025-06-18"] {
        let (target, moored) = start("").await?;
        let session = moored.client()?.initialize_at(version).await?;
        let events = closed_early(&target, &session, "t-7", 20).await?;
        let at_target = resumed(&target, 1, "t-7").await?;
        assert_eq!(target.push_to(&at_target, &log(1).to_string()), 1);
        assert_eq!(target.push_to(&at_target, &result(1).to_string()), 1);
        let events = events.rest().await?;
        assert_eq!(Event::messages(&events), [log(0), log(1), result(1)], "{version}");
        assert!(events.iter().all(|event| event.retry.is_none()), "{version}: {events:?}");
        assert_eq!(target.count("tools/call"), 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_client_of_2025_11_25_is_told_when_to_come_back_and_gets_the_rest_then() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.initialize().await?;
    let events = closed_early(&target, &session, "t-7", 40).await?.rest().await?;
    assert_eq!(Event::messages(&events), [log(0)], "its stream has ended, without an answer");
    let retry = events.iter().filter_map(|event| event.retry.as_deref()).collect::<Vec<_>>();
    assert_eq!(retry, ["40"]);
    let last = events.iter().filter_map(|event| event.id.clone()).next_back().ok_or("no id")?;
    let at_target = resumed(&target, 1, "t-7").await?;
    // The stream runs on while the client is away.
    assert_eq!(target.push_to(&at_target, &log(1).to_string()), 1);
    assert_eq!(target.push_to(&at_target, &result(1).to_string()), 1);
    assert_eq!(Event::messages(&session.get_behind(&last).await?.rest().await?), [log(1), result(1)]);
    Ok(())
}

#[tokio::test]
async fn a_client_that_takes_json_gets_the_answer_of_a_stream_that_was_taken_up_again() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.with_header("accept", "application/json")?.initialize().await?;
    let (answer, fed) = tokio::join!(session.post(call(1)), async {
        target.until_feeds(1).await?;
        target.feed("id: t-7\nretry: 20\ndata: \n\n");
        target.end_feeds();
        let at_target = resumed(&target, 1, "t-7").await?;
        assert_eq!(target.push_to(&at_target, &result(1).to_string()), 1);
        Ok::<_, Error>(())
    });
    fed?;
    let answer = answer?;
    assert_eq!((answer.is_stream(), answer.response()), (false, result(1)));
    Ok(())
}

#[tokio::test]
async fn the_target_has_the_time_that_it_asked_for() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.initialize_at("2025-06-18").await?;
    let closed = Instant::now();
    let events = closed_early(&target, &session, "t-7", 400).await?;
    let at_target = resumed(&target, 1, "t-7").await?;
    assert!(closed.elapsed() >= Duration::from_millis(400), "{:?}", closed.elapsed());
    assert_eq!(target.push_to(&at_target, &result(1).to_string()), 1);
    assert_eq!(Event::messages(&events.rest().await?), [log(0), result(1)]);
    Ok(())
}

#[tokio::test]
async fn a_stream_that_ends_each_time_without_a_message_is_taken_up_five_times_and_then_fails() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.initialize_at("2025-06-18").await?;
    let end = "retry: 10\ndata: \n\n";
    let empty = RawAnswer { status: StatusCode::OK, headers: Vec::new(), body: end.to_owned() };
    target.interfere("GET", Interference::Answer(empty.with_header("content-type", "text/event-stream")));
    let events = closed_early(&target, &session, "t-7", 10).await?.rest().await?;
    let told = Event::messages(&events);
    assert_eq!((told.len(), &told[0]), (2, &log(0)));
    assert_eq!((&told[1]["id"], &told[1]["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(told[1]["error"]["data"], json!({"target": "a", "reason": "target_protocol"}));
    assert_eq!(resumes(&target).len(), RESUMES);
    Ok(())
}

#[tokio::test]
async fn a_message_on_a_stream_that_was_taken_up_begins_the_count_anew() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.initialize_at("2025-06-18").await?;
    let events = closed_early(&target, &session, "t-7", 10).await?;
    let mut behind = "t-7".to_owned();
    for times in 1..=RESUMES + 2 {
        let at_target = resumed(&target, times, &behind).await?;
        assert_eq!(target.push_to(&at_target, &log(u64::try_from(times)?).to_string()), 1);
        // The priming event of each stream has an id, and so has its message.
        behind = format!("event-{}", 2 * times);
        target.end_streams();
    }
    let at_target = resumed(&target, RESUMES + 3, &behind).await?;
    assert_eq!(target.push_to(&at_target, &result(1).to_string()), 1);
    let told = Event::messages(&events.rest().await?);
    let logs = (0..=u64::try_from(RESUMES)? + 2).map(log);
    assert_eq!(told, logs.chain([result(1)]).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_target_that_refuses_to_take_the_stream_up_fails_the_call() -> Outcome {
    let (target, moored) = start("").await?;
    let session = moored.client()?.initialize_at("2025-06-18").await?;
    let refused = Interference::Answer(RawAnswer::status(StatusCode::METHOD_NOT_ALLOWED));
    target.interfere("GET", refused);
    let told = Event::messages(&closed_early(&target, &session, "t-7", 10).await?.rest().await?);
    assert_eq!((told.len(), &told[1]["id"], &told[1]["error"]["code"]), (2, &json!(1), &json!(-32603)));
    assert_eq!(session.call("a___echo", json!({})).await?.status, StatusCode::OK);
    Ok(())
}

/// A call whose stream had begun may have run: it is never sent again (DESIGN §3.6).
#[tokio::test]
async fn a_call_whose_stream_had_begun_is_not_repeated_though_its_session_is_lost() -> Outcome {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let (target, moored) = start("onSessionLoss: Reinitialize, ").await?;
        let session = moored.client()?.with_header("accept", accept)?.initialize_at("2025-06-18").await?;
        let (answer, fed) = tokio::join!(session.post(call(1)), async {
            target.until_feeds(1).await?;
            target.feed("id: t-7\nretry: 20\ndata: \n\n");
            target.forget_sessions();
            target.end_feeds();
            Ok::<_, Error>(())
        });
        fed?;
        let error = answer?.response();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32001)), "{accept}: {error}");
        let data = json!({"target": "a", "reason": "target_session_lost"});
        assert_eq!(error["error"]["data"], data, "{accept}");
        assert_eq!(target.count("tools/call"), 1, "{accept}: it was sent again");
        // What comes next has a new session.
        let after = session.call("a___echo", json!({})).await?;
        assert_eq!(after.status, StatusCode::OK, "{accept}: {}", after.text());
    }
    Ok(())
}

#[tokio::test]
async fn the_bound_of_a_call_holds_while_its_stream_is_taken_up_again() -> Outcome {
    let (target, moored) = start("timeouts: {requestSeconds: 1}, ").await?;
    let session = moored.client()?.initialize_at("2025-06-18").await?;
    let begun = Instant::now();
    let told = Event::messages(&closed_early(&target, &session, "t-7", 25_000).await?.rest().await?);
    assert_eq!(told[1]["error"]["data"]["reason"], json!("target_timeout"));
    assert!(begun.elapsed() < Duration::from_secs(10));
    target.until_seen("notifications/cancelled", 1).await?;
    assert!(target.requests().iter().all(|seen| seen.verb != Method::GET));
    Ok(())
}
