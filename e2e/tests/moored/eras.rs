//! Which protocol a client gets: version negotiation, the version header, probes of the modern era, sparing clients.

use e2e::{
    client::{Answer, Client, Session},
    manifest::gateway_with,
    moored::Moored,
    scripted::{Script, ScriptedServer},
};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// What a client of the modern era asks first (2026-07-28, versioning).
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},
    "io.modelcontextprotocol/clientCapabilities":{}}}}"#;

async fn serve(target: &ScriptedServer) -> Result<Moored, Error> {
    Ok(Moored::serve(gateway_with([("a", target.url())])).await?)
}

#[tokio::test]
async fn each_version_with_sessions_is_spoken_and_any_other_becomes_the_newest_of_them() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
        ("not-a-version", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let answer = moored.client()?.post_initialize(asked, json!({})).await?;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let result = answer.response()["result"].clone();
        assert_eq!(result["protocolVersion"], json!(answered), "asked for {asked:?}");
        assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
        assert_eq!(result["serverInfo"]["name"], json!("tools"));
        let id = answer.header("mcp-session-id").ok_or("no session")?;
        let client = moored.client()?.with_header("mcp-protocol-version", answered)?;
        let client = client.with_header("mcp-session-id", id)?;
        assert_eq!(client.post(PING).await?.status, StatusCode::OK, "{answered}");
    }
    Ok(())
}

#[tokio::test]
async fn an_initialize_without_what_it_must_have_is_refused_by_name_and_begins_nothing() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let (version, able, who) = (json!("2025-11-25"), json!({}), json!({"name": "raw", "version": "1"}));
    for (params, missing) in [
        (json!({}), "protocolVersion"),
        (json!({"protocolVersion": 7, "capabilities": able, "clientInfo": who}), "protocolVersion"),
        (json!({"protocolVersion": version, "clientInfo": who}), "capabilities"),
        (json!({"protocolVersion": version, "capabilities": [], "clientInfo": who}), "capabilities"),
        (json!({"protocolVersion": version, "capabilities": able}), "clientInfo"),
        (json!({"protocolVersion": version, "capabilities": able, "clientInfo": "raw"}), "clientInfo"),
        (
            json!({"protocolVersion": version, "capabilities": able, "clientInfo": {"name": "x".repeat(5000)}}),
            "clientInfo",
        ),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params});
        let answer = moored.client()?.post(body.to_string()).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32602)), "{params}");
        assert_eq!((answer.header("mcp-session-id"), &answer.response()["id"]), (None, &json!("first")));
        assert!(answer.text().contains(missing), "{}", answer.text());
    }
    let started = moored.metrics().await?.sum("mooring_sessions_started_total", &[]);
    assert_eq!(started.to_bits(), 0f64.to_bits());
    Ok(())
}

/// Sends a ping, and opens and drops a GET stream, with these version headers.
async fn with_versions(client: &Client, session: &Session, versions: &[&str]) -> Result<[Answer; 2], Error> {
    let request = |verb| {
        let request = client.request(verb).header("mcp-session-id", session.id());
        versions.iter().fold(request, |request, version| request.header("mcp-protocol-version", *version))
    };
    let ping = client.send(request(Method::POST).body(PING.into())?).await?;
    let stream = client.open(request(Method::GET).body("".into())?).await?;
    let stream = Answer { status: stream.status, headers: stream.headers, body: "".into() };
    Ok([ping, stream])
}

// Case 016, from clients.
#[tokio::test]
async fn a_version_header_that_names_no_version_of_ours_is_refused_and_none_is_fine() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let client = moored.client()?;
    let session = client.initialize().await?;
    for refused in [
        &["1900-01-01"][..],
        &["not-a-version"],
        &["2026-07-28"],
        &[""],
        &["2025-11-25", "2025-06-18"],
        &["2025-11-25,2025-06-18"],
    ] {
        for answer in with_versions(&client, &session, refused).await? {
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{refused:?}");
            assert!(!answer.is_stream());
        }
        let [ping, _] = with_versions(&client, &session, refused).await?;
        assert_eq!((ping.error_code(), &ping.response()["id"]), (Some(-32600), &json!(1)));
        assert!(ping.text().contains("2025-11-25"), "it does not say what to send: {}", ping.text());
    }
    for fine in [&[][..], &["2025-11-25"], &["2025-11-25", "2025-11-25"]] {
        for answer in with_versions(&client, &session, fine).await? {
            assert_eq!(answer.status, StatusCode::OK, "{fine:?}");
        }
    }
    // A deletion with a version of nobody's must not end the session.
    let request = client.request(Method::DELETE).header("mcp-session-id", session.id());
    let request = request.header("mcp-protocol-version", "1900-01-01").body("".into())?;
    assert_eq!(client.send(request).await?.status, StatusCode::BAD_REQUEST);
    assert_eq!(session.post(PING).await?.status, StatusCode::OK);
    Ok(())
}

// The client that AgentCore documents: JSON only, and no `notifications/initialized`.
#[tokio::test]
async fn a_client_that_takes_only_json_and_never_says_initialized_lists_and_calls() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    let client = moored.client()?.with_header("accept", "application/json")?;
    let session = client.initialize_only().await?;
    assert_eq!(session.tools().await?.len(), 12);
    for (tool, text) in [("a___echo", "echo: {\"n\":1}"), ("a___echo_sse", "echo_sse: {\"n\":1}")] {
        let answer = session.call(tool, json!({"n": 1})).await?;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (StatusCode::OK, Some("application/json"))
        );
        assert_eq!(answer.tool_text().as_deref(), Some(text), "{}", answer.text());
    }
    // What the target asks meanwhile is refused to it: there is no stream to ask the client on.
    let answer = session.call("a___ask", json!({})).await?;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.tool_text().is_some_and(|text| text.contains("-32601")), "{}", answer.text());
    assert_eq!(session.get().await?.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
    Ok(())
}

fn modern(moored: &Moored) -> Result<Client, Error> {
    let client = moored.client()?.with_header("mcp-protocol-version", "2026-07-28")?;
    Ok(client.with_header("mcp-method", "server/discover")?)
}

// Case 043, as a server of the legacy era.
#[tokio::test]
async fn a_modern_probe_is_refused_so_that_clients_fall_back_and_leaves_nothing() -> Outcome {
    const TIMES: usize = 1000;
    const WORKERS: usize = 4;
    let target = ScriptedServer::start(Script::default()).await;
    let moored = serve(&target).await?;
    assert_eq!(moored.client()?.initialize().await?.tools().await?.len(), 12);
    let before = (target.requests().len(), target.open_sessions());
    // Probes alone reach no target.
    for _ in 0..10 {
        probe(&modern(&moored)?).await?;
    }
    assert_eq!(target.requests().len(), before.0, "a probe reached the target");

    // And each falls back on the same connection, calls and ends.
    let mut probing = JoinSet::new();
    for _ in 0..WORKERS {
        let client = modern(&moored)?;
        probing.spawn(async move {
            for _ in 0..TIMES / WORKERS {
                probe(&client).await?;
                let legacy = client.clone();
                let legacy = legacy.without_header("mcp-protocol-version").without_header("mcp-method");
                let session = legacy.initialize().await?;
                assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
                assert_eq!(session.delete().await?.status, StatusCode::NO_CONTENT);
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(probed) = probing.join_next().await {
        probed??;
    }
    target.until_seen("DELETE", TIMES).await?;
    target.until("each session's DELETE", |target| target.open_sessions() == before.1).await?;
    let metrics = moored.metrics().await?;
    let one_and_all = [
        metrics.sum("mooring_sessions", &[]),
        metrics.sum("mooring_sessions_started_total", &[]),
        metrics.sum("mooring_target_handshakes_total", &[("kind", "client"), ("outcome", "ok")]),
    ];
    assert_eq!(one_and_all.map(|count| count.to_string()), ["1", "1001", "1000"]);
    Ok(())
}

/// A probe is refused so that its client falls back.
async fn probe(client: &Client) -> Outcome {
    let answer = client.post(PROBE).await?;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
    assert_eq!(answer.response().get("id"), Some(&json!(0)));
    let code = answer.error_code().ok_or("no JSON-RPC error")?;
    assert!(!(-32099..=-32020).contains(&code), "{code} is of the modern era");
    assert_eq!(answer.header("mcp-session-id"), None);
    Ok(())
}

// Case 044, on a legacy session.
#[tokio::test]
async fn headers_of_the_modern_era_carry_no_authority_in_a_session() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = moored.client()?.initialize().await?;
    for (method, name) in [
        ("tools/list", "a___echo"),
        ("tools/call", "b___counter"),
        ("initialize", "=?base64?YV9fX2VjaG8=?="),
        ("server/discover", ""),
    ] {
        let client = moored.client()?.with_header("mcp-method", method)?.with_header("mcp-name", name)?;
        let client = client.with_header("mcp-param-x", "1")?;
        let answer = session.through(&client).call("a___echo", json!({"m": method})).await?;
        assert_eq!(answer.tool_text(), Some(format!("echo: {{\"m\":\"{method}\"}}")), "{}", answer.text());
        // One odd request poisons none after it.
        assert_eq!(session.call("a___echo", json!({})).await?.error_code(), None);
    }
    assert_eq!((a.count("tools/call"), b.count("tools/call")), (8, 0));
    for seen in a.requests() {
        let modern = ["mcp-method", "mcp-name", "mcp-param-x"];
        assert!(modern.iter().all(|name| !seen.headers.contains_key(*name)), "{seen:?}");
    }
    Ok(())
}
