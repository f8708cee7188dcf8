//! Case 025 (b): what a target asks on its own GET stream reaches the client on one stream of it, or the target hears
//! that it cannot.

use std::time::Duration;

use e2e::{
    asking::{Scene, begin, call, event, id_of, news, notification, request, rest, result, say, use_once},
    client::{Events, Session},
    scripted::ScriptedServer,
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn ask(of: &str) -> Value {
    request(&json!(1), "elicitation/create", &json!({"message": of}))
}

/// Reads a request to the client and answers it with what it asked; gives back what it asked.
async fn answer_next(events: &mut Events, session: &Session) -> Result<Value, Box<dyn std::error::Error>> {
    let asked = news(events).await?;
    let ours = id_of(&asked).ok_or_else(|| format!("no request of ours: {asked}"))?;
    let of = asked.pointer("/params/message").cloned().unwrap_or_default();
    let taken = session.post(result(&ours, of.as_str().unwrap_or_default()).to_string()).await?;
    assert_eq!(taken.status, StatusCode::ACCEPTED);
    Ok(of)
}

/// What a target was answered.
async fn answer_of(server: &ScriptedServer) -> Result<Value, Box<dyn std::error::Error>> {
    server.until("an answer", |server| !server.answers().is_empty()).await?;
    let mut answers = server.answers();
    assert_eq!(answers.len(), 1, "{answers:?}");
    Ok(answers.remove(0))
}

#[tokio::test]
async fn a_client_that_listens_is_asked_on_its_get_stream_by_each_target_and_answers_each() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let (at_a, at_b) =
        (use_once(&session, (&scene.a, "a")).await?, use_once(&session, (&scene.b, "b")).await?);
    let mut get = session.get().await?;
    // A call that runs is not asked as well.
    let (events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    say(&scene.a, &at_a, &ask("a")).await?;
    assert_eq!(answer_next(&mut get, &session).await?, json!("a"));
    say(&scene.b, &at_b, &ask("b")).await?;
    assert_eq!(answer_next(&mut get, &session).await?, json!("b"));
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "a"));
    assert_eq!(answer_of(&scene.b).await?, result(&json!(1), "b"));
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_listen_is_asked_on_the_stream_of_a_call_to_that_target() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let (mut at_work, at_a) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (other, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    say(&scene.a, &at_a, &ask("a")).await?;
    assert_eq!(answer_next(&mut at_work, &session).await?, json!("a"));
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "a"));
    scene.a.feed(event(&result(&json!(1), "a")));
    scene.b.feed(event(&result(&json!(2), "b")));
    assert_eq!(rest(at_work).await?, [result(&json!(1), "a")]);
    assert_eq!(rest(other).await?, [result(&json!(2), "b")]);
    Ok(())
}

#[tokio::test]
async fn a_call_that_still_waits_for_its_answer_becomes_the_stream_on_which_the_client_is_asked() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let at_a = use_once(&session, (&scene.a, "a")).await?;
    let (calling, mut opening) = (session.clone(), JoinSet::new());
    opening.spawn(async move { calling.open(call(&json!(7), "a___slow", None)).await });
    scene.a.until_seen("tools/call", 2).await?;
    say(&scene.a, &at_a, &ask("a")).await?;
    let mut events = opening.join_next().await.ok_or("no call")???;
    assert_eq!(answer_next(&mut events, &session).await?, json!("a"));
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "a"));
    scene.a.release();
    let answer = rest(events).await?;
    assert_eq!((answer.len(), &answer[0]["id"]), (1, &json!(7)));
    Ok(())
}

#[tokio::test]
async fn what_is_asked_before_the_client_listens_is_kept_for_it() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let at_a = use_once(&session, (&scene.a, "a")).await?;
    say(&scene.a, &at_a, &ask("a")).await?;
    // A call to another target is not asked: its target did not ask. It also comes behind the request.
    let (other, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    let mut get = session.get().await?;
    assert_eq!(answer_next(&mut get, &session).await?, json!("a"));
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "a"));
    scene.b.feed(event(&result(&json!(2), "b")));
    assert_eq!(rest(other).await?, [result(&json!(2), "b")]);
    Ok(())
}

#[tokio::test]
async fn what_was_asked_on_a_get_stream_can_be_taken_back_on_the_stream_of_a_call_answered_in_json() -> Outcome
{
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let at_a = use_once(&session, (&scene.a, "a")).await?;
    let mut get = session.get().await?;
    say(&scene.a, &at_a, &ask("a")).await?;
    let ours = id_of(&news(&mut get).await?).ok_or("no request of ours")?;
    let json_only = session.through(&scene.moored.client()?.with_header("accept", "application/json")?);
    let mut calling = JoinSet::new();
    calling.spawn(async move { json_only.post(call(&json!(5), "a___fed", None)).await });
    scene.a.until_feeds(1).await?;
    scene.a.feed(event(&notification("notifications/cancelled", &json!({"requestId": 1}))));
    assert_eq!(news(&mut get).await?["params"]["requestId"], ours);
    scene.a.feed(event(&result(&json!(5), "done")));
    let answer = calling.join_next().await.ok_or("no call")???;
    assert_eq!((answer.is_stream(), answer.response()), (false, result(&json!(5), "done")));
    Ok(())
}

#[tokio::test]
async fn a_target_whose_request_finds_no_stream_is_told_within_the_bound() -> Outcome {
    let scene = Scene::start("clientAnswerSeconds: 1").await?;
    let session = scene.session().await?;
    let at_a = use_once(&session, (&scene.a, "a")).await?;
    let begun = Instant::now();
    say(&scene.a, &at_a, &ask("a")).await?;
    let told = answer_of(&scene.a).await?;
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32001)));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // Nothing is left of it for a client that listens now.
    let mut get = session.get().await?;
    let log = notification("notifications/message", &json!({"level": "info", "data": "later"}));
    say(&scene.a, &at_a, &log).await?;
    assert_eq!(news(&mut get).await?, log);
    Ok(())
}

#[tokio::test]
async fn while_a_client_is_asked_outside_of_calls_the_clocks_of_those_to_that_target_stand() -> Outcome {
    let scene = Scene::start("requestSeconds: 1").await?;
    let session = scene.session().await?;
    let mut open = session.get().await?;
    let (mut asking, at_a) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut other, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    say(&scene.a, &at_a, &request(&json!("q"), "roots/list", &json!({}))).await?;
    let asked = news(&mut open).await?;
    // The other's ends it; by then this one's would have, too.
    let late = other.next_message().await?.unwrap_or_default();
    assert_eq!(late["error"]["data"], json!({"target": "b", "reason": "target_timeout"}), "{late}");
    let answer = json!({"jsonrpc": "2.0", "id": id_of(&asked), "result": {"roots": []}});
    assert_eq!(session.post(answer.to_string()).await?.status, StatusCode::ACCEPTED);
    scene.a.until("the answer", |server| !server.answers().is_empty()).await?;
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(asking.next_message().await?, Some(result(&json!(1), "done")));
    Ok(())
}

#[tokio::test]
async fn the_clock_of_a_call_whose_answer_has_not_begun_stands_too() -> Outcome {
    let scene = Scene::start("requestSeconds: 1").await?;
    let session = scene.session().await?;
    let mut open = session.get().await?;
    let (mut waiting, own) = (JoinSet::new(), session.clone());
    waiting.spawn(async move { own.post(call(&json!(1), "a___slow", None)).await });
    scene.a.until_seen("tools/call", 1).await?;
    let at_a = scene.a.seen("tools/call")[0].session.clone().ok_or("no session")?;
    let (mut other, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    say(&scene.a, &at_a, &request(&json!("q"), "roots/list", &json!({}))).await?;
    let asked = news(&mut open).await?;
    // The other's time is over; by then this one's would be, too.
    let late = other.next_message().await?.unwrap_or_default();
    assert_eq!(late["error"]["data"]["reason"], json!("target_timeout"), "{late}");
    let answer = json!({"jsonrpc": "2.0", "id": id_of(&asked), "result": {"roots": []}});
    assert_eq!(session.post(answer.to_string()).await?.status, StatusCode::ACCEPTED);
    scene.a.until("the answer", |server| !server.answers().is_empty()).await?;
    scene.a.release();
    let answer = waiting.join_next().await.ok_or("no call")???;
    assert_eq!(answer.tool_text().as_deref(), Some("slow: {}"), "{}", answer.text());
    Ok(())
}
