//! Resources that no target lists: one target is asked after the other, each as any request is.

use std::time::Duration;

use e2e::{
    client::Session,
    manifest,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

const READ: &str = "resources/read";
const CANCELLED: &str = "notifications/cancelled";

/// Two targets that list nothing and of which the second knows any resource, and a session that has used both.
async fn start() -> Result<(ScriptedServer, ScriptedServer, Moored, Session), Error> {
    let mut knowing = Script::echoing(["echo"]);
    knowing.capabilities = json!({"tools": {}, "resources": {}});
    let ignorant = knowing.clone();
    knowing.results = [(READ.to_owned(), json!({"contents": []}))].into();
    let (a, b) = (ScriptedServer::start(ignorant).await, ScriptedServer::start(knowing).await);
    let targets = manifest::target("a", "tools", &a.url()) + &manifest::target("b", "tools", &b.url());
    let timeouts = "timeouts: {connectSeconds: 3, requestSeconds: 20}, headers: {allowedRequest: [X-Tenant]}";
    let targets = targets.replace("spec: {", &format!("spec: {{{timeouts}, "));
    let moored = Moored::serve(manifest::gateway("tools") + &targets).await?;
    let session = moored.client()?.with_header("x-tenant", "t")?.initialize().await?;
    for tool in ["a___echo", "b___echo"] {
        assert_eq!(session.call(tool, json!({})).await?.error_code(), None);
    }
    Ok((a, b, moored, session))
}

fn read(id: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": READ, "params": {"uri": "other://x"}}).to_string()
}

#[tokio::test]
async fn of_a_target_that_is_silent_the_next_is_not_kept_waiting_and_it_hears_that_nobody_waits() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    a.interfere(READ, Interference::Hang);
    let begun = Instant::now();
    let answer = session.post(read(&json!("r"))).await?;
    assert_eq!(answer.response()["result"], json!({"contents": []}), "{}", answer.text());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    a.until_seen(CANCELLED, 1).await?;
    assert_eq!(a.seen(CANCELLED)[0].message["params"]["requestId"], json!("r"));
    assert_eq!(b.count(CANCELLED), 0);
    for target in [&a, &b] {
        assert_eq!(target.seen(READ)[0].header("x-tenant"), Some("t"), "what is handed on, is here");
    }
    // Where none knows it and one did not say, nobody can say that there is none.
    b.change(|script| script.results.clear());
    let answer = session.post(read(&json!("s"))).await?;
    assert_eq!(answer.response()["error"]["data"], json!({"target": "a", "reason": "target_timeout"}));
    a.interfere(READ, Interference::Answer(RawAnswer::status(StatusCode::BAD_GATEWAY)));
    let answer = session.post(read(&json!("t"))).await?;
    assert_eq!(answer.response()["error"]["data"]["target"], json!("a"));
    a.behave(READ);
    assert_eq!(session.post(read(&json!("u"))).await?.error_code(), Some(-32002));
    Ok(())
}

#[tokio::test]
async fn while_one_is_asked_its_id_is_taken_and_cancelling_ends_it() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    b.interfere(READ, Interference::Hang);
    let (mut waiting, own) = (JoinSet::new(), session.clone());
    waiting.spawn(async move { own.post(read(&json!("r"))).await });
    b.until_seen(READ, 1).await?;
    let twice = session.post(read(&json!("r"))).await?;
    assert_eq!((twice.status, twice.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)));
    session.notify(CANCELLED, json!({"requestId": "r"})).await?;
    assert_eq!(waiting.join_next().await.ok_or("no request")???.error_code(), Some(-32800));
    b.until_seen(CANCELLED, 1).await?;
    assert_eq!(a.count(CANCELLED), 0, "it had answered");
    Ok(())
}

#[tokio::test]
async fn a_target_that_forgot_the_session_is_told_of_as_for_any_request() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    b.change(|script| script.results.clear());
    a.forget_sessions();
    let answer = session.post(read(&json!(1))).await?;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
    assert_eq!(answer.response()["error"]["data"]["target"], json!("a"), "{}", answer.text());
    Ok(())
}
