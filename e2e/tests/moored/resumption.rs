//! Streams that answer calls, from the client's side: ids and priming of each version, a client that lost its connection
//! and comes back, and the bounds of what is kept for it.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use e2e::{
    client::{Event, Events, Session},
    manifest::gateway_with,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// Streams of a session that are kept without a client.
const KEPT: u64 = 16;

async fn start() -> Result<(ScriptedServer, Moored), Error> {
    start_with("streamsPerSession: 16").await
}

async fn start_with(limits: &str) -> Result<(ScriptedServer, Moored), Error> {
    let tools = [("fed", Behaviour::Fed), ("echo_sse", Behaviour::EchoStream(2))];
    let tools = tools.into_iter().map(|(name, behaviour)| Tool::new(name, behaviour)).collect();
    let target = ScriptedServer::start(Script { tools, ..Script::default() }).await;
    let manifests = gateway_with([("a", target.url())]);
    let moored = Moored::serve(manifests.replacen("spec: {", &format!("spec: {{limits: {{{limits}}}, "), 1));
    let moored = moored.await?;
    Ok((target, moored))
}

fn call(id: u64, tool: &str) -> String {
    let params = json!({"name": format!("a___{tool}"), "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn log(n: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}})
}

fn result(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// The next event that is no comment.
async fn next(events: &mut Events) -> Result<Event, Error> {
    loop {
        let event = events.next().await?.ok_or("the stream has ended")?;
        if event != Event::default() {
            return Ok(event);
        }
    }
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().filter_map(|event| event.id.clone()).collect()
}

/// Opens call `id` of the tool that the test feeds, has its target say `log(0)`.
async fn opened(target: &ScriptedServer, session: &Session, id: u64) -> Result<(Events, String), Error> {
    let fed = target.counts().fed;
    let mut events = session.open(call(id, "fed")).await?;
    target.until_fed(fed + 1).await?;
    let primer = next(&mut events).await?;
    assert_eq!((primer.id.is_some(), primer.data.as_deref()), (true, Some("")));
    Ok((events, primer.id.unwrap_or_default()))
}

#[tokio::test]
async fn a_stream_begins_with_a_priming_event_in_the_newest_version_only_and_has_ids_since_2025_03_26()
-> Outcome {
    let (_target, moored) = start().await?;
    for (version, primed, identified) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, true),
        ("2025-06-18", false, true),
        ("2025-11-25", true, true),
    ] {
        let session = moored.client()?.initialize_at(version).await?;
        let events = session.open(call(1, "echo_sse")).await?.rest().await?;
        let primers = events.iter().filter(|event| event.data.as_deref() == Some("")).count();
        assert_eq!(primers, usize::from(primed), "{version}: {events:?}");
        assert_eq!(events[0].data.as_deref() == Some(""), primed, "{version}: {events:?}");
        assert_eq!(ids(&events).len(), if identified { events.len() } else { 0 }, "{version}: {events:?}");
        assert_eq!(Event::messages(&events).len(), 3, "{version}");
        let mut listening = session.get().await?;
        let first = listening.next().await?.ok_or("no stream")?;
        let primer = (first.id.is_some(), first.data.is_some());
        assert_eq!(primer, (primed, primed), "{version}: {first:?}");
    }
    Ok(())
}

#[tokio::test]
async fn event_ids_are_unique_across_the_streams_of_a_session() -> Outcome {
    let (_target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let mut listening = session.get().await?;
    let mut all = vec![next(&mut listening).await?];
    // The same request id again, once it is free: another stream.
    for id in [1, 2, 1] {
        all.extend(session.open(call(id, "echo_sse")).await?.rest().await?);
    }
    let unique: BTreeSet<String> = ids(&all).into_iter().collect();
    assert_eq!((all.len(), unique.len()), (1 + 3 * 4, 1 + 3 * 4), "{all:?}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_lost_its_stream_gets_what_it_missed_and_then_the_rest_in_order_and_once() -> Outcome {
    let (target, moored) = start().await?;
    for version in ["2025-03-26", "2025-11-25"] {
        let session = moored.client()?.initialize_at(version).await?;
        let mut events = session.open(call(1, "fed")).await?;
        target.until_feeds(1).await?;
        target.feed(event(&log(0)) + &event(&log(1)));
        let mut seen = Vec::new();
        while Event::messages(&seen).len() < 2 {
            seen.push(next(&mut events).await?);
        }
        drop(events);
        target.feed(event(&log(2)) + &event(&log(3)));
        let last = ids(&seen).pop().unwrap_or_default();
        let mut again = session.get_behind(&last).await?;
        assert_eq!(again.status, StatusCode::OK);
        for n in [2, 3] {
            assert_eq!(next(&mut again).await?.message(), Some(log(n)), "{version}");
        }
        target.feed(event(&log(4)) + &event(&result(1)));
        assert_eq!(Event::messages(&again.rest().await?), [log(4), result(1)], "{version}");
        // The call ran on all the time, and once.
        assert_eq!(target.count("notifications/cancelled"), 0);
        target.until_feeds(0).await?;
    }
    assert_eq!(target.count("tools/call"), 2);
    Ok(())
}

#[tokio::test]
async fn a_stream_is_taken_up_though_its_first_connection_is_not_seen_to_be_gone() -> Outcome {
    let (target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let (first, primer) = opened(&target, &session, 1).await?;
    let mut second = session.get_behind(&primer).await?;
    target.feed(event(&log(0)));
    assert_eq!(next(&mut second).await?.message(), Some(log(0)));
    assert_eq!(Event::messages(&first.rest().await?), [] as [Value; 0], "a message went to two streams");
    // And once more, from the beginning.
    let third = session.get_behind(&primer).await?;
    target.feed(event(&result(1)));
    assert_eq!(Event::messages(&third.rest().await?), [log(0), result(1)]);
    assert_eq!(Event::messages(&second.rest().await?), [] as [Value; 0]);
    Ok(())
}

#[tokio::test]
async fn a_stream_is_taken_up_though_its_first_connection_is_stuck_and_has_it_go_on_no_more() -> Outcome {
    let (target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let (stuck, primer) = opened(&target, &session, 1).await?;
    let large = event(&log(0)).replacen("data: ", &format!("data: {}", " ".repeat(128 << 10)), 1);
    // Until every buffer on the way is full: for half a second nothing more was taken.
    let still = AtomicUsize::new(0);
    let is_stuck = |target: &ScriptedServer| {
        let mut fed = 0;
        while target.feed(large.clone()) == 1 {
            fed += 1;
        }
        if fed > 0 {
            still.store(0, Ordering::Relaxed);
        }
        still.fetch_add(1, Ordering::Relaxed) >= 25
    };
    target.until("all buffers full", is_stuck).await?;
    let mut again = session.get_behind(&primer).await?;
    assert_eq!(next(&mut again).await?.message(), Some(log(0)));
    target.until("room again", |target| target.feed(event(&log(1)) + &event(&result(1))) == 1).await?;
    let rest = Event::messages(&again.rest().await?);
    assert!(rest.ends_with(&[log(1), result(1)]), "{rest:?}");
    let rest = Event::messages(&stuck.rest().await?);
    assert!(rest.iter().all(|message| *message == log(0)), "a message went to two streams: {rest:?}");
    Ok(())
}

#[tokio::test]
async fn the_answer_that_came_while_nobody_read_is_there_for_who_comes_back() -> Outcome {
    let (target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let (events, primer) = opened(&target, &session, 1).await?;
    drop(events);
    target.feed(event(&result(1)));
    target.until_feeds(0).await?;
    assert_eq!(Event::messages(&session.get_behind(&primer).await?.rest().await?), [result(1)]);
    // Its id is free again.
    assert!(session.post(call(1, "echo_sse")).await?.error_code().is_none());
    Ok(())
}

#[tokio::test]
async fn a_stream_that_was_written_to_its_end_is_there_for_a_client_that_did_not_get_the_end() -> Outcome {
    let (target, moored) = start().await?;
    for version in ["2025-03-26", "2025-11-25"] {
        let session = moored.client()?.initialize_at(version).await?;
        let events = session.open(call(7, "echo_sse")).await?.rest().await?;
        let all = Event::messages(&events);
        assert_eq!((all.len(), &all[2]["id"]), (3, &json!(7)), "{version}");
        // Where the connection broke only the client knows, and it may break again.
        for _ in 0..2 {
            for (at, event) in events.iter().enumerate() {
                let last = event.id.as_deref().ok_or("no id")?;
                let again = session.get_behind(last).await?.rest().await?;
                assert_eq!(Event::messages(&again), Event::messages(&events[at + 1..]), "{version}");
            }
        }
    }
    assert_eq!(target.count("tools/call"), 2);
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_gone_gives_the_error_of_its_request_at_once() -> Outcome {
    let (_target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let events = session.open(call(7, "echo_sse")).await?.rest().await?;
    for id in 0..KEPT {
        session.open(call(id, "echo_sse")).await?.rest().await?;
    }
    for id in ids(&events) {
        let gone = Event::messages(&session.get_behind(&id).await?.rest().await?);
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert_eq!((&gone[0]["id"], &gone[0]["error"]["code"]), (&json!(7), &json!(-32603)));
    }
    Ok(())
}

#[tokio::test]
async fn an_event_id_of_another_session_or_of_nobody_starts_a_fresh_stream() -> Outcome {
    let (target, moored) = start().await?;
    let (session, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
    let (mut events, primer) = opened(&target, &session, 1).await?;
    for id in [primer.as_str(), "garbage", "", "0", "event-1", "x.9", "."] {
        let mut listening = other.get_behind(id).await?;
        assert_eq!(listening.status, StatusCode::OK, "{id}");
        let first = next(&mut listening).await?;
        assert_eq!((first.id.is_some(), first.data.as_deref()), (true, Some("")), "{id}: {first:?}");
    }
    target.feed(event(&log(0)) + &event(&result(1)));
    assert_eq!(next(&mut events).await?.message(), Some(log(0)), "another session took the stream over");
    assert_eq!(Event::messages(&events.rest().await?), [result(1)]);
    Ok(())
}

#[tokio::test]
async fn of_more_streams_without_a_client_than_are_kept_the_oldest_ends_with_an_error() -> Outcome {
    let (target, moored) = start_with("streamsPerSession: 64").await?;
    let session = moored.client()?.initialize().await?;
    let mut primers = Vec::new();
    for id in 1..=KEPT + 1 {
        let (events, primer) = opened(&target, &session, id).await?;
        drop(events);
        primers.push(primer);
    }
    target.until_seen("notifications/cancelled", 1).await?;
    let told = target.seen("notifications/cancelled");
    let given_up = told[0].message["params"]["requestId"].as_u64().ok_or("no request")?;
    let at = usize::try_from(given_up)? - 1;
    let gone = Event::messages(&session.get_behind(&primers[at]).await?.rest().await?);
    assert_eq!((&gone[0]["id"], &gone[0]["error"]["code"]), (&json!(given_up), &json!(-32603)));
    target.until_feeds(usize::try_from(KEPT)?).await?;
    assert_eq!(target.count("notifications/cancelled"), 1);
    Ok(())
}

#[tokio::test]
async fn cancelling_a_call_ends_its_stream_though_its_client_is_away() -> Outcome {
    let (target, moored) = start().await?;
    let session = moored.client()?.initialize().await?;
    let (events, primer) = opened(&target, &session, 1).await?;
    drop(events);
    let held = session.get_behind(&primer).await?;
    session.notify("notifications/cancelled", json!({"requestId": 1})).await?;
    target.until_seen("notifications/cancelled", 1).await?;
    let told = Event::messages(&held.rest().await?);
    assert_eq!((told.len(), &told[0]["id"], &told[0]["error"]["code"]), (1, &json!(1), &json!(-32800)));
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_taken_up_again_needs_no_place_beside_its_own() -> Outcome {
    let (target, moored) = start_with("streamsPerSession: 1").await?;
    let session = moored.client()?.initialize().await?;
    let (events, primer) = opened(&target, &session, 1).await?;
    assert_eq!(session.get().await?.status, StatusCode::TOO_MANY_REQUESTS);
    let again = session.get_behind(&primer).await?;
    assert_eq!(again.status, StatusCode::OK, "the client cannot come back");
    target.feed(event(&result(1)));
    assert_eq!(Event::messages(&again.rest().await?), [result(1)]);
    drop(events);
    Ok(())
}
