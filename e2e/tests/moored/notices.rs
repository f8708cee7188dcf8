//! What targets say without asking: on exactly one stream of the client's, the right one (2025-11-25, transports,
//! multiple connections; cases 004 and 028).

use e2e::asking::{Scene, begin, event, news, notification, progress, rest, result, say, use_once};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn log(of: &str) -> Value {
    notification("notifications/message", &json!({"level": "info", "data": of}))
}

fn updated(uri: &str) -> Value {
    notification("notifications/resources/updated", &json!({"uri": uri}))
}

#[tokio::test]
async fn what_is_said_on_a_calls_stream_stays_there_and_the_rest_comes_on_the_get_stream() -> Outcome {
    let scene = Scene::start("").await?;
    let (session, other) = (scene.session().await?, scene.session().await?);
    let (mut get, mut others_get) = (session.get().await?, other.get().await?);
    let others_at_a = use_once(&other, (&scene.a, "a")).await?;
    let (mut at_work, at_a) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut second, at_b) = begin(&session, (&scene.b, "b"), &json!(2), None).await?;
    for message in [log("in the call"), updated("u:call")] {
        scene.a.feed(event(&message));
        assert_eq!(at_work.next_message().await?, Some(message));
    }
    for (server, at, message) in [
        (&scene.a, &at_a, log("of a")),
        (&scene.b, &at_b, log("of b")),
        (&scene.a, &at_a, updated("u:a")),
        (&scene.b, &at_b, notification("notifications/unheard", &json!({"x": 1}))),
    ] {
        say(server, at, &message).await?;
        assert_eq!(news(&mut get).await?, message);
    }
    say(&scene.a, &others_at_a, &log("to the other")).await?;
    assert_eq!(news(&mut others_get).await?, log("to the other"));
    // Nothing of all that was left on another stream as well: the next on each is what comes next there.
    scene.b.feed(event(&log("in b's call")));
    assert_eq!(second.next_message().await?, Some(log("in b's call")));
    scene.a.feed(event(&result(&json!(1), "a")));
    scene.b.feed(event(&result(&json!(2), "b")));
    assert_eq!(rest(at_work).await?, [result(&json!(1), "a")]);
    assert_eq!(rest(second).await?, [result(&json!(2), "b")]);
    say(&scene.a, &at_a, &log("the last")).await?;
    assert_eq!(news(&mut get).await?, log("the last"));
    Ok(())
}

/// Case 028: equal tokens at two targets, on whichever stream the targets report.
#[tokio::test]
async fn progress_on_a_targets_get_stream_comes_on_the_stream_of_the_call_that_it_is_of() -> Outcome {
    let scene = Scene::start("").await?;
    // One client that can be asked nothing, and one that can.
    for session in [scene.moored.client()?.initialize().await?, scene.session().await?] {
        let token = json!(1);
        let mut get = session.get().await?;
        let (mut at_work, at_a) = begin(&session, (&scene.a, "a"), &json!(1), Some(&token)).await?;
        let (mut second, at_b) = begin(&session, (&scene.b, "b"), &json!(2), Some(&token)).await?;
        say(&scene.a, &at_a, &progress(&token, 1)).await?;
        assert_eq!(at_work.next_message().await?, Some(progress(&token, 1)));
        say(&scene.b, &at_b, &progress(&token, 7)).await?;
        assert_eq!(second.next_message().await?, Some(progress(&token, 7)));
        // Of a token that nobody gave, and of a call that is over: nobody's.
        say(&scene.a, &at_a, &progress(&json!("1"), 2)).await?;
        scene.a.feed_to(&at_a, event(&result(&json!(1), "a")));
        assert_eq!(rest(at_work).await?, [result(&json!(1), "a")]);
        say(&scene.a, &at_a, &progress(&token, 3)).await?;
        say(&scene.a, &at_a, &log("behind it")).await?;
        assert_eq!(news(&mut get).await?, log("behind it"));
        scene.b.feed_to(&at_b, event(&result(&json!(2), "b")));
        assert_eq!(rest(second).await?, [result(&json!(2), "b")]);
    }
    Ok(())
}

/// Case 030: two calls with ids that differ in their kind alone, at two targets that would take either.
#[tokio::test]
async fn a_cancelled_call_takes_its_own_request_with_it_and_no_other() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let mut get = session.get().await?;
    let (mut at_work, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut second, _) = begin(&session, (&scene.b, "b"), &json!("1"), None).await?;
    let ask = e2e::asking::request(&json!(0), "roots/list", &json!({}));
    scene.a.feed(event(&ask));
    scene.b.feed(event(&ask));
    let asked = at_work.next_message().await?.unwrap_or_default();
    let others = second.next_message().await?.unwrap_or_default();
    session.notify("notifications/cancelled", json!({"requestId": 1})).await?;
    let ended = rest(at_work).await?;
    assert_eq!((ended.len(), &ended[0]["id"], &ended[0]["error"]["code"]), (1, &json!(1), &json!(-32800)));
    let told = news(&mut get).await?;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    scene.a.until("its end", |server| server.answers().len() == 1).await?;
    assert_eq!((&scene.a.answers()[0]["id"], scene.a.count("notifications/cancelled")), (&json!(0), 1));
    session.post(result(&others["id"], "roots").to_string()).await?;
    scene.b.until("its answer", |server| server.answers().len() == 1).await?;
    assert_eq!(scene.b.answers(), [result(&json!(0), "roots")]);
    scene.b.feed(event(&result(&json!("1"), "b")));
    assert_eq!(rest(second).await?, [result(&json!("1"), "b")]);
    assert_eq!(scene.b.count("notifications/cancelled"), 0);
    Ok(())
}
