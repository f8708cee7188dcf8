//! How a request to the client ends other than by its answer in time, and what is said about it until then.

use std::time::Duration;

use e2e::{
    asking::{Scene, begin, event, id_of, news, notification, progress, request, rest, result},
    client::{Events, Session},
    scripted::ScriptedServer,
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const CANCELLED: &str = "notifications/cancelled";
/// Longer than the second that targets may be silent in these tests.
const LONGER: Duration = Duration::from_millis(1600);

/// Has the target ask on the call's stream under id 1, with the progress token that it may give. The id that the client is shown.
async fn ask(
    server: &ScriptedServer,
    events: &mut Events,
    token: Option<&Value>,
) -> Result<Value, Box<dyn std::error::Error>> {
    let meta = token.map_or_else(|| json!({}), |token| json!({"progressToken": token, "x": 1}));
    let asked = request(&json!(1), "elicitation/create", &json!({"message": "?", "_meta": meta}));
    server.feed(event(&asked));
    let shown = events.next_message().await?.unwrap_or_default();
    let ours = id_of(&shown).ok_or_else(|| format!("no request of ours: {shown}"))?;
    let meta = token.map_or_else(|| json!({}), |_| json!({"progressToken": ours, "x": 1}));
    assert_eq!(shown.pointer("/params/_meta"), Some(&meta));
    Ok(ours)
}

async fn answer_of(server: &ScriptedServer) -> Result<Value, Box<dyn std::error::Error>> {
    server.until("an answer", |server| !server.answers().is_empty()).await?;
    Ok(server.answers().remove(0))
}

/// Late answers are taken, and reach nobody.
async fn is_over(session: &Session, server: &ScriptedServer, ours: &Value) -> Outcome {
    for _ in 0..2 {
        let late = session.post(result(ours, "late").to_string()).await?;
        assert_eq!((late.status, late.body.len()), (StatusCode::ACCEPTED, 0));
    }
    session.post(e2e::asking::call(&json!("behind"), "a___echo", None)).await?;
    assert_eq!(server.answers().len(), 1, "the target was answered twice");
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_answer_in_time_is_told_and_its_target_gets_an_error() -> Outcome {
    let scene = Scene::start("clientAnswerSeconds: 1").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let begun = Instant::now();
    let ours = ask(&scene.a, &mut events, None).await?;
    let told = events.next_message().await?.unwrap_or_default();
    let took = begun.elapsed();
    assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!(CANCELLED), &ours));
    assert!((Duration::from_millis(900)..Duration::from_secs(10)).contains(&took), "{took:?}");
    let error = answer_of(&scene.a).await?;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32001)));
    is_over(&session, &scene.a, &ours).await?;
    // The call goes on.
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    Ok(())
}

#[tokio::test]
async fn an_answer_to_what_was_never_asked_is_refused() -> Outcome {
    let scene = Scene::start("").await?;
    let (session, other) = (scene.session().await?, scene.session().await?);
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let ours = ask(&scene.a, &mut events, None).await?;
    let (process, number) = ours.as_str().and_then(|id| id.split_once('.')).ok_or("an id")?;
    let never = [
        json!(1),
        json!("1"),
        json!(number),
        json!(format!("{process}.99")),
        json!(format!("{process}.+{number}")),
    ];
    for id in &never {
        let refused = session.post(result(id, "x").to_string()).await?;
        assert_eq!((refused.status, refused.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{id}");
    }
    // What this client was asked, no other was.
    let refused = other.post(result(&ours, "x").to_string()).await?;
    assert_eq!((refused.status, refused.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)));
    assert!(scene.a.answers().is_empty());
    session.post(result(&ours, "yes").to_string()).await?;
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "yes"));
    Ok(())
}

#[tokio::test]
async fn a_call_is_not_too_late_while_its_client_is_asked() -> Outcome {
    let scene = Scene::start("requestSeconds: 1").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let ours = ask(&scene.a, &mut events, None).await?;
    let early = events.next_within(LONGER).await;
    assert!(early.is_err(), "{early:?}");
    session.post(result(&ours, "yes").to_string()).await?;
    assert_eq!(answer_of(&scene.a).await?, result(&json!(1), "yes"));
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    assert_eq!(scene.a.count(CANCELLED), 0);
    Ok(())
}

#[tokio::test]
async fn a_target_that_falls_silent_behind_the_clients_answer_has_its_second_and_no_more() -> Outcome {
    let scene = Scene::start("requestSeconds: 1").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let ours = ask(&scene.a, &mut events, None).await?;
    session.post(result(&ours, "yes").to_string()).await?;
    let begun = Instant::now();
    let late = events.next_message().await?.unwrap_or_default();
    let took = begun.elapsed();
    assert_eq!((&late["id"], &late["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!((Duration::from_millis(800)..Duration::from_secs(10)).contains(&took), "{took:?}");
    scene.a.until_seen(CANCELLED, 1).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_target_takes_back_is_taken_back_from_the_client() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut other, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    let ours = ask(&scene.a, &mut events, None).await?;
    let others = ask(&scene.b, &mut other, None).await?;
    scene.a.feed(event(&notification(CANCELLED, &json!({"requestId": 2}))));
    scene.a.feed(event(&notification(CANCELLED, &json!({"requestId": 1}))));
    let told = events.next_message().await?.unwrap_or_default();
    assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!(CANCELLED), &ours));
    let late = session.post(result(&ours, "late").to_string()).await?;
    assert_eq!(late.status, StatusCode::ACCEPTED);
    session.post(result(&others, "yes").to_string()).await?;
    assert_eq!(answer_of(&scene.b).await?, result(&json!(1), "yes"));
    assert!(scene.a.answers().is_empty(), "an answer to what was taken back");
    scene.a.feed(event(&result(&json!(1), "done")));
    scene.b.feed(event(&result(&json!(2), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    assert_eq!(rest(other).await?, [result(&json!(2), "done")]);
    Ok(())
}

#[tokio::test]
async fn a_request_ends_with_the_call_that_it_belongs_to() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let mut get = session.get().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let ours = ask(&scene.a, &mut events, None).await?;
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    let told = news(&mut get).await?;
    assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!(CANCELLED), &ours));
    let error = answer_of(&scene.a).await?;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32603)));
    is_over(&session, &scene.a, &ours).await
}

#[tokio::test]
async fn a_clients_progress_reaches_the_target_that_asked_under_the_token_that_it_gave() -> Outcome {
    let scene = Scene::start("").await?;
    let (session, other) = (scene.session().await?, scene.session().await?);
    let token = json!("t\u{e9}");
    let (mut events, at_a) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut at_b, _) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    let ours = ask(&scene.a, &mut events, Some(&token)).await?;
    let without = ask(&scene.b, &mut at_b, None).await?;
    // On what was asked without a token, on what was never asked, on the target's own token, of another session: nobody's.
    for (session, token) in
        [(&session, &without), (&session, &json!("x")), (&session, &token), (&other, &ours)]
    {
        let taken = session.post(progress(token, 9).to_string()).await?;
        assert_eq!(taken.status, StatusCode::ACCEPTED);
    }
    session.post(progress(&ours, 1).to_string()).await?;
    scene.a.until_seen("notifications/progress", 1).await?;
    session.post(result(&ours, "yes").to_string()).await?;
    answer_of(&scene.a).await?;
    session.post(progress(&ours, 2).to_string()).await?;
    session.post(e2e::asking::call(&json!("behind"), "a___echo", None)).await?;
    let seen = scene.a.seen("notifications/progress");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].session.as_ref(), &seen[0].message), (Some(&at_a), &progress(&token, 1)));
    assert_eq!(scene.b.count("notifications/progress"), 0);
    Ok(())
}
