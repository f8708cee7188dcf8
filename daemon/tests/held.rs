//! What is held whole of targets' answers counts among the bodies that share a bound, and is given back.
//! From inside, since the bound is a share of the machine's memory otherwise.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/listening.rs"]
mod listening;
#[path = "support/gateway.rs"]
mod support;

use std::time::Duration;

use e2e::{
    asking::{event, news, notification, rest, say},
    client::{Client, Event, Session},
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use moored::{
    config::secrets::Secrets,
    gateway::{Gateway, Shared},
    receive::Budget,
};
use mooring_crds::config::{GatewayConfig, TargetConfig};
use serde_json::{Value, json};

/// What all bodies may take together.
const ALL: usize = 1 << 20;
/// More than half of it.
const MOST: usize = 600 << 10;
/// Longer than the silence behind which a stream says a comment.
const LONG: Duration = Duration::from_secs(30);

/// A gateway in front of `target`, and a session of it.
async fn session(target: &ScriptedServer) -> Session {
    let shared = Shared { budget: Budget::new(ALL as u64), ..support::shared() };
    let tasks = shared.tasks.clone();
    let target = TargetConfig {
        alias: "a".to_owned(),
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        url: target.url(),
        ..TargetConfig::default()
    };
    let config = GatewayConfig { targets: vec![target], ..support::config() };
    let gateway = Gateway::start(config, Secrets::default(), shared);
    let url = listening::listen(&gateway, &tasks).await;
    Client::new(&url).unwrap().initialize().await.unwrap()
}

async fn target() -> ScriptedServer {
    let tools = vec![
        Tool::new("fed", Behaviour::Fed),
        Tool::new("big", Behaviour::Big(2 * MOST)),
        Tool::new("echo", Behaviour::Echo),
    ];
    ScriptedServer::start(Script { tools, ..Script::default() }).await
}

fn call(id: u32, tool: &str, more: &Value) -> String {
    let mut params = json!({"name": tool, "arguments": {}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// An answer to the call of this id, of about so many bytes.
fn answer(id: u32, bytes: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "x".repeat(bytes)}]}})
}

#[tokio::test]
async fn of_large_answers_on_streams_only_what_there_is_room_for_is_kept_and_a_finished_one_takes_none() {
    let target = target().await;
    let session = session(&target).await;
    let mut open = Vec::new();
    for id in [1, 2] {
        let mut events = session.open(call(id, "fed", &json!({}))).await.unwrap();
        events.next().await.unwrap();
        target.until_feeds(id as usize).await.unwrap();
        open.push(events);
    }
    let at_target = target.seen("tools/call")[0].session.clone().unwrap();
    let notice = |bytes| {
        let params = json!({"level": "info", "data": "x".repeat(bytes)});
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    };
    // A stream that runs keeps its newest message, whatever it takes.
    target.feed_call(&at_target, &json!(1), format!("data: {}\n\n", notice(MOST)));
    assert_eq!(open[0].next_message().await.unwrap(), Some(notice(MOST)));
    target.feed_call(&at_target, &json!(2), format!("data: {}\n\n", answer(2, MOST)));
    let refused = open[1].next_message().await.unwrap().unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)), "{refused}");
    target.feed_call(&at_target, &json!(1), format!("data: {}\n\n", answer(1, 1)));
    assert_eq!(open[0].next_message().await.unwrap(), Some(answer(1, 1)));
    for id in [3, 4] {
        let mut events = session.open(call(id, "fed", &json!({}))).await.unwrap();
        target.until_feeds(1).await.unwrap();
        target.feed_call(&at_target, &json!(id), format!("data: {}\n\n", answer(id, MOST)));
        assert_eq!(events.next_message().await.unwrap(), Some(answer(id, MOST)), "the other took it all");
        assert_eq!(events.next_message().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_answer_that_is_read_whole_since_it_speaks_of_a_task_needs_room_and_one_that_streams_does_not() {
    let target = target().await;
    let session = session(&target).await;
    assert_eq!(session.post(call(1, "big", &json!({}))).await.unwrap().error_code(), None);
    let whole = session.post(call(2, "big", &json!({"task": {}}))).await.unwrap();
    assert_eq!((whole.status, whole.error_code()), (StatusCode::SERVICE_UNAVAILABLE, Some(-32603)));
    target.until_seen("notifications/cancelled", 1).await.unwrap();
    assert_eq!(session.post(call(3, "echo", &json!({}))).await.unwrap().error_code(), None);
}

/// Takes as long as the silence behind which a client is taken to have read what it was written.
#[tokio::test]
async fn what_was_written_on_a_get_stream_takes_no_room_beyond_a_silence() {
    let target = target().await;
    let session = session(&target).await;
    let mut stream = session.get().await.unwrap();
    session.post(call(1, "echo", &json!({}))).await.unwrap();
    let at_target = target.seen("tools/call")[0].session.clone().unwrap();
    let log = notification("notifications/message", &json!({"level": "info", "data": "x".repeat(MOST)}));
    say(&target, &at_target, &log).await.unwrap();
    assert_eq!(news(&mut stream).await.unwrap(), log);
    let error = async |id| {
        let events = session.open(call(id, "fed", &json!({}))).await.unwrap();
        target.until_feeds(1).await.unwrap();
        target.feed_call(&at_target, &json!(id), event(&answer(id, MOST)));
        target.end_feeds();
        rest(events).await.unwrap()[0].pointer("/error/code").cloned()
    };
    assert_eq!(error(2).await, Some(json!(-32603)), "a client that loses it comes back for it");
    // Of lists it may have been told meanwhile.
    while stream.next_within(LONG).await.unwrap().unwrap() != Event::default() {}
    assert_eq!(error(3).await, None);
}
