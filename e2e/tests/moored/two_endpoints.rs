//! Targets of the old transport with two endpoints, HTTP+SSE of 2024-11-05, behind a gateway of today.

use std::time::Duration;

use e2e::{
    asking::{everything, id_of, request, result},
    manifest,
    moored::Moored,
    process,
    two_endpoints::{Named, TwoEndpoints},
};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(10);

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn serve(server: &TwoEndpoints) -> Result<Moored, Box<dyn std::error::Error>> {
    serve_as(server, "SSE").await
}

async fn serve_as(server: &TwoEndpoints, protocol: &str) -> Result<Moored, Box<dyn std::error::Error>> {
    let target = manifest::target("old", "tools", &server.url())
        .replace("spec: {", &format!("spec: {{protocol: {protocol}, "));
    Ok(Moored::serve(manifest::gateway("tools") + &target).await?)
}

#[tokio::test]
async fn a_session_has_a_stream_of_its_own_wherever_the_endpoint_is_named() -> Outcome {
    for named in [Named::Path, Named::Url] {
        let server = TwoEndpoints::start(named).await?;
        let moored = serve(&server).await?;
        let (one, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
        assert!(one.tools().await?.contains(&"old___count".to_owned()));
        for count in ["1", "2"] {
            assert_eq!(one.call("old___count", json!({})).await?.tool_text().as_deref(), Some(count));
        }
        assert_eq!(other.call("old___count", json!({})).await?.tool_text().as_deref(), Some("1"));
        let params = json!({"name": "old___progress", "arguments": {}, "_meta": {"progressToken": 9}});
        let answer = one.ask("tools/call", params).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("done"));
        let progress = answer.messages().iter().any(|message| message["params"]["progressToken"] == 9);
        assert!(progress, "{}", answer.text());
        // Nothing of our side is told: it has no sessions in headers.
        assert!(server.asked().iter().all(|asked| !asked.headers.contains_key("mcp-session-id")));
        assert!(server.asked().iter().any(|asked| asked.verb == Method::GET && asked.path == "/sse"));
    }
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_stream() -> Outcome {
    let server = TwoEndpoints::start(Named::Path).await?;
    let moored = serve(&server).await?;
    let session = moored.client()?.initialize().await?;
    session.call("old___count", json!({})).await?;
    server.until_streams(2).await.ok_or("the catalogue's and the session's")?;
    session.delete().await?;
    server.until_streams(1).await.ok_or("the session's stream stays")?;
    Ok(())
}

#[tokio::test]
async fn a_stream_that_ends_answers_what_waits_and_its_session_is_gone() -> Outcome {
    let server = TwoEndpoints::start(Named::Path).await?;
    let moored = serve(&server).await?;
    let session = moored.client()?.initialize().await?;
    session.call("old___count", json!({})).await?;
    let answer = session.call("old___vanish", json!({})).await?;
    assert_eq!(answer.error_code(), Some(-32603));
    let message = answer.response()["error"]["message"].to_string();
    assert!(message.contains("event stream"), "{message}");
    let next = session.call("old___count", json!({})).await?;
    assert_eq!(next.status, StatusCode::NOT_FOUND);
    assert_eq!(next.response()["error"]["data"]["target"], "old");
    let again = moored.client()?.initialize().await?;
    assert_eq!(again.call("old___count", json!({})).await?.tool_text().as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_not_followed() -> Outcome {
    for (named, seconds, told) in [(Named::Foreign, 5, "own origin"), (Named::Never, 2, "2 s")] {
        let server = TwoEndpoints::start(named).await?;
        let moored = serve_as(&server, &format!("SSE, timeouts: {{connectSeconds: {seconds}}}")).await?;
        let session = moored.client()?.initialize().await?;
        let error = session.call("old___count", json!({})).await?.response()["error"].to_string();
        assert!(error.contains(told), "{named:?}: {error}");
        assert_eq!(server.count("initialize"), 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_know_streamable_http_is_found_out_and_no_other_is_asked_twice() -> Outcome {
    let server = TwoEndpoints::start(Named::Path).await?;
    let moored = serve_as(&server, "Auto").await?;
    let session = moored.client()?.initialize().await?;
    for count in ["1", "2"] {
        assert_eq!(session.call("old___count", json!({})).await?.tool_text().as_deref(), Some(count));
    }
    let refused =
        server.asked().iter().filter(|asked| asked.verb == Method::POST && asked.path == "/sse").count();
    assert_eq!(refused, server.count("initialize") - refused, "one attempt for each session");
    let moored = serve_as(&server, "StreamableHTTP").await?;
    let session = moored.client()?.initialize().await?;
    let error = session.call("old___count", json!({})).await?.response()["error"].to_string();
    assert!(error.contains("HTTP 405"), "{error}");
    Ok(())
}

/// More than is held of what other targets say outside of calls: those ask on the streams of calls.
#[tokio::test]
async fn a_bridged_server_asks_as_much_at_once_as_another_does_on_the_stream_of_a_call() -> Outcome {
    let server = TwoEndpoints::start(Named::Path).await?;
    let moored = serve_as(&server, "SSE, timeouts: {requestSeconds: 10}").await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let (calling, mut calls) = (session.clone(), JoinSet::new());
    let call = request(&json!(1), "tools/call", &json!({"name": "old___hold", "arguments": {}}));
    calls.spawn(async move { calling.open(call.to_string()).await });
    server.until_seen("tools/call", 1).await.ok_or("no call came")?;
    let text = "x".repeat(3 << 19);
    assert!(server.say(&request(&json!(7), "elicitation/create", &json!({"message": text}))));
    let mut events = calls.join_next().await.ok_or("there was no call")???;
    let asked = events.next_message().await?.unwrap_or_default();
    assert!(asked["params"]["message"] == json!(text), "{} bytes came", asked.to_string().len());
    session.post(result(&id_of(&asked).ok_or("no id of ours")?, "yes").to_string()).await?;
    let answered =
        async || server.asked().iter().any(|asked| asked.message == result(&json!(7), "yes")).then_some(());
    process::poll(PATIENCE, answered).await.ok_or("the server has no answer")?;
    Ok(())
}
