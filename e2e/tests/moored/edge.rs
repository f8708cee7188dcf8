//! What is decided at the edge: browsers and names, verbs and paths, media types and sizes, and what is no message.

use e2e::{
    client::{Client, Session},
    manifest,
    moored::Moored,
    scripted::{Script, ScriptedServer},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A gateway with names of its own and bodies of at most 2 KiB, in front of target `a`.
async fn serve(target: &ScriptedServer) -> Result<Moored, Box<dyn std::error::Error>> {
    let own = "spec: {limits: {requestBytes: 2048}, endpoint: {publicURL: 'https://mcp.example.test/mcp', \
               allowedHosts: [tools.demo.svc], allowedOrigins: ['https://app.example.test']}, ";
    let gateway = manifest::gateway("tools").replace("spec: {", own);
    Ok(Moored::serve(gateway + &manifest::target("a", "tools", &target.url())).await?)
}

async fn started(moored: &Moored) -> Result<f64, Box<dyn std::error::Error>> {
    Ok(moored.metrics().await?.sum("mooring_sessions_started_total", &[]))
}

// Case 021.
#[tokio::test]
async fn a_preflight_needs_no_credentials_and_names_what_a_session_needs() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let client = moored.client()?.without_header("accept").without_header("content-type");
    let preflight = |origin: &str| {
        client
            .request(Method::OPTIONS)
            .header("origin", origin)
            .header("access-control-request-method", "DELETE")
            .header(
                "access-control-request-headers",
                "mcp-session-id, mcp-protocol-version, authorization, last-event-id",
            )
            .body("".into())
    };
    for origin in ["https://app.example.test", "http://localhost:6274"] {
        let answer = client.send(preflight(origin)?).await?;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::NO_CONTENT, 0));
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        let allowed = answer.header("access-control-allow-headers").unwrap_or_default();
        for name in
            ["mcp-session-id", "mcp-protocol-version", "authorization", "last-event-id", "content-type"]
        {
            assert!(allowed.split(", ").any(|allowed| allowed == name), "{name} is not among {allowed}");
        }
        let methods = answer.header("access-control-allow-methods").unwrap_or_default();
        assert!(["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
    }
    let foreign = client.send(preflight("https://evil.example")?).await?;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    Ok(())
}

// Case 021.
#[tokio::test]
async fn a_page_of_an_allowed_origin_can_read_the_session_id_and_refusals_too() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let client = moored.client()?.with_header("origin", "https://app.example.test")?;
    let answer = client.post_initialize("2025-11-25", json!({})).await?;
    let session = client.session(answer.header("mcp-session-id").ok_or("no session")?);
    let refused = client.session("nobody").post(PING).await?;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    for answer in [answer, session.call("a___echo_sse", json!({})).await?, refused] {
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example.test"));
        assert_eq!(answer.header("access-control-expose-headers"), Some("mcp-session-id, www-authenticate"));
        assert_eq!(answer.header("vary"), Some("origin"));
    }
    let without = moored.client()?.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(without.header("access-control-allow-origin"), None);
    assert!(target.requests().iter().all(|seen| !seen.headers.contains_key("origin")));
    Ok(())
}

// Case 021.
#[tokio::test]
async fn a_foreign_origin_is_forbidden_on_every_verb_and_touches_no_session() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize().await?;
    for origin in
        ["https://evil.example", "null", "http://app.example.test", "https://app.example.test.evil.example"]
    {
        let evil = moored.client()?.with_header("origin", origin)?;
        let through = session.through(&evil);
        assert_eq!(
            evil.post_initialize("2025-11-25", json!({})).await?.status,
            StatusCode::FORBIDDEN,
            "{origin}"
        );
        assert_eq!(through.post(PING).await?.status, StatusCode::FORBIDDEN);
        assert_eq!(through.get().await?.status, StatusCode::FORBIDDEN);
        let deletion = through.delete().await?;
        assert_eq!(deletion.status, StatusCode::FORBIDDEN);
        assert_eq!(deletion.header("access-control-allow-origin"), None);
    }
    assert_eq!(session.post(PING).await?.status, StatusCode::OK);
    assert_eq!(started(&moored).await?.to_bits(), 1f64.to_bits());
    Ok(())
}

// Case 021.
#[tokio::test]
async fn a_host_is_served_with_and_without_its_port_and_a_foreign_one_is_forbidden() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let at = async |host: &str| {
        moored.client()?.with_header("host", host)?.post_initialize("2025-11-25", json!({})).await
    };
    for host in [
        "mcp.example.test",
        "mcp.example.test:443",
        "MCP.Example.Test",
        "tools.demo.svc",
        "tools.demo.svc:80",
        "127.0.0.1",
        "localhost:9",
        "[::1]:8080",
    ] {
        assert_eq!(at(host).await?.status, StatusCode::OK, "{host}");
    }
    for host in ["evil.example", "mcp.example.test.evil.example", "localhost.evil.example:80", ""] {
        let answer = at(host).await?;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (StatusCode::FORBIDDEN, None), "{host}");
    }
    assert_eq!(started(&moored).await?.to_bits(), 8f64.to_bits());
    Ok(())
}

// Case 021: a kubelet asks by the pod's address.
#[tokio::test]
async fn health_probes_are_answered_whatever_the_host() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let log = moored.log();
    let said = |name: &'static str| {
        move |entry: &Value| entry.get(name).or_else(|| entry.pointer(&format!("/fields/{name}"))).cloned()
    };
    let listening = log.iter().find(|entry| said("message")(entry) == Some(json!("health listening")));
    let health = listening.and_then(said("address")).unwrap_or_default();
    let health = health.as_str().ok_or("the log does not say where")?;
    for path in ["/livez", "/readyz", "/metrics"] {
        for host in ["evil.example", "10.244.0.17:9090"] {
            let client = Client::new(&format!("http://{health}{path}"))?.with_header("host", host)?;
            let answer = client.send(client.request(Method::GET).body("".into())?).await?;
            assert_eq!(answer.status, StatusCode::OK, "{path} at {host}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn other_verbs_are_405_and_other_paths_404() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize().await?;
    for verb in [Method::PUT, Method::PATCH, Method::HEAD, Method::TRACE] {
        let answer = moored.client()?.send(session.request(verb.clone()).body(PING.into())?).await?;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{verb}");
        assert_eq!(answer.header("allow"), Some("GET, POST, DELETE, OPTIONS"));
    }
    assert_eq!(
        Client::new(&moored.url_of("tools"))?.initialize().await?.post(PING).await?.status,
        StatusCode::OK
    );
    for path in ["/", "/mcp/", "/mcp/x", "/MCP", "/other/mcp", "/sse", "/tools"] {
        let client = Client::new(&format!("http://{}{path}", moored.address()))?;
        let answer = client.post_initialize("2025-11-25", json!({})).await?;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (StatusCode::NOT_FOUND, None), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn media_types_and_sizes_are_held_to_before_a_message_is_read() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize().await?;
    let accepting = |kind: &str| {
        Ok::<_, Box<dyn std::error::Error>>(session.through(&moored.client()?.with_header("accept", kind)?))
    };
    for kind in ["text/html", "text/event-stream", "image/*"] {
        assert_eq!(accepting(kind)?.post(PING).await?.status, StatusCode::NOT_ACCEPTABLE, "{kind}");
    }
    for kind in ["*/*", "application/json", "application/*", "text/event-stream;q=0.5, Application/JSON;q=1"]
    {
        assert_eq!(accepting(kind)?.post(PING).await?.status, StatusCode::OK, "{kind}");
    }
    assert_eq!(accepting("application/json")?.get().await?.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(
        session.through(&moored.client()?.without_header("accept")).post(PING).await?.status,
        StatusCode::OK
    );

    let saying = |kind: &str| {
        Ok::<_, Box<dyn std::error::Error>>(
            session.through(&moored.client()?.with_header("content-type", kind)?),
        )
    };
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonl", ""] {
        assert_eq!(saying(kind)?.post(PING).await?.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
    }
    assert_eq!(saying("Application/JSON; charset=UTF-8")?.post(PING).await?.status, StatusCode::OK);
    let silent = moored.client()?.without_header("content-type");
    assert_eq!(session.through(&silent).post(PING).await?.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);

    let padded = |bytes: usize| format!("{PING}{}", " ".repeat(bytes - PING.len()));
    assert_eq!(session.post(padded(2048)).await?.status, StatusCode::OK);
    let large = session.post(padded(2049)).await?;
    assert_eq!((large.status, large.error_code()), (StatusCode::PAYLOAD_TOO_LARGE, Some(-32600)));
    assert!(large.text().contains("2048"), "it does not say the limit: {}", large.text());
    Ok(())
}

#[tokio::test]
async fn what_is_no_message_is_refused_by_what_is_wrong_with_it() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize().await?;
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, -32700),
        ("42", -32600),
        ("null", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a___echo","name":"a___big"}}"#,
            -32600,
        ),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("[]", -32600),
        (r#"["2.0",1,"ping"]"#, -32600),
    ] {
        let answer = session.post(body).await?;
        assert_eq!(
            (answer.status, answer.error_code()),
            (StatusCode::BAD_REQUEST, Some(code)),
            "{body}: {}",
            answer.text()
        );
        assert_eq!(answer.response()["id"], Value::Null, "{body}");
    }
    assert_eq!(target.count("tools/call"), 0);
    Ok(())
}

#[tokio::test]
async fn requests_that_cannot_be_served_are_answered_with_200_and_their_id() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize().await?;
    let pong = session.post(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#).await?;
    assert_eq!(pong.text(), r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#);
    for (method, params, code) in [
        ("prompts/List", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("tools/Call", json!({"name": "a___echo"}), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": 7}), -32602),
        ("tools/call", json!({"name": "echo"}), -32602),
        ("tools/call", json!({"name": "nobody___echo"}), -32602),
        ("tools/list", json!({"cursor": "none of ours"}), -32602),
        ("tools/list", json!({"cursor": 7}), -32602),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": "mine", "method": method, "params": params}).to_string();
        let answer = session.post(body).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(code)), "{method} {params}");
        assert_eq!(answer.response()["id"], json!("mine"));
    }
    assert_eq!(target.count("tools/call"), 0);
    // A tool that only its target can know of is that target's to refuse.
    let answer = session.call("a___nothing", json!({})).await?;
    assert_eq!(
        (answer.status, answer.error_code(), target.count("tools/call")),
        (StatusCode::OK, Some(-32602), 1)
    );
    Ok(())
}

/// Expects 202 with neither a body nor a content type.
async fn is_accepted(session: &Session, body: &str) -> Outcome {
    let answer = session.post(body.to_owned()).await?;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::ACCEPTED, 0), "{body}: {}", answer.text());
    assert_eq!(answer.header("content-type"), None, "{body}");
    Ok(())
}

// Case 017.
#[tokio::test]
async fn notifications_are_accepted_without_a_body_and_answers_to_nothing_are_refused() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let session = moored.client()?.initialize_only().await?;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/of/nobody","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
    ] {
        is_accepted(&session, body).await?;
    }
    // An answer to what was never asked is no answer.
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}"#,
    ] {
        let answer = session.post(body.to_owned()).await?;
        assert_eq!((answer.status.as_u16(), answer.error_code()), (400, Some(-32600)), "{body}");
    }
    assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
    Ok(())
}
