//! How long calls may take: silence is bounded, progress restarts the bound, and nothing exceeds the maximum. At a bound
//! the client gets an error for its request and the target hears that nobody waits.

use std::time::Duration;

use e2e::{
    client::{ClientError, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Most of the two seconds that a call may be silent where this is waited for.
const MOST_OF_IT: Duration = Duration::from_millis(1200);

/// What says to a target that nobody waits.
const CANCELLED: &str = "notifications/cancelled";

async fn start(timeouts: &str) -> Result<(ScriptedServer, Moored, Session), Box<dyn std::error::Error>> {
    let mut script = Script::default();
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let manifest = manifest::target("a", "tools", &target.url());
    let manifest = manifest.replace("spec: {", &format!("spec: {{timeouts: {{{timeouts}}}, "));
    let moored = Moored::serve(manifest::gateway("tools") + &manifest).await?;
    let session = moored.client()?.initialize().await?;
    Ok((target, moored, session))
}

fn call(id: &Value, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn progress(step: u32) -> String {
    let params = json!({"progressToken": "t", "progress": step});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    format!("event: message\ndata: {message}\n\n")
}

/// The target hears that nobody waits for the request of this id, in the session in which it was called, once.
async fn hears_that_nobody_waits(target: &ScriptedServer, id: &Value) -> Outcome {
    target.until_seen(CANCELLED, 1).await?;
    let (told, called) = (target.seen(CANCELLED).remove(0), target.seen("tools/call").remove(0));
    assert_eq!(told.message.pointer("/params/requestId"), Some(id));
    assert_eq!((told.session.is_some(), &told.session), (true, &called.session));
    assert_eq!(target.count(CANCELLED), 1);
    Ok(())
}

fn is_timeout(message: &Value, id: &Value) {
    let got = (message.get("id"), message.pointer("/error/code"));
    assert_eq!(got, (Some(id), Some(&json!(-32603))), "{message}");
    let data = json!({"target": "a", "reason": "target_timeout"});
    assert_eq!(message.pointer("/error/data"), Some(&data));
}

#[tokio::test]
async fn a_silent_call_gets_an_error_and_its_target_is_told() -> Outcome {
    let (target, _moored, session) = start("requestSeconds: 1").await?;
    let begun = Instant::now();
    let answer = session.post(call(&json!("s"), "a___slow")).await?;
    let took = begun.elapsed();
    assert_eq!((answer.status, answer.is_stream()), (StatusCode::OK, false));
    is_timeout(&answer.response(), &json!("s"));
    assert!((Duration::from_millis(900)..Duration::from_secs(10)).contains(&took), "{took:?}");
    hears_that_nobody_waits(&target, &json!("s")).await?;
    // The id is free again, and the session goes on.
    assert_eq!(session.post(call(&json!("s"), "a___echo")).await?.tool_text().as_deref(), Some("echo: {}"));
    Ok(())
}

#[tokio::test]
async fn a_stream_that_falls_silent_ends_with_an_error_and_its_target_is_told() -> Outcome {
    let (target, _moored, session) = start("requestSeconds: 1").await?;
    let mut events = session.open(call(&json!(8), "a___fed")).await?;
    target.until_feeds(1).await?;
    target.feed(progress(1));
    assert!(events.next_message().await?.is_some());
    is_timeout(&events.next_message().await?.unwrap_or_default(), &json!(8));
    assert_eq!(events.next_message().await?, None);
    hears_that_nobody_waits(&target, &json!(8)).await?;
    target.until_feeds(0).await?;
    Ok(())
}

#[tokio::test]
async fn a_client_that_takes_no_stream_is_told_of_the_timeout_in_json() -> Outcome {
    let (target, moored, _) = start("requestSeconds: 1").await?;
    let session = moored.client()?.with_header("accept", "application/json")?.initialize().await?;
    let answer = session.post(call(&json!(8), "a___hang_sse")).await?;
    assert_eq!((answer.status, answer.is_stream()), (StatusCode::OK, false));
    is_timeout(&answer.response(), &json!(8));
    hears_that_nobody_waits(&target, &json!(8)).await?;
    Ok(())
}

#[tokio::test]
async fn progress_restarts_the_bound() -> Outcome {
    let (target, _moored, session) = start("requestSeconds: 2").await?;
    let mut events = session.open(call(&json!(1), "a___fed")).await?;
    target.until_feeds(1).await?;
    for step in 0..4 {
        target.feed(progress(step));
        assert_eq!(events.next_message().await?.unwrap_or_default()["params"]["progress"], json!(step));
        let silence = events.next_within(MOST_OF_IT).await;
        assert!(matches!(silence, Err(ClientError::Deadline(_))), "step {step}: {silence:?}");
    }
    target.feed("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n");
    assert_eq!(events.next_message().await?.unwrap_or_default()["result"], json!({"content": []}));
    assert_eq!(target.count(CANCELLED), 0);
    Ok(())
}

#[tokio::test]
async fn the_maximum_ends_a_call_whatever_its_progress() -> Outcome {
    let (target, _moored, session) = start("requestSeconds: 2, maximumSeconds: 5").await?;
    let begun = Instant::now();
    let mut events = session.open(call(&json!(1), "a___fed")).await?;
    target.until_feeds(1).await?;
    let mut ended = Value::Null;
    for step in 0..10 {
        target.feed(progress(step));
        // The progress itself and then silence, unless the call is ended.
        for _ in 0..2 {
            match events.next_within(MOST_OF_IT).await {
                Ok(event) => {
                    ended = event.ok_or("the stream ended without an error")?.message().unwrap_or_default();
                }
                Err(ClientError::Deadline(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if ended.get("error").is_some() {
                break;
            }
        }
        if ended.get("error").is_some() {
            break;
        }
    }
    is_timeout(&ended, &json!(1));
    let took = begun.elapsed();
    assert!((Duration::from_millis(4900)..Duration::from_secs(10)).contains(&took), "{took:?}");
    hears_that_nobody_waits(&target, &json!(1)).await?;
    Ok(())
}

#[tokio::test]
async fn a_target_that_never_answers_initialize_fails_the_call_within_its_bound() -> Outcome {
    let (target, _moored, session) = start("connectSeconds: 1").await?;
    target.until_seen("tools/list", 1).await?;
    target.interfere("initialize", e2e::scripted::Interference::Hang);
    let begun = Instant::now();
    let answer = session.post(call(&json!(1), "a___echo")).await?;
    is_timeout(&answer.response(), &json!(1));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(target.count("tools/call"), 0);
    // A failed handshake is not kept.
    target.behave("initialize");
    assert_eq!(session.post(call(&json!(1), "a___echo")).await?.tool_text().as_deref(), Some("echo: {}"));
    Ok(())
}
