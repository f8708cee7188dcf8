//! What a request gets whose session is missing, unknown, ended or expired: on every verb, before any stream is opened.

use e2e::{
    client::{Answer, Client, Session},
    manifest,
    moored::{Moored, Signal, Start},
    scripted::{Script, ScriptedServer},
};
use http::{Method, StatusCode};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const PING: &str = r#"{"jsonrpc":"2.0","id":"same","method":"ping"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a___echo_sse"}}"#;
const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// One gateway `tools` with target `a` whose sessions last so many seconds.
fn serving(seconds: u32, target: &ScriptedServer) -> Start {
    let gateway = manifest::gateway("tools")
        .replace("spec: {", &format!("spec: {{session: {{timeoutSeconds: {seconds}}}, "));
    let manifests = gateway + &manifest::target("a", "tools", &target.url());
    Start { manifests, arguments: vec!["--session-timeout-min".into(), "1".into()] }
}

/// Everything that a session can be asked, on every verb.
async fn all_verbs(session: &Session) -> Result<Vec<Answer>, Box<dyn std::error::Error>> {
    let mut answers = Vec::new();
    for body in [PING, CALL, NOTIFICATION, RESPONSE] {
        answers.push(session.post(body).await?);
    }
    answers.push(session.get().await?.collect().await?);
    answers.push(session.delete().await?);
    Ok(answers)
}

/// All of an answer but for when it was given.
fn all_but_date(answers: &[Answer]) -> Vec<String> {
    let strip = |answer: &Answer| {
        let mut headers = answer.headers.clone();
        headers.remove("date");
        format!("{} {headers:?} {:?}", answer.status, answer.body)
    };
    answers.iter().map(strip).collect()
}

fn assert_not_found(answers: &[Answer], what: &str) {
    for answer in answers {
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{what}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"), "{what}");
        assert_eq!(answer.error_code(), Some(-32001), "{what}");
        assert!(!answer.is_stream());
    }
    let ids: Vec<_> = answers.iter().map(|answer| answer.response().get("id").cloned()).collect();
    let nulls = [json!(null), json!(null), json!(null), json!(null)];
    let expected: Vec<_> = [json!("same"), json!(7)].into_iter().chain(nulls).map(Some).collect();
    assert_eq!(ids, expected, "{what}");
}

async fn expired(moored: &Moored) -> Result<Session, Box<dyn std::error::Error>> {
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.post(PING).await?.status, StatusCode::OK);
    let is_over = [("reason", "expired")];
    moored.until_metrics(|metrics| metrics.sum("mooring_sessions_ended_total", &is_over) >= 1.0).await?;
    Ok(session)
}

// Case 002 a, b, c.
#[tokio::test]
async fn unknown_deleted_and_expired_sessions_are_answered_alike_on_every_verb() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::start(serving(1, &target)).await?;
    let client = moored.client()?;
    let expired = all_verbs(&expired(&moored).await?).await?;

    let deleted = client.initialize().await?;
    assert_eq!(deleted.delete().await?.status, StatusCode::NO_CONTENT);
    let deleted = all_verbs(&deleted).await?;

    let unknown = all_verbs(&client.session("0123456789abcdef0123456789abcdef")).await?;
    assert_not_found(&unknown, "unknown");
    assert_eq!(all_but_date(&unknown), all_but_date(&deleted));
    assert_eq!(all_but_date(&unknown), all_but_date(&expired));
    assert_eq!(target.count("tools/call"), 0);
    Ok(())
}

// Case 002 a.
#[tokio::test]
async fn an_id_that_could_never_be_one_is_as_unknown_as_any_other() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::start(serving(3600, &target)).await?;
    let client = moored.client()?;
    let valid = client.initialize().await?;
    let unknown = all_but_date(&all_verbs(&client.session("0123456789abcdef0123456789abcdef")).await?);
    let (upper, long) = (valid.id().to_uppercase(), valid.id().repeat(200));
    for id in ["", "x", "not a session", &upper, &long, "../../etc", "0x12", "scripted-session-000001"] {
        let answers = all_verbs(&client.session(id)).await?;
        assert_not_found(&answers, id);
        assert_eq!(all_but_date(&answers), unknown, "{id}");
    }
    assert_eq!(valid.post(PING).await?.status, StatusCode::OK, "the session that was guessed at goes on");
    Ok(())
}

#[tokio::test]
async fn two_session_headers_that_differ_name_no_session() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::start(serving(3600, &target)).await?;
    let client = moored.client()?;
    let (one, other) = (client.initialize().await?, client.initialize().await?);
    let request = one.request(Method::POST).header("mcp-session-id", other.id()).body(PING.into())?;
    let answer = client.send(request).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    let request = one.request(Method::DELETE).header("mcp-session-id", other.id()).body("".into())?;
    assert_eq!(client.send(request).await?.status, StatusCode::NOT_FOUND);
    assert_eq!(one.post(PING).await?.status, StatusCode::OK);
    assert_eq!(other.post(PING).await?.status, StatusCode::OK);
    Ok(())
}

// Case 002 d.
#[tokio::test]
async fn a_request_without_a_session_is_400_on_every_verb() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::start(serving(3600, &target)).await?;
    let client = moored.client()?;
    for (body, id) in
        [(PING, json!("same")), (CALL, json!(7)), (NOTIFICATION, json!(null)), (RESPONSE, json!(null))]
    {
        let answer = client.post(body).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{body}");
        assert_eq!(answer.response()["id"], id);
    }
    for verb in [Method::GET, Method::DELETE] {
        let answer = client.send(client.request(verb.clone()).body("".into())?).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{verb}");
        assert!(!answer.is_stream());
    }
    Ok(())
}

// Case 002, last sentence; with the memory store, whose sessions end with the process.
#[tokio::test]
async fn after_a_restart_a_once_valid_id_is_unknown_and_a_new_session_begins() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let mut moored = Moored::start(serving(3600, &target)).await?;
    let old = moored.client()?.initialize().await?;
    assert_eq!(old.call("a___echo", json!({})).await?.status, StatusCode::OK);
    moored.signal(Signal::Terminate).await?;
    assert!(moored.ended().await?.success());

    let moored = Moored::start(serving(3600, &target)).await?;
    let client = moored.client()?;
    assert_not_found(&all_verbs(&old.through(&client)).await?, "after the restart");
    let anew = client.initialize().await?;
    assert_eq!(anew.call("a___echo", json!({})).await?.error_code(), None);
    assert_ne!(anew.id(), old.id());
    Ok(())
}

async fn initialize_with(client: &Client, session: &str) -> Result<Answer, Box<dyn std::error::Error>> {
    let client = client.clone().with_header("mcp-session-id", session)?;
    Ok(client.post_initialize("2025-11-25", json!({})).await?)
}

#[tokio::test]
async fn an_initialize_that_names_a_session_is_refused_and_changes_nothing() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let moored = Moored::start(serving(3600, &target)).await?;
    let client = moored.client()?;
    let session = client.initialize().await?;
    assert_eq!(session.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    for id in [session.id(), "0123456789abcdef0123456789abcdef", "x"] {
        let answer = initialize_with(&client, id).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)), "{id}");
        assert_eq!((answer.header("mcp-session-id"), &answer.response()["id"]), (None, &json!(0)));
    }
    assert_eq!(session.call("a___counter", json!({})).await?.tool_text().as_deref(), Some("2"));
    let started = moored.metrics().await?.sum("mooring_sessions_started_total", &[]);
    assert_eq!(started.to_bits(), 1f64.to_bits());
    Ok(())
}
