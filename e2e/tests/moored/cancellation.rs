//! Case 030: `notifications/cancelled` ends the one call that it names, at once, and tells the one target that runs it.

use e2e::{
    client::{Answer, ClientError, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Calls = JoinSet<Result<Answer, ClientError>>;

/// The notification's method.
const CANCELLED: &str = "notifications/cancelled";

fn call(id: &Value, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn begin(session: &Session, id: Value, tool: &'static str) -> Calls {
    let (session, mut calls) = (session.clone(), JoinSet::new());
    calls.spawn(async move { session.post(call(&id, tool)).await });
    calls
}

async fn end(mut calls: Calls) -> Result<Answer, Box<dyn std::error::Error>> {
    Ok(calls.join_next().await.ok_or("there was no call")???)
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_its_target_alone_is_told() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(manifest::gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let slow = begin(&session, json!(101), "a___slow");
    let other = begin(&session, json!("101"), "b___slow");
    a.until_seen("tools/call", 1).await?;
    b.until_seen("tools/call", 1).await?;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101,"reason":"enough","x":1.0}}"#;
    let answer = session.post(cancel).await?;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::ACCEPTED, 0));
    let ended = end(slow).await?;
    assert_eq!(
        (ended.error_code(), &ended.response()["id"]),
        (Some(-32800), &json!(101)),
        "{}",
        ended.text()
    );
    a.until_seen(CANCELLED, 1).await?;
    let (told, called) = (a.seen(CANCELLED).remove(0), a.seen("tools/call").remove(0));
    assert_eq!(String::from_utf8_lossy(&told.body), cancel);
    assert_eq!((told.session, called.id()), (called.session.clone(), Some(&json!(101))));
    // The other call has the string of the number for its id: it runs on.
    b.release();
    assert_eq!(end(other).await?.tool_text().as_deref(), Some("slow: {}"));
    assert_eq!((a.count(CANCELLED), b.count(CANCELLED)), (1, 0));
    Ok(())
}

#[tokio::test]
async fn a_cancelled_stream_ends_with_an_error_for_its_request() -> Outcome {
    let target =
        ScriptedServer::start(Script { tools: vec![Tool::new("fed", Behaviour::Fed)], ..Script::default() })
            .await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let mut events = session.open(call(&json!(5), "a___fed")).await?;
    target.until_feeds(1).await?;
    session.notify(CANCELLED, json!({"requestId": 5})).await?;
    let message = events.next_message().await?.unwrap_or_default();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(5), &json!(-32800)));
    assert_eq!(events.next_message().await?, None);
    target.until_seen(CANCELLED, 1).await?;
    target.until_feeds(0).await?;
    Ok(())
}

#[tokio::test]
async fn ids_that_are_unknown_finished_or_of_another_session_are_ignored() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let (session, other) = (client.initialize().await?, client.initialize().await?);
    session.post(call(&json!(1), "a___echo")).await?;
    other.post(call(&json!(1), "a___echo")).await?;
    let slow = begin(&session, json!(7), "a___slow");
    target.until_seen("tools/call", 3).await?;
    let ignored = [
        (&session, json!({"requestId": 1})),
        (&session, json!({"requestId": 99})),
        (&session, json!({"requestId": "7"})),
        (&session, json!({"requestId": 0})),
        (&session, json!({})),
        (&session, json!({"requestId": null})),
        (&other, json!({"requestId": 7})),
    ];
    for (session, params) in ignored {
        assert_eq!(session.notify(CANCELLED, params).await?.status, StatusCode::ACCEPTED);
    }
    target.release();
    assert_eq!(end(slow).await?.tool_text().as_deref(), Some("slow: {}"));
    assert_eq!(target.count(CANCELLED), 0, "the target was told of a call that nobody cancelled");
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_cancelled_twice_is_told_of_once() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let slow = begin(&session, json!(3), "a___hang");
    target.until_seen("tools/call", 1).await?;
    for _ in 0..3 {
        session.notify(CANCELLED, json!({"requestId": 3})).await?;
    }
    assert_eq!(end(slow).await?.error_code(), Some(-32800));
    target.until_seen(CANCELLED, 1).await?;
    // What is sent now comes behind whatever was still to be told.
    session.post(call(&json!(4), "a___echo")).await?;
    assert_eq!(target.count(CANCELLED), 1);
    Ok(())
}

#[tokio::test]
async fn an_id_is_the_same_however_it_is_spelt() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    for (n, (first, second)) in
        [("5", "5.0"), ("6.0", "6"), (r#""a""#, r#""\u0061""#)].into_iter().enumerate()
    {
        let call = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a___hang","arguments":{{}}}}}}"#
            )
        };
        let mut running: Calls = JoinSet::new();
        let (own, text) = (session.clone(), call(first));
        running.spawn(async move { own.post(text).await });
        target.until_seen("tools/call", n + 1).await?;
        let twice = session.post(call(second)).await?;
        assert_eq!((twice.status, twice.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{second}");
        let cancel =
            format!(r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{second}}}}}"#);
        session.post(cancel).await?;
        assert_eq!(end(running).await?.error_code(), Some(-32800), "{second}");
        target.until_seen(CANCELLED, n + 1).await?;
    }
    Ok(())
}
