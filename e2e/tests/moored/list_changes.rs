//! Case 032: clients with a GET stream hear that the list of tools has changed, each once, and then see the new list.

use std::time::Duration;

use e2e::{
    asking::hears_nothing,
    client::Events,
    manifest,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long a stream is watched for what must not come.
const A_WHILE: Duration = Duration::from_millis(300);

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

async fn hears_of_a_change(stream: &mut Events) -> Outcome {
    let message = stream.next_message().await?.ok_or("the stream ended")?;
    assert_eq!(message.get("method"), Some(&json!("notifications/tools/list_changed")));
    assert_eq!(message.get("id"), None);
    Ok(())
}

#[tokio::test]
async fn each_stream_hears_of_a_change_once_and_the_next_list_is_the_new_one() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["before"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let answer = client.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(answer.response().pointer("/result/capabilities/tools/listChanged"), Some(&json!(true)));
    let (mut sessions, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let session = client.initialize().await?;
        assert_eq!(session.tools().await?, ["a___before"]);
        streams.push(session.get().await?);
        sessions.push(session);
    }
    let without_stream = client.initialize().await?;
    assert_eq!(without_stream.tools().await?, ["a___before"]);
    target.until_streams(1).await?;
    target.set_tools(Script::echoing(["after"]).tools);
    for (session, stream) in sessions.iter().zip(&mut streams) {
        hears_of_a_change(stream).await?;
        assert_eq!(session.tools().await?, ["a___after"]);
        hears_nothing(stream, A_WHILE).await?;
    }
    assert_eq!(without_stream.tools().await?, ["a___after"]);
    assert_eq!(target.count("initialize"), 1, "the gateway's own session has the one stream");
    Ok(())
}

#[tokio::test]
async fn two_changes_at_once_are_told_and_none_is_lost() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["zero"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___zero"]);
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    for round in 0..5 {
        target.set_tools(Script::echoing([format!("first-{round}")]).tools);
        target.set_tools(Script::echoing([format!("second-{round}")]).tools);
        let last = format!("a___second-{round}");
        hears_of_a_change(&mut stream).await?;
        // They may be told as one or as two; what counts is that the last list is told of.
        while session.tools().await? != [last.as_str()] {
            hears_of_a_change(&mut stream).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_change_during_the_reading_of_the_list_is_read_too() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["zero"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___zero"]);
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    // What is asked for behind the first change is answered as of then, but late.
    let stale = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"first"}]}}"#;
    target.interfere_once("tools/list", Interference::Answer(RawAnswer::json(stale)));
    target.set_tools(Script::echoing(["first"]).tools);
    target.until_seen("tools/list", 2).await?;
    target.set_tools(Script::echoing(["second"]).tools);
    hears_of_a_change(&mut stream).await?;
    while session.tools().await? != ["a___second"] {
        hears_of_a_change(&mut stream).await?;
    }
    Ok(())
}

/// Servers of the TypeScript SDK answer 409 to a second stream of a session.
#[tokio::test]
async fn changes_are_heard_though_the_target_allows_one_stream_only() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["zero"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___zero"]);
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    target.interfere("GET", Interference::Answer(RawAnswer::status(StatusCode::CONFLICT)));
    for name in ["one", "two", "three"] {
        target.set_tools(Script::echoing([name]).tools);
        hears_of_a_change(&mut stream).await?;
        assert_eq!(session.tools().await?, [format!("a___{name}")]);
    }
    assert_eq!(target.count("GET"), 1);
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_opened_behind_a_change_hears_of_it_at_once() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["before"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let (absent, witness) = (client.initialize().await?, client.initialize().await?);
    assert_eq!(absent.tools().await?, ["a___before"]);
    assert_eq!(witness.tools().await?, ["a___before"]);
    let mut seen = witness.get().await?;
    target.until_streams(1).await?;
    target.set_tools(Script::echoing(["after"]).tools);
    hears_of_a_change(&mut seen).await?;
    let mut late = absent.get().await?;
    hears_of_a_change(&mut late).await?;
    // One that has listed since then has seen it.
    assert_eq!(witness.tools().await?, ["a___after"]);
    hears_nothing(&mut witness.get().await?, A_WHILE).await?;
    Ok(())
}

#[tokio::test]
async fn a_list_that_did_not_change_is_not_told() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["same"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___same"]);
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    assert_eq!(target.push(LIST_CHANGED), 1);
    target.until_seen("tools/list", 2).await?;
    hears_nothing(&mut stream, A_WHILE).await?;
    assert_eq!(target.push(r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#), 1);
    assert_eq!(target.push(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#), 1);
    hears_nothing(&mut stream, A_WHILE).await?;
    assert_eq!(target.count("tools/list"), 2);
    Ok(())
}

#[tokio::test]
async fn the_newest_stream_of_a_session_takes_the_place_of_the_older() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["before"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let (session, other) = (client.initialize().await?, client.initialize().await?);
    session.tools().await?;
    other.tools().await?;
    let mut of_other = other.get().await?;
    let mut older = session.get().await?;
    let mut newer = session.get().await?;
    assert_eq!(older.next_message().await?, None, "the older stream ends");
    target.until_streams(1).await?;
    target.set_tools(Script::echoing(["after"]).tools);
    hears_of_a_change(&mut newer).await?;
    hears_of_a_change(&mut of_other).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_target_asks_on_its_own_stream_is_refused_and_a_ping_answered() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    session.tools().await?;
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    target.push(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}"#);
    target.push(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    target.until("two answers", |target| target.answers().len() == 2).await?;
    let answers = target.answers();
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(0), &json!(-32601)));
    assert_eq!((&answers[1]["id"], &answers[1]["result"]), (&json!("p"), &json!({})));
    hears_nothing(&mut stream, A_WHILE).await?;
    Ok(())
}
