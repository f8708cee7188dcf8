//! A call that is silent for so long that proxies would cut it is opened as a stream, for those who take one. These
//! tests take as long as that silence.

use std::time::Duration;

use e2e::{
    client::{Client, ClientError},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Behind the silence, and then some.
const LONG: Duration = Duration::from_secs(30);

fn call(id: u32, tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn a_call_that_is_silent_for_fifteen_seconds_becomes_a_stream_where_the_client_takes_one() -> Outcome {
    let mut script = Script::default();
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = Client::new(&moored.url())?.with_deadline(LONG);
    let (session, begun) = (client.initialize().await?, Instant::now());
    let json_only = client.clone().with_header("accept", "application/json")?.initialize().await?;
    let mut whole = JoinSet::new();
    whole.spawn(async move { json_only.post(call(1, "a___slow")).await });
    // A stream that is open already gets a comment instead.
    let mut open = session.open(call(2, "a___fed")).await?;
    // Its priming event has come at once.
    assert_eq!(open.next().await?.and_then(|event| event.data).as_deref(), Some(""));
    let (streamed, comment) = tokio::join!(session.open(call(3, "a___slow")), open.next());
    let mut streamed = streamed?;
    let took = begun.elapsed();
    assert!((Duration::from_secs(14)..Duration::from_secs(20)).contains(&took), "{took:?}");
    let kind = streamed.headers.get("content-type").map(http::HeaderValue::as_bytes);
    assert_eq!((streamed.status, kind), (StatusCode::OK, Some(b"text/event-stream".as_slice())));
    let comment = comment?.ok_or("the open stream ended")?;
    assert_eq!((comment.data, comment.id), (None, None));
    assert!(whole.try_join_next().is_none(), "a client that takes JSON only waits");

    target.release();
    let answer = streamed.next_message().await?.unwrap_or_default();
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(3), &json!("slow: {}")));
    assert_eq!(streamed.next_message().await?, None);
    let whole = whole.join_next().await.ok_or("the call in JSON is gone")???;
    assert_eq!((whole.is_stream(), whole.tool_text().as_deref()), (false, Some("slow: {}")));
    Ok(())
}

#[tokio::test]
async fn a_call_that_became_a_stream_may_be_silent_no_longer_for_that() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let manifest = manifest::target("a", "tools", &target.url());
    let manifest = manifest.replace("spec: {", "spec: {timeouts: {requestSeconds: 16}, ");
    let moored = Moored::serve(manifest::gateway("tools") + &manifest).await?;
    let (session, begun) =
        (Client::new(&moored.url())?.with_deadline(LONG).initialize().await?, Instant::now());
    let mut events = session.open(call(1, "a___slow")).await?;
    let answer = events.next_message().await?.unwrap_or_default();
    assert_eq!(answer["error"]["data"]["reason"], json!("target_timeout"), "{answer}");
    let took = begun.elapsed();
    assert!((Duration::from_secs(15)..Duration::from_secs(22)).contains(&took), "{took:?}");
    Ok(())
}

#[tokio::test]
async fn a_silent_stream_that_is_read_for_a_client_of_json_costs_no_processor() -> Outcome {
    let mut script = Script::default();
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = Client::new(&moored.url())?.with_deadline(LONG);
    let session = client.initialize().await?;
    let json_only = client.clone().with_header("accept", "application/json")?.initialize().await?;
    let mut whole = JoinSet::new();
    whole.spawn(async move { json_only.post(call(1, "a___fed")).await });
    target.until_feeds(1).await?;
    // A stream that began later has been silent long enough: so has the one that is read.
    let mut open = session.open(call(2, "a___fed")).await?;
    open.next().await?.ok_or("the open stream ended")?;
    let before = moored.processor_ticks().ok_or("no processor time")?;
    let second = open.next_within(Duration::from_secs(1)).await;
    assert!(matches!(second, Err(ClientError::Deadline(_))), "{second:?}");
    let used = moored.processor_ticks().ok_or("no processor time")? - before;
    assert!(used < 30, "{used} % of a processor for two silent calls");

    target.feed("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n");
    let whole = whole.join_next().await.ok_or("the call in JSON is gone")???;
    assert_eq!((whole.is_stream(), whole.response().get("id")), (false, Some(&json!(1))));
    Ok(())
}
