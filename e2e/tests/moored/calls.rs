//! A tool call on its way to a target and back: bytes, headers, ids and sizes. Streams and failures have files of their
//! own.

use std::time::Duration;

use e2e::{
    client::{Answer, ClientError, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, RawAnswer, Script, ScriptedServer, Tool},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A call of a tool under an id that the test chooses.
fn call(id: &Value, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn post(
    calls: &mut JoinSet<Result<(String, Answer), ClientError>>,
    session: &Session,
    (tool, n): (&str, usize),
) {
    let (session, body) = (session.clone(), call(&json!(1), tool, &json!({"n": n})));
    let wanted = format!("slow: {{\"n\":{n}}}");
    calls.spawn(async move { Ok((wanted, session.post(body).await?)) });
}

async fn next(
    calls: &mut JoinSet<Result<(String, Answer), ClientError>>,
) -> Result<(String, Answer), Box<dyn std::error::Error>> {
    Ok(calls.join_next().await.ok_or("no call is left")???)
}

#[tokio::test]
async fn a_call_reaches_its_target_byte_for_byte_but_for_the_tools_name() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["get-sum"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let bodies = [
        (
            r#"{ "x-new":{"name":"a___get-sum"}, "params" : {"_meta":{"k":[ ]},"arguments":{"z":1.0e2,"a":1.10,"big":123456789012345678901234567890,"s":"\u00e9\/"},"name" : "a___get-sum","task":null},"method":"tools/call","id":1,"jsonrpc":"2.0"}"#,
            r#""a___get-sum","task""#,
            r#""get-sum","task""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"\u0031","method":"tools\/call","params":{"name":"a___get\u002dsum","arguments":{"name":"a___x"}}}"#,
            r#""a___get\u002dsum""#,
            r#""get-sum""#,
        ),
    ];
    for (sent, exposed, own) in bodies {
        let answer = session.post(sent).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, None), "{}", answer.text());
        let seen = target.seen("tools/call").pop().ok_or("the call was not seen")?;
        assert_eq!(String::from_utf8_lossy(&seen.body), sent.replace(exposed, own));
    }
    Ok(())
}

#[tokio::test]
async fn with_plain_names_a_call_passes_unchanged() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["get-sum"])).await;
    let gateway = manifest::gateway("tools").replace("spec: {", "spec: {tools: {naming: Plain}, ");
    let moored = Moored::serve(gateway + &manifest::target("a", "tools", &target.url())).await?;
    let session = moored.client()?.initialize().await?;
    let sent = r#"{"id":7, "method":"tools/call","jsonrpc":"2.0","params":{"name":"get\u002dsum","arguments":{"n":1e0}}}"#;
    let answer = session.post(sent).await?;
    assert_eq!(answer.error_code(), None, "{}", answer.text());
    let seen = target.seen("tools/call").pop().ok_or("the call was not seen")?;
    assert_eq!(String::from_utf8_lossy(&seen.body), sent);
    Ok(())
}

#[tokio::test]
async fn an_answer_reaches_the_client_byte_for_byte_with_its_length() -> Outcome {
    let answered = "{ \"result\" : {\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\\/\"}],\"n\":1.0e2,\"new\":{}},\n \"id\":\"a\", \"jsonrpc\":\"2.0\",\"x\":[ ]}\n";
    let tools =
        vec![Tool::new("odd", Behaviour::Raw(RawAnswer::json(answered).with_header("x-of-target", "1")))];
    let target = ScriptedServer::start(Script { tools, ..Script::default() }).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let answer = session.post(call(&json!("a"), "a___odd", &json!({}))).await?;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, answered));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some(answered.len().to_string().as_str()));
    assert_eq!(answer.header("x-of-target"), None);
    Ok(())
}

#[tokio::test]
async fn no_header_of_the_client_reaches_a_target() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let session = client.initialize().await?;
    let request = session
        .request(Method::POST)
        .header("authorization", "Bearer of-the-client")
        .header("cookie", "a=of-the-client")
        .header("x-api-key", "of-the-client")
        .header("x-forwarded-for", "192.0.2.1")
        .header("forwarded", "for=192.0.2.1")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "of-the-client")
        .header("mcp-param-x", "of-the-client")
        .header("last-event-id", "of-the-client")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("user-agent", "of-the-client");
    let answer = client.send(request.body(call(&json!(1), "a___echo", &json!({})).into())?).await?;
    assert_eq!(answer.error_code(), None, "{}", answer.text());
    session.delete().await?;
    target.until_seen("DELETE", 1).await?;
    let ours = [
        "accept",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "user-agent",
    ];
    for seen in target.requests() {
        for (name, value) in &seen.headers {
            assert!(ours.contains(&name.as_str()), "{name} in {:?}", seen.headers);
            assert!(!value.as_bytes().ends_with(b"of-the-client"), "{name} in {:?}", seen.headers);
        }
        assert_ne!(seen.session.as_deref(), Some(session.id()), "the client's session id is ours alone");
    }
    Ok(())
}

/// Case 022.
#[tokio::test]
async fn of_calls_with_one_id_in_a_session_one_runs_and_the_others_are_refused() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(manifest::gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let mut calls = JoinSet::new();
    for n in 0..12 {
        post(&mut calls, &session, (if n % 2 == 0 { "a___slow" } else { "b___slow" }, n));
    }
    for _ in 0..11 {
        let (_, refused) = next(&mut calls).await?;
        let got = (refused.status, refused.error_code(), refused.response()["id"].clone());
        assert_eq!(got, (StatusCode::BAD_REQUEST, Some(-32600), json!(1)), "{}", refused.text());
    }
    let one_runs = async {
        tokio::select! {
            seen = a.until_seen("tools/call", 1) => seen,
            seen = b.until_seen("tools/call", 1) => seen,
        }
    };
    one_runs.await?;
    a.release();
    b.release();
    let (wanted, ran) = next(&mut calls).await?;
    assert_eq!((ran.status, ran.tool_text()), (StatusCode::OK, Some(wanted)));
    assert_eq!(a.count("tools/call") + b.count("tools/call"), 1);
    // The id is free again.
    let again = session.post(call(&json!(1), "a___echo", &json!({}))).await?;
    assert_eq!((again.status, again.error_code()), (StatusCode::OK, None));
    Ok(())
}

/// Case 022.
#[tokio::test]
async fn the_same_id_in_other_sessions_and_at_other_targets_is_another_call() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(manifest::gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let client = moored.client()?;
    let mut calls = JoinSet::new();
    for n in 0..6 {
        let session = client.initialize().await?;
        post(&mut calls, &session, (if n % 2 == 0 { "a___slow" } else { "b___slow" }, n));
    }
    for target in [&a, &b] {
        target.until_seen("tools/call", 3).await?;
        assert!(target.seen("tools/call").iter().all(|seen| seen.id() == Some(&json!(1))));
        target.release();
    }
    for _ in 0..6 {
        let (wanted, answer) = next(&mut calls).await?;
        assert_eq!((answer.status, answer.tool_text()), (StatusCode::OK, Some(wanted)));
    }
    Ok(())
}

#[tokio::test]
async fn megabytes_of_arguments_and_of_answers_pass_whole() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    for bytes in [1 << 20, 3 << 20] {
        let text = "y".repeat(bytes);
        for tool in ["echo", "echo_sse"] {
            let body = call(&json!(bytes), &format!("a___{tool}"), &json!({"text": text}));
            let answer = session.post(body.clone()).await?;
            let echoed = answer.response().pointer("/result/structuredContent/arguments/text").cloned();
            assert!(echoed == Some(json!(text)), "{tool}: {bytes} bytes came back otherwise");
            let seen = target.seen("tools/call").pop().ok_or("the call was not seen")?;
            assert!(body.replace(&format!("a___{tool}"), tool) == seen.body, "{tool}: other bytes arrived");
        }
        let answer = session.call("a___big", json!({"bytes": bytes})).await?;
        let length = answer.header("content-length").map(str::parse::<usize>);
        assert_eq!(length, Some(Ok(answer.body.len())), "a large answer in JSON has its length");
        assert!(answer.tool_text() == Some("x".repeat(bytes)), "{bytes} bytes came back otherwise");
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_target_delays_no_call_to_another() -> Outcome {
    let (slow, fast) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(manifest::gateway_with([("slow", slow.url()), ("fast", fast.url())])).await?;
    let session = moored.client()?.with_deadline(Duration::from_secs(5)).initialize().await?;
    let mut calls = JoinSet::new();
    for n in 0..8 {
        let session = session.clone();
        calls.spawn(async move { session.call("slow___slow", json!({"n": n})).await });
    }
    slow.until_seen("tools/call", 8).await?;
    for n in 0..20 {
        let answer = session.call("fast___echo", json!({"n": n})).await?;
        assert_eq!(answer.tool_text(), Some(format!("echo: {{\"n\":{n}}}")));
    }
    assert!(calls.try_join_next().is_none(), "no slow call ended before its time");
    slow.release();
    while let Some(answer) = calls.join_next().await {
        assert_eq!(answer??.status, StatusCode::OK);
    }
    Ok(())
}
