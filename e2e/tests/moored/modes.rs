//! Gateways that keep no sessions (`session.mode: Stateless`), and such as open no streams (`streaming: Disabled`).

use std::collections::BTreeSet;

use e2e::{
    client::{Answer, Client},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Interference, Script, ScriptedServer, Seen, Sessions, Tool},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

const STATELESS: &str = "session: {mode: Stateless}";
const UNSTREAMED: &str = "streaming: Disabled";

async fn start(fields: &str) -> Result<(ScriptedServer, Moored), Error> {
    let mut script = Script { capabilities: json!({"tools": {}}), ..Script::default() };
    script.tools.push(Tool::new("elicit", Behaviour::Ask(json!(0), "elicitation/create".into())));
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let gateway = manifest::gateway("tools").replace("spec: {", &format!("spec: {{{fields}, "));
    let moored = Moored::serve(gateway + &manifest::target("a", "tools", &target.url())).await?;
    Ok((target, moored))
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

async fn call(client: &Client, tool: &str) -> Result<Answer, Error> {
    let params = json!({"name": format!("a___{tool}"), "arguments": {}});
    Ok(client.post(request(1, "tools/call", &params)).await?)
}

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}, "experimental": {"x": {}}})
}

/// The target sessions that calls were sent in.
fn called_in(target: &ScriptedServer) -> Vec<String> {
    target.seen("tools/call").into_iter().filter_map(|seen| seen.session).collect()
}

#[tokio::test]
async fn a_stateless_gateway_issues_no_id_and_answers_everything_without_one() -> Outcome {
    let (_target, moored) = start(STATELESS).await?;
    let client = moored.client()?;
    let answer = client.post_initialize("2025-11-25", everything()).await?;
    assert_eq!((answer.status, answer.header("mcp-session-id")), (StatusCode::OK, None));
    assert_eq!(answer.response()["result"]["protocolVersion"], json!("2025-11-25"));
    assert!(answer.response()["result"]["capabilities"]["tools"].is_object());
    let client = client.with_header("mcp-protocol-version", "2025-11-25")?;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(client.post(initialized).await?.status, StatusCode::ACCEPTED);
    let listed = client.post(request(1, "tools/list", &json!({}))).await?;
    let tools = listed.response()["result"]["tools"].as_array().map_or(0, Vec::len);
    assert!(tools > 5, "{}", listed.text());
    assert_eq!(client.post(request(2, "ping", &json!({}))).await?.response()["result"], json!({}));
    assert_eq!(call(&client, "echo").await?.tool_text().as_deref(), Some("echo: {}"));
    let streamed = call(&client, "echo_sse").await?;
    assert!(streamed.is_stream());
    assert_eq!((streamed.messages().len(), streamed.tool_text().as_deref()), (4, Some("echo_sse: {}")));
    let metrics = moored.metrics().await?;
    assert_eq!(metrics.sum("mooring_sessions_started_total", &[]).to_bits(), 0f64.to_bits());
    Ok(())
}

/// What a gateway with these fields announces, of a target that announces everything.
async fn announced(fields: &str) -> Result<Value, Error> {
    let capabilities = json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true}, "logging": {}, "completions": {},
        "resources": {"listChanged": true, "subscribe": true}, "tasks": {"list": {}, "cancel": {}},
    });
    let target = ScriptedServer::start(Script { capabilities, ..Script::default() }).await;
    let gateway = manifest::gateway("tools").replace("spec: {", &format!("spec: {{{fields}, "));
    let moored = Moored::serve(gateway + &manifest::target("a", "tools", &target.url())).await?;
    let answer = moored.client()?.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let capabilities = answer.response().pointer("/result/capabilities").cloned();
    Ok(capabilities.ok_or("nothing is announced")?)
}

#[tokio::test]
async fn a_stateless_gateway_announces_nothing_that_the_next_request_would_find_forgotten() -> Outcome {
    let nothing_kept = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
    assert_eq!(announced(STATELESS).await?, nothing_kept);
    Ok(())
}

#[tokio::test]
async fn without_streaming_nothing_is_announced_that_a_get_stream_would_tell() -> Outcome {
    let untold = json!({
        "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {},
        "tasks": {"list": {}, "cancel": {}},
    });
    assert_eq!(announced(UNSTREAMED).await?, untold);
    let told = announced("streaming: Enabled").await?;
    assert_eq!(told["resources"], json!({"listChanged": true, "subscribe": true}));
    Ok(())
}

#[tokio::test]
async fn get_and_delete_of_a_stateless_gateway_are_not_allowed() -> Outcome {
    let (_target, moored) = start(STATELESS).await?;
    let client = moored.client()?;
    for verb in [Method::GET, Method::DELETE] {
        for id in [None, Some("made-up")] {
            let mut request = client.request(verb.clone());
            if let Some(id) = id {
                request = request.header("mcp-session-id", id);
            }
            let answer = client.send(request.body(bytes::Bytes::new())?).await?;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{verb} {id:?}");
            assert_eq!(answer.header("allow"), Some("POST, OPTIONS"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_request_has_a_target_session_of_its_own_which_ends_with_the_answer() -> Outcome {
    let (target, moored) = start(STATELESS).await?;
    let client = moored.client()?.with_header("mcp-protocol-version", "2025-06-18")?;
    for tool in ["counter", "counter", "echo_sse", "fail"] {
        let answer = call(&client, tool).await?;
        assert_eq!(answer.status, StatusCode::OK);
        if tool == "counter" {
            assert_eq!(answer.tool_text().as_deref(), Some("1"), "a session was used twice");
        }
    }
    target.until_seen("DELETE", 4).await?;
    let (called, deleted) = (called_in(&target), target.seen("DELETE"));
    let deleted: BTreeSet<String> = deleted.into_iter().filter_map(|seen| seen.session).collect();
    assert_eq!((called.len(), called.iter().cloned().collect::<BTreeSet<_>>()), (4, deleted));
    let calls = target.seen("tools/call");
    assert!(calls.iter().all(|seen| seen.header("mcp-protocol-version") == Some("2025-06-18")));
    // A target session that is open to the end of a stream ends only then.
    let params = json!({"name": "a___fed", "arguments": {}});
    let mut events =
        client.open(client.request(Method::POST).body(request(9, "tools/call", &params).into())?).await?;
    target.until_feeds(1).await?;
    assert_eq!(target.count("DELETE"), 4);
    let result = json!({"jsonrpc": "2.0", "id": 9, "result": {"content": []}});
    target.feed(format!("data: {result}\n\n"));
    assert_eq!(events.next_message().await?, Some(result));
    assert_eq!(events.next_message().await?, None);
    target.until_seen("DELETE", 5).await?;
    Ok(())
}

#[tokio::test]
async fn a_client_of_a_stateless_gateway_that_goes_away_leaves_no_target_session() -> Outcome {
    let (target, moored) = start(STATELESS).await?;
    let client = moored.client()?;
    let params = json!({"name": "a___fed", "arguments": {}});
    let events =
        client.open(client.request(Method::POST).body(request(9, "tools/call", &params).into())?).await?;
    target.until_feeds(1).await?;
    drop(events);
    target.until_seen("DELETE", 1).await?;
    assert_eq!(target.seen("DELETE")[0].session.as_ref(), called_in(&target).first());
    target.until_feeds(0).await?;
    Ok(())
}

#[tokio::test]
async fn a_client_of_a_stateless_gateway_that_goes_away_during_a_handshake_leaves_no_target_session()
-> Outcome {
    let (target, moored) = start(STATELESS).await?;
    // The catalogue's own handshake is over.
    target.until_seen("tools/list", 1).await?;
    let begun = target.counts().initializes;
    target.interfere_once("initialize", Interference::Hold);
    let client = moored.client()?;
    let mut calling = JoinSet::new();
    calling.spawn(async move { call(&client, "counter").await.map(drop) });
    target.until_seen("initialize", begun + 1).await?;
    calling.shutdown().await;
    moored.until_metrics(|metrics| metrics.sum("mooring_requests_in_flight", &[]) < 0.5).await?;
    let open = target.open_sessions();
    target.release();
    target.until_seen("DELETE", 1).await?;
    assert_eq!(target.open_sessions(), open);
    assert_eq!(target.count("tools/call"), 0);
    Ok(())
}

#[tokio::test]
async fn a_stateless_gateway_offers_its_targets_nothing_that_needs_the_client_and_refuses_what_they_ask()
-> Outcome {
    let (target, moored) = start(STATELESS).await?;
    let client = moored.client()?;
    let answer = client.post_initialize("2025-11-25", everything()).await?;
    assert_eq!(answer.status, StatusCode::OK);
    let told = call(&client, "elicit").await?.tool_text().unwrap_or_default();
    assert!(told.contains("-32601"), "{told}");
    // The catalogue's among them.
    let offered = target.seen("initialize");
    assert!(offered.iter().all(|seen| seen.message["params"]["capabilities"] == json!({})), "{offered:?}");
    Ok(())
}

#[tokio::test]
async fn the_version_header_of_a_stateless_gateway_decides_and_a_bad_one_is_refused() -> Outcome {
    let (target, moored) = start(STATELESS).await?;
    for bad in ["1900-01-01", "x", "2026-07-28"] {
        let answer = call(&moored.client()?.with_header("mcp-protocol-version", bad)?, "echo").await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{bad}");
        assert_eq!(answer.response()["id"], json!(1));
    }
    assert_eq!(target.count("tools/call"), 0);
    // None: 2025-03-26, with its batches (2025-11-25, transports, protocol version header).
    let batch = format!("[{}]", request(1, "ping", &json!({})));
    assert_eq!(moored.client()?.post(batch.clone()).await?.status, StatusCode::OK);
    let newest = moored.client()?.with_header("mcp-protocol-version", "2025-11-25")?;
    assert_eq!(newest.post(batch).await?.status, StatusCode::BAD_REQUEST);
    Ok(())
}

#[tokio::test]
async fn each_request_of_a_stateless_batch_has_its_target_sessions_ended() -> Outcome {
    let (target, moored) = start(STATELESS).await?;
    let one = |id| request(id, "tools/call", &json!({"name": "a___counter", "arguments": {}}));
    let answer = moored.client()?.post(format!("[{},{}]", one(1), one(2))).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    target
        .until("every session to be parted from", |target| {
            let called: BTreeSet<_> = called_in(target).into_iter().collect();
            let deleted = target.seen("DELETE").into_iter().filter_map(|seen| seen.session).collect();
            called == deleted && !called.is_empty()
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_stateless_gateway_goes_on_without_sessions_at_its_targets() -> Outcome {
    let (target, moored) = start(STATELESS).await?;
    target.change(|script| script.sessions = Sessions::Withheld);
    assert_eq!(call(&moored.client()?, "echo").await?.tool_text().as_deref(), Some("echo: {}"));
    assert_eq!(target.seen("tools/call")[0].session, None);
    Ok(())
}

#[tokio::test]
async fn without_streaming_every_answer_is_json_and_a_get_is_not_allowed() -> Outcome {
    let (_target, moored) = start(UNSTREAMED).await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    for (tool, text) in [("a___echo", "echo: {}"), ("a___echo_sse", "echo_sse: {}"), ("a___progress", "done")]
    {
        let answer = session.call(tool, json!({})).await?;
        assert!(!answer.is_stream(), "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.tool_text().as_deref(), Some(text));
    }
    let get = session.get().await?;
    assert_eq!(get.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get.headers.get("allow").and_then(|allow| allow.to_str().ok()), Some("POST, DELETE, OPTIONS"));
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    assert_eq!(session.call("a___echo", json!({})).await?.status, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test]
async fn without_streaming_targets_are_offered_nothing_that_needs_a_stream() -> Outcome {
    let (target, moored) = start(UNSTREAMED).await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let told = session.call("a___elicit", json!({})).await?.tool_text().unwrap_or_default();
    assert!(told.contains("-32601"), "{told}");
    let offered = target.seen("initialize");
    for seen in &offered {
        let capabilities = &seen.message["params"]["capabilities"];
        for name in ["sampling", "elicitation", "roots"] {
            assert!(capabilities.get(name).is_none(), "{name} in {capabilities}");
        }
    }
    let experimental =
        |seen: &Seen| seen.message["params"]["capabilities"]["experimental"] == json!({"x": {}});
    assert!(offered.iter().any(experimental), "what needs no stream passes: {offered:?}");
    Ok(())
}
