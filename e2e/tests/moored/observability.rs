//! What operators see of real use: metrics that count it, a log line for each request, audit lines for each session, and
//! nowhere a session's id.

use std::time::Duration;

use e2e::{
    manifest,
    moored::Moored,
    process,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(5);

/// A field of a log entry, wherever the formatter puts fields.
fn field<'e>(entry: &'e Value, name: &str) -> Option<&'e Value> {
    entry.get(name).or_else(|| entry.get("fields")?.get(name))
}

fn entries(moored: &Moored, target: &str) -> Vec<Value> {
    moored.log().into_iter().filter(|entry| entry.get("target") == Some(&json!(target))).collect()
}

/// The log's lines come a moment behind the answers.
async fn until_logged(moored: &Moored, target: &str, lines: usize) -> Result<Vec<Value>, String> {
    let logged = async || Some(entries(moored, target)).filter(|entries| entries.len() >= lines);
    let found = process::poll(PATIENCE, logged).await;
    found.ok_or_else(|| format!("{} lines of {target} and no more", entries(moored, target).len()))
}

/// A series by its name and labels, and what it says.
type Sample = ((&'static str, Vec<(&'static str, &'static str)>), f64);

/// What the use in the test below is counted as.
fn counted() -> Vec<Sample> {
    let requests =
        |method, outcome| ("mooring_requests_total", vec![("method", method), ("outcome", outcome)]);
    let handshakes = |kind, target, outcome| {
        let labels = vec![("target", target), ("kind", kind), ("outcome", outcome)];
        ("mooring_target_handshakes_total", labels)
    };
    let durations =
        |method| ("mcp_server_operation_duration_seconds_count", vec![("mcp_method_name", method)]);
    vec![
        (requests("initialize", "ok"), 2.0),
        (requests("notifications/initialized", "ok"), 2.0),
        (requests("tools/call", "ok"), 3.0),
        (requests("tools/call", "target"), 1.0),
        (requests("tools/call", "client"), 1.0),
        (requests("tools/list", "ok"), 1.0),
        (requests("other", "client"), 1.0),
        (requests("DELETE", "ok"), 1.0),
        (requests("ping", "client"), 1.0),
        (durations("tools/call"), 5.0),
        (durations("initialize"), 2.0),
        (("mooring_sessions_started_total", vec![]), 2.0),
        (("mooring_sessions_ended_total", vec![("reason", "deleted")]), 1.0),
        (("mooring_sessions_ended_total", vec![]), 1.0),
        (("mooring_sessions", vec![]), 1.0),
        (handshakes("catalogue", "good", "ok"), 1.0),
        (handshakes("client", "good", "ok"), 1.0),
        (handshakes("catalogue", "good", "failed"), 0.0),
        (handshakes("client", "good", "failed"), 0.0),
        (handshakes("client", "bad", "ok"), 0.0),
        (handshakes("client", "bad", "failed"), 1.0),
        (handshakes("catalogue", "bad", "ok"), 0.0),
        (("mooring_target_up", vec![("target", "good")]), 1.0),
        (("mooring_target_up", vec![("target", "bad")]), 0.0),
        (("mooring_target_tools", vec![("target", "good")]), 1.0),
        (("mcp_client_operation_duration_seconds_count", vec![("target", "good")]), 3.0),
    ]
}

#[tokio::test]
async fn metrics_count_requests_sessions_and_handshakes_as_they_were() -> Outcome {
    let good = ScriptedServer::start(Script::echoing(["echo"])).await;
    let bad = ScriptedServer::start(Script::default()).await;
    bad.interfere("initialize", Interference::Answer(RawAnswer::status(StatusCode::FORBIDDEN)));
    let moored = Moored::serve(manifest::gateway_with([("good", good.url()), ("bad", bad.url())])).await?;
    let client = moored.client()?;
    let (one, two) = (client.initialize().await?, client.initialize().await?);
    for n in 0..3 {
        one.call("good___echo", json!({"n": n})).await?;
    }
    assert_eq!(one.call("bad___echo", json!({})).await?.error_code(), Some(-32603));
    assert_eq!(one.call("nobody___echo", json!({})).await?.error_code(), Some(-32602));
    assert_eq!(one.tools().await?, ["good___echo"]);
    one.ask("made/up", json!({})).await?;
    assert_eq!(two.delete().await?.status, StatusCode::NO_CONTENT);
    assert_eq!(two.ask("ping", json!({})).await?.status, StatusCode::NOT_FOUND);

    let wanted = counted();
    let differs = |metrics: &e2e::moored::Metrics| {
        let seen = wanted.iter().map(|((name, labels), wanted)| {
            let labels: Vec<_> = labels.iter().copied().chain([("gateway", "tools")]).collect();
            (name, labels.clone(), *wanted, metrics.sum(name, &labels))
        });
        seen.filter(|(_, _, wanted, got)| (wanted - got).abs() > 0.1)
            .map(|row| format!("{row:?}"))
            .collect::<Vec<_>>()
    };
    // The last request is counted a moment behind its answer.
    let settled = moored.until_metrics(|metrics| differs(metrics).is_empty()).await;
    assert!(settled.is_ok(), "{:#?}", differs(&moored.metrics().await?));
    let failed = moored.metrics().await?.sum(
        "mooring_target_handshakes_total",
        &[("gateway", "tools"), ("target", "bad"), ("kind", "catalogue"), ("outcome", "failed")],
    );
    assert!(failed >= 1.0, "the catalogue tried too");
    Ok(())
}

#[tokio::test]
async fn each_request_is_one_line_of_the_access_log() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    session.call("a___echo", json!({})).await?;
    session.call("a___echo_sse", json!({})).await?;
    target.interfere_once("tools/call", Interference::Answer(RawAnswer::status(StatusCode::FORBIDDEN)));
    session.call("a___echo", json!({})).await?;
    session.post("{").await?;
    session.delete().await?;
    session.ask("ping", json!({})).await?;
    let lines = until_logged(&moored, "access", 8).await?;
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let text = |name| field(line, name).and_then(Value::as_str);
            (text("method"), field(line, "status").and_then(Value::as_u64), text("to"), text("fault"))
        })
        .collect();
    let wanted = [
        (Some("initialize"), Some(200), None, None),
        (Some("notifications/initialized"), Some(202), None, None),
        (Some("tools/call"), Some(200), Some("a"), None),
        (Some("tools/call"), Some(200), Some("a"), None),
        (Some("tools/call"), Some(200), Some("a"), Some("target_failed")),
        (Some("POST"), Some(400), None, Some("syntax")),
        (Some("DELETE"), Some(204), None, None),
        (Some("ping"), Some(404), None, Some("unknown_session")),
    ];
    assert_eq!(rows, wanted);
    for line in &lines {
        assert!(field(line, "micros").and_then(Value::as_u64).is_some_and(|micros| micros > 0), "{line}");
        assert_eq!(field(line, "gateway"), Some(&json!("tools")));
    }
    // Lines of one session can be found by one name, which is not its id.
    let names: Vec<_> = lines[2..5].iter().filter_map(|line| field(line, "session")).collect();
    assert!(
        names.len() == 3 && names.iter().all(|name| **name == *names[0] && **name != json!(session.id()))
    );
    Ok(())
}

#[tokio::test]
async fn a_stream_that_fails_behind_its_head_is_counted_and_logged_as_failed() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let manifests = manifest::gateway_with([("a", target.url())]);
    let moored =
        Moored::serve(manifests.replace("server: {", "timeouts: {requestSeconds: 1}, server: {")).await?;
    let session = moored.client()?.initialize().await?;
    for tool in ["a___hang_sse", "a___die_sse"] {
        let answer = session.call(tool, json!({})).await?;
        assert_eq!((answer.is_stream(), answer.error_code()), (true, Some(-32603)), "{}", answer.text());
    }
    let lines = until_logged(&moored, "access", 4).await?;
    let faults: Vec<_> = lines.iter().map(|line| field(line, "fault").and_then(Value::as_str)).collect();
    assert_eq!(faults, [None, None, Some("target_failed"), Some("target_failed")]);
    let metrics = moored.metrics().await?;
    let of =
        |outcome| metrics.sum("mooring_requests_total", &[("method", "tools/call"), ("outcome", outcome)]);
    assert!(of("target") > 1.5 && of("ok") < 0.5, "{} failed, {} did not", of("target"), of("ok"));
    Ok(())
}

#[tokio::test]
async fn the_start_and_the_end_of_a_session_are_lines_of_the_audit_log() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let timeout = manifest::gateway("tools").replace("spec: {", "spec: {session: {timeoutSeconds: 1}, ");
    let manifests = timeout + &manifest::target("a", "tools", &target.url());
    let arguments = vec!["--session-timeout-min".to_owned(), "1".to_owned()];
    let moored = Moored::start(e2e::moored::Start { manifests, arguments }).await?;
    let client = moored.client()?;
    let deleted = client.initialize().await?;
    deleted.delete().await?;
    client.initialize().await?;
    let lines = until_logged(&moored, "audit", 4).await?;
    let rows: Vec<_> = lines.iter().map(|line| (field(line, "event"), field(line, "reason"))).collect();
    let (started, ended) = (json!("session started"), json!("session ended"));
    let (by_client, by_time) = (json!("deleted"), json!("expired"));
    let wanted = [
        (Some(&started), None),
        (Some(&ended), Some(&by_client)),
        (Some(&started), None),
        (Some(&ended), Some(&by_time)),
    ];
    assert_eq!(rows, wanted);
    let names: Vec<_> = lines.iter().map(|line| field(line, "session")).collect();
    assert!(names[0].is_some() && names[0] == names[1] && names[2] == names[3] && names[0] != names[2]);
    moored
        .until_metrics(|metrics| {
            metrics.sum("mooring_sessions_ended_total", &[("reason", "expired")]) >= 1.0
                && metrics.sum("mooring_sessions", &[]) < 1.0
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn no_session_id_of_ours_or_of_a_target_is_in_the_log_or_in_metrics() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let manifests = manifest::gateway_with([("a", target.url())]);
    let arguments = vec!["--log".to_owned(), "trace".to_owned()];
    let moored = Moored::start(e2e::moored::Start { manifests, arguments }).await?;
    let client = moored.client()?;
    let mut ids = Vec::new();
    for tool in ["a___echo", "a___echo_sse", "a___ask", "a___fail", "a___die", "a___die_sse"] {
        let session = client.initialize().await?;
        // Whatever comes of it: what counts is what is said of it.
        drop(session.call(tool, json!({"secret": "of-the-call"})).await);
        drop(session.get().await?);
        ids.push(session.id().to_owned());
        if ids.len() % 2 == 0 {
            session.delete().await?;
        }
    }
    target.forget_sessions();
    let lost = client.session(&ids[0]);
    assert_eq!(lost.call("a___echo", json!({})).await?.status, StatusCode::NOT_FOUND);
    client.session("made-up-session-id").call("a___echo", json!({})).await?;
    ids.extend(["made-up-session-id", "scripted-session-", "of-the-call"].map(ToOwned::to_owned));
    until_logged(&moored, "access", 20).await?;
    let log: Vec<String> = moored.log().iter().map(ToString::to_string).collect();
    let metrics = moored.health("/metrics").await?.text();
    for id in &ids {
        let said = log.iter().find(|line| line.contains(id.as_str()));
        assert_eq!(said, None, "{id} is in the log");
        assert!(!metrics.contains(id.as_str()), "{id} is in the metrics");
    }
    Ok(())
}
