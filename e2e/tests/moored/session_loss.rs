//! Targets that lose their sessions, with `onSessionLoss: Reinitialize`: one new session, the refused call repeated once,
//! and nothing repeated that may have run (DESIGN §3.6).

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    client::Session,
    manifest,
    moored::Moored,
    scripted::{Behaviour, Interference, LostSession, RawAnswer, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// Calls that wait at once.
const CALLS: usize = 8;

fn reinitializing(name: &str, url: &str) -> String {
    manifest::target(name, "tools", url).replace("spec: {", "spec: {onSessionLoss: Reinitialize, ")
}

/// Targets `a` and `b`, and a session that has used both. The catalogue has read their lists by then.
async fn start() -> Result<(ScriptedServer, ScriptedServer, Moored, Session), Error> {
    let script = || {
        let mut script = Script { capabilities: json!({"tools": {}}), ..Script::default() };
        script.tools.push(Tool::new("fed", Behaviour::Fed));
        script
    };
    let (a, b) = (ScriptedServer::start(script()).await, ScriptedServer::start(script()).await);
    let targets = reinitializing("a", &a.url()) + &reinitializing("b", &b.url());
    let moored = Moored::serve(manifest::gateway("tools") + &targets).await?;
    let session = moored.client()?.initialize().await?;
    session.tools().await?;
    for tool in ["a___counter", "b___counter"] {
        assert_eq!(counted(&session, tool).await?, "1");
    }
    Ok((a, b, moored, session))
}

/// What the counter of the target's session answers.
async fn counted(session: &Session, tool: &str) -> Result<String, Error> {
    let answer = session.call(tool, json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.tool_text().ok_or_else(|| answer.unexpected().into())
}

/// The target sessions that calls were sent in, each once.
fn called_in(target: &ScriptedServer) -> BTreeSet<String> {
    target.seen("tools/call").into_iter().filter_map(|seen| seen.session).collect()
}

// Case 001.
#[tokio::test]
async fn a_target_that_lost_its_session_gets_a_new_one_and_the_refused_call_again_once() -> Outcome {
    let (a, b, moored, session) = start().await?;
    let begun = a.counts().initializes;
    a.forget_sessions();
    assert_eq!(counted(&session, "a___counter").await?, "1", "the first call in its new session");
    assert_eq!((a.count("tools/call"), a.counts().initializes), (3, begun + 1));
    assert_eq!(called_in(&a).len(), 2);
    assert_eq!(counted(&session, "a___counter").await?, "2");
    // The other target is not concerned, nor is the client's session.
    assert_eq!(counted(&session, "b___counter").await?, "2");
    assert_eq!(called_in(&b).len(), 1);
    // Lost again, it is found again.
    a.forget_sessions();
    assert_eq!(counted(&session, "a___counter").await?, "1");
    assert_eq!(called_in(&a).len(), 3);
    let lost = moored.metrics().await?.sum("mooring_target_sessions_lost_total", &[("target", "a")]);
    assert_eq!(lost.to_bits(), 2f64.to_bits());
    // Its last session, and no other, is parted from.
    let last = a.seen("tools/call").pop().and_then(|seen| seen.session);
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    a.until_seen("DELETE", 1).await?;
    assert_eq!((a.seen("DELETE")[0].session.clone(), a.count("DELETE")), (last, 1));
    Ok(())
}

// Case 001, for servers that do not say 404.
#[tokio::test]
async fn whatever_a_server_says_of_a_lost_session_it_gets_a_new_one() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    for lost in [
        LostSession::NotFound,
        LostSession::BadRequest("Bad Request: No valid session ID provided".into()),
        LostSession::Error(StatusCode::OK, -32001, "Session expired".into()),
    ] {
        a.change(|script| script.lost_session = lost.clone());
        a.forget_sessions();
        assert_eq!(counted(&session, "a___counter").await?, "1", "{lost:?}");
    }
    Ok(())
}

// Cases 001 and 008.
#[tokio::test]
async fn however_many_calls_are_refused_at_once_there_is_one_new_session() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    let begun = a.counts().initializes;
    for round in 1..=4 {
        a.forget_sessions();
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let session = session.clone();
            calls.spawn(async move { session.call("a___counter", json!({})).await });
        }
        let mut counts = BTreeSet::new();
        while let Some(answer) = calls.join_next().await {
            let answer = answer??;
            counts.insert(answer.tool_text().ok_or_else(|| answer.unexpected())?);
        }
        let wanted: BTreeSet<String> = (1..=CALLS).map(|n| n.to_string()).collect();
        assert_eq!(counts, wanted, "each ran once, all in one session");
        assert_eq!(a.counts().initializes, begun + round);
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_refused_again_in_the_new_session_is_not_repeated_for_ever() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    let lost = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}"#;
    let lost = RawAnswer { status: StatusCode::NOT_FOUND, ..RawAnswer::json(lost) };
    a.interfere("tools/call", Interference::Answer(lost));
    let calls = a.count("tools/call");
    let answer = session.call("a___counter", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    let data = json!({"target": "a", "reason": "target_session_lost"});
    assert_eq!(answer.response()["error"]["data"], data);
    assert_eq!(a.count("tools/call"), calls + 2);
    a.behave("tools/call");
    assert_eq!(counted(&session, "a___counter").await?, "1", "it is not dead for ever");
    assert_eq!(counted(&session, "b___counter").await?, "2");
    Ok(())
}

#[tokio::test]
async fn a_new_session_that_cannot_be_begun_is_told_and_tried_anew_by_the_next_call() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    a.forget_sessions();
    let away = Interference::Answer(RawAnswer::status(StatusCode::SERVICE_UNAVAILABLE));
    a.interfere_once("initialize", away);
    let answer = session.call("a___counter", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)), "{}", answer.text());
    assert_eq!(counted(&session, "a___counter").await?, "1");
    Ok(())
}

/// A call that may have run is never sent again, however it failed.
#[tokio::test]
async fn a_call_that_may_have_run_is_not_repeated() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    for tool in ["a___die", "a___die_sse"] {
        let calls = a.count("tools/call");
        let answer = session.call(tool, json!({})).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)), "{tool}");
        assert_eq!(a.count("tools/call"), calls + 1, "{tool}");
    }
    for cut in [Interference::Cut, Interference::Answer(RawAnswer::status(StatusCode::BAD_GATEWAY))] {
        a.interfere_once("tools/call", cut);
        let calls = a.count("tools/call");
        let answer = session.call("a___counter", json!({})).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)));
        assert_eq!(a.count("tools/call"), calls + 1);
    }
    assert_eq!(called_in(&a).len(), 1, "none of that was the loss of a session");
    Ok(())
}

#[tokio::test]
async fn calls_that_run_at_another_target_go_on_while_one_gets_a_new_session() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    let params = json!({"name": "b___fed", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": params});
    let mut events = session.open(call.to_string()).await?;
    b.until_feeds(1).await?;
    a.forget_sessions();
    assert_eq!(counted(&session, "a___counter").await?, "1");
    let result = json!({"jsonrpc": "2.0", "id": "b", "result": {"content": []}});
    b.feed(format!("data: {result}\n\n"));
    assert_eq!(events.next_message().await?, Some(result));
    Ok(())
}

#[tokio::test]
async fn a_new_target_session_is_told_what_the_client_has_subscribed_to_and_its_changes_reach_the_client()
-> Outcome {
    let mut script = Script { capabilities: json!({"resources": {"subscribe": true}}), ..Script::default() };
    script.results =
        ["resources/subscribe", "resources/unsubscribe"].map(|m| (m.to_owned(), json!({}))).into();
    let target = ScriptedServer::start(script).await;
    let manifests = manifest::gateway("tools") + &reinitializing("a", &target.url());
    let moored = Moored::serve(manifests).await?;
    let session = moored.client()?.initialize().await?;
    let mut get = session.get().await?;
    counted(&session, "a___counter").await?;
    for (method, name) in [("subscribe", 1), ("subscribe", 2), ("unsubscribe", 1)] {
        let uri = format!("x://{name}");
        let answer = session.ask(&format!("resources/{method}"), json!({"uri": uri})).await?;
        assert_eq!(answer.response()["result"], json!({}), "{}", answer.text());
    }
    for loss in 1..3 {
        target.forget_sessions();
        assert_eq!(counted(&session, "a___counter").await?, "1");
        target.until_seen("resources/subscribe", 2 + loss).await?;
    }
    let told = target.seen("resources/subscribe").split_off(2);
    let uris: Vec<_> = told.iter().map(|seen| &seen.message["params"]["uri"]).collect();
    assert_eq!(uris, ["x://2", "x://2"], "once in each session, and nothing that was taken back");
    let newest = target.seen("tools/call").pop().and_then(|seen| seen.session).ok_or("no session")?;
    assert_eq!(told[1].session.as_ref(), Some(&newest));
    let params = json!({"uri": "x://2"});
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
    target.until("its stream", |target| target.push_to(&newest, &changed.to_string()) == 1).await?;
    assert_eq!(e2e::asking::news(&mut get).await?, changed);
    Ok(())
}

/// `timeouts.overrides`: what is written of a tool holds for it alone.
#[tokio::test]
async fn a_tool_has_the_time_that_an_override_gives_it_and_others_have_the_targets() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let timeouts = "timeouts: {requestSeconds: 60, overrides: \
                    [{name: quick, tools: [hang, \"sl*\"], requestSeconds: 1}]}, ";
    let with =
        manifest::target("a", "tools", &target.url()).replace("spec: {", &format!("spec: {{{timeouts}"));
    let moored = Moored::serve(manifest::gateway("tools") + &with).await?;
    let session = moored.client()?.initialize().await?;
    for tool in ["a___hang", "a___slow"] {
        let answer = session.call(tool, json!({})).await?;
        let reason = answer.response().pointer("/error/data/reason").cloned();
        assert_eq!(reason, Some(json!("target_timeout")), "{tool}: {}", answer.text());
        assert!(answer.text().contains("1 s"), "{}", answer.text());
    }
    let impatient = session.through(&moored.client()?.with_deadline(Duration::from_millis(2500)));
    let other = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call",
        "params": {"name": "a___hang_sse", "arguments": {}}});
    let mut events = impatient.open(other.to_string()).await?;
    let said: Result<Option<Value>, _> = events.next_message().await;
    assert!(matches!(said, Err(e2e::client::ClientError::Deadline(_))), "{said:?}");
    Ok(())
}
