//! The scripted server keeps its word: what tests of the gateway build on is itself tested, by the raw client.

use std::time::Duration;

use e2e::{
    client::{Client, ClientError},
    scripted::{
        Behaviour, Counts, EventIds, Interference, LostSession, RawAnswer, Script, ScriptedServer, Tool,
    },
};
use http::{Method, StatusCode};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn a_session_begins_is_used_and_ends() -> Outcome {
    let target = ScriptedServer::start(Script { page_size: Some(5), ..Script::default() }).await;
    let session = Client::new(&target.url())?.initialize().await?;
    let tools = session.tools().await?;
    assert_eq!((tools.len(), target.count("tools/list")), (12, 3));
    let spelt = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"z":1.0,"a":1e2}}}"#;
    let answer = session.post(spelt).await?;
    assert!(
        answer.text().contains(r#""structuredContent":{"arguments":{"z":1.0,"a":1e2}}"#),
        "{}",
        answer.text()
    );
    assert_eq!(session.call("counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    assert_eq!(session.call("counter", json!({})).await?.tool_text().as_deref(), Some("2"));
    assert_eq!(session.delete().await?.status, StatusCode::OK);
    assert_eq!(session.call("echo", json!({})).await?.status, StatusCode::NOT_FOUND);
    let Counts { initializes, open_sessions, deletes, connections, waiting, .. } = target.counts();
    assert_eq!((initializes, open_sessions, deletes, connections, waiting), (1, 0, 1, 1, 0));
    Ok(())
}

#[tokio::test]
async fn a_forgotten_session_is_refused_as_the_script_says() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let session = Client::new(&target.url())?.initialize().await?;
    target.forget_sessions();
    assert_eq!(session.call("echo", json!({})).await?.status, StatusCode::NOT_FOUND);
    target.change(|script| {
        script.lost_session = LostSession::BadRequest("No valid session ID provided".into());
    });
    let answer = session.call("echo", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32000)));
    Ok(())
}

#[tokio::test]
async fn events_come_before_the_result_and_carry_ids_where_asked() -> Outcome {
    let target = ScriptedServer::start(Script { event_ids: EventIds::Present, ..Script::default() }).await;
    let session = Client::new(&target.url())?.initialize().await?;
    let answer = session.call("echo_sse", json!({"notifications": 2})).await?;
    assert!(answer.is_stream());
    assert!(answer.text().starts_with("id: event-1\ndata: \n\n"), "{}", answer.text());
    assert_eq!(answer.messages().len(), 3);
    assert_eq!(answer.response()["id"], json!(1));
    Ok(())
}

#[tokio::test]
async fn what_is_pushed_reaches_open_streams_only() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let client = Client::new(&target.url())?;
    let (listening, deaf) = (client.initialize().await?, client.initialize().await?);
    let mut stream = listening.get().await?;
    target.until_streams(1).await?;
    target.set_tools(vec![Tool::new("new", Behaviour::Echo)]);
    assert_eq!(target.push_to(deaf.id(), "{}"), 0);
    let message = stream.next_message().await?.unwrap_or_default();
    assert_eq!(message["method"], json!("notifications/tools/list_changed"));
    assert_eq!(deaf.tools().await?, ["new"]);
    drop(stream);
    target.until_streams(0).await?;
    Ok(())
}

#[tokio::test]
async fn a_call_waits_for_its_release_and_another_for_the_clients_answer() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let session = Client::new(&target.url())?.initialize().await?;
    let release = async {
        target.until_seen("tools/call", 1).await?;
        target.release();
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let (slow, released) = tokio::join!(session.call("slow", json!({"n": 1})), release);
    released?;
    assert_eq!(slow?.tool_text().as_deref(), Some(r#"slow: {"n":1}"#));

    let call = r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"ask"}}"#;
    let mut stream = session.open(call).await?;
    let asked = stream.next_message().await?.unwrap_or_default();
    assert_eq!((&asked["id"], &asked["method"]), (&json!(0), &json!("sampling/createMessage")));
    let refusal = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#;
    assert_eq!(session.post(refusal).await?.status, StatusCode::ACCEPTED);
    let result = stream.next_message().await?.unwrap_or_default();
    assert!(result["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("-32601")));
    assert_eq!(target.answers().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_dying_server_breaks_the_answer_and_a_hanging_one_gives_none() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let client = Client::new(&target.url())?.with_deadline(Duration::from_millis(300));
    let session = client.initialize().await?;
    assert!(matches!(session.call("die", json!({})).await, Err(ClientError::Body(_))));
    assert!(matches!(session.call("die_sse", json!({})).await, Err(ClientError::Body(_))));
    assert!(matches!(session.call("hang", json!({})).await, Err(ClientError::Deadline(_))));
    target.until("the abandoned call to be dropped", |target| target.counts().waiting == 0).await?;
    target.interfere_once("initialize", Interference::Answer(RawAnswer::status(StatusCode::BAD_GATEWAY)));
    target.interfere_once("initialize", Interference::Cut);
    assert_eq!(client.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::BAD_GATEWAY);
    assert!(matches!(client.initialize().await, Err(ClientError::Send(_))));
    client.initialize().await?;
    assert_eq!(client.send(client.request(Method::GET).body(bytes::Bytes::new())?).await?.status, 400);
    let address = target.stop().await;
    assert!(matches!(client.initialize().await, Err(ClientError::Send(_))));
    ScriptedServer::start_at(address, Script::default()).await?;
    Ok(())
}
