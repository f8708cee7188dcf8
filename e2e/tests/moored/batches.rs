//! Batches: JSON-RPC arrays, which sessions of 2025-03-26 take and no others.

use e2e::{
    client::{Answer, Session},
    manifest::gateway_with,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// Messages that a batch may have.
const MOST: u64 = 64;

async fn start(version: &str) -> Result<(ScriptedServer, Moored, Session), Error> {
    let mut script = Script { capabilities: json!({"tools": {}}), ..Script::default() };
    script.tools.push(Tool::new("ask_any", Behaviour::Ask(json!(1), "roots/list".into())));
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize_at(version).await?;
    Ok((target, moored, session))
}

fn call(id: &Value, tool: &str) -> Value {
    let params = json!({"name": format!("a___{tool}"), "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn request(id: &Value, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {}})
}

async fn batch(session: &Session, messages: &[Value]) -> Result<Answer, Error> {
    Ok(session.post(json!(messages).to_string()).await?)
}

/// The answers of a batch, which came in one array.
fn answers(answer: &Answer) -> Vec<Value> {
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, Some("application/json")));
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// The one answer to the request of this id.
fn of(answers: &[Value], id: &Value) -> Value {
    let mut found = answers.iter().filter(|answer| answer["id"] == *id);
    let answer = found.next().cloned().unwrap_or_default();
    assert!(found.next().is_none(), "{id} is answered twice: {answers:?}");
    answer
}

fn assert_refused(answer: &Answer) {
    assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)));
    assert_eq!(answer.response().get("id"), Some(&Value::Null), "{}", answer.text());
}

#[tokio::test]
async fn only_sessions_of_2025_03_26_take_batches() -> Outcome {
    for (version, taken) in
        [("2024-11-05", false), ("2025-03-26", true), ("2025-06-18", false), ("2025-11-25", false)]
    {
        let (_target, _moored, session) = start(version).await?;
        let answer = batch(&session, &[request(&json!(1), "ping")]).await?;
        if taken {
            assert_eq!(answers(&answer), [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
        } else {
            assert_refused(&answer);
        }
        // The session goes on either way.
        assert_eq!(session.ask("ping", json!({})).await?.status, StatusCode::OK, "{version}");
    }
    Ok(())
}

#[tokio::test]
async fn the_requests_of_a_batch_run_side_by_side_and_are_answered_in_one_array_each_under_its_id() -> Outcome
{
    let (target, _moored, session) = start("2025-03-26").await?;
    let messages = [
        call(&json!(1), "slow"),
        call(&json!("1"), "slow"),
        request(&json!("list"), "tools/list"),
        notification("notifications/roots/list_changed"),
        call(&json!(2), "echo_sse"),
        call(&json!(3), "ask_any"),
        call(&json!(4), "fail"),
        call(&json!(5), "nothing"),
        request(&json!(6), "no/such"),
        request(&json!(7), "prompts/get"),
    ];
    let (answer, released) = tokio::join!(batch(&session, &messages), async {
        target
            .until("both slow calls at once", |target| {
                let slow = target
                    .seen("tools/call")
                    .iter()
                    .filter(|seen| seen.message["params"]["name"] == "slow")
                    .count();
                slow == 2
            })
            .await?;
        // The others are through; only these are still held.
        target.until("the slow calls alone to wait", |target| target.counts().waiting == 2).await?;
        target.release();
        Ok::<_, Error>(())
    });
    released?;
    let answers = answers(&answer?);
    assert_eq!(answers.len(), messages.len() - 1, "{answers:?}");
    for id in [json!(1), json!("1")] {
        assert_eq!(of(&answers, &id)["result"]["content"][0]["text"], json!("slow: {}"));
    }
    assert!(of(&answers, &json!("list"))["result"]["tools"].is_array());
    assert_eq!(of(&answers, &json!(2))["result"]["content"][0]["text"], json!("echo_sse: {}"));
    // No stream on which the client could be asked: the target hears that, and goes on.
    let told = of(&answers, &json!(3))["result"]["content"][0]["text"].clone();
    assert!(told.as_str().is_some_and(|told| told.contains("-32601")), "{told}");
    assert_eq!(of(&answers, &json!(4))["error"]["code"], json!(-32000));
    assert_eq!(of(&answers, &json!(5))["error"]["code"], json!(-32602));
    assert!(of(&answers, &json!(6))["error"]["code"].is_i64());
    assert_eq!(of(&answers, &json!(7))["error"]["code"], json!(-32602));
    let sessions = target.seen("tools/call").into_iter().filter_map(|seen| seen.session);
    assert_eq!(sessions.collect::<std::collections::BTreeSet<_>>().len(), 1, "case 008");
    Ok(())
}

#[tokio::test]
async fn of_equal_ids_in_a_batch_one_runs() -> Outcome {
    let (target, _moored, session) = start("2025-03-26").await?;
    let messages = [call(&json!(1), "slow"), call(&json!(1), "slow")];
    let (answer, released) = tokio::join!(batch(&session, &messages), async {
        target.until_seen("tools/call", 1).await?;
        target.release();
        Ok::<_, Error>(())
    });
    released?;
    let answers = answers(&answer?);
    let codes: Vec<Option<i64>> = answers.iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert!(codes.contains(&None) && codes.contains(&Some(-32600)) && codes.len() == 2, "{answers:?}");
    assert!(answers.iter().all(|answer| answer["id"] == json!(1)));
    assert_eq!(target.count("tools/call"), 1);
    Ok(())
}

#[tokio::test]
async fn a_batch_that_wants_no_answer_is_accepted_without_a_body() -> Outcome {
    let (target, _moored, session) = start("2025-03-26").await?;
    session.call("a___echo", json!({})).await?;
    let response = json!({"jsonrpc": "2.0", "id": "never-asked", "result": {}});
    let changed = notification("notifications/roots/list_changed");
    for messages in [
        vec![changed.clone(), changed.clone()],
        vec![response.clone(), response.clone()],
        vec![changed, response],
    ] {
        let answer = batch(&session, &messages).await?;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::ACCEPTED, 0), "{}", answer.text());
        assert_eq!(answer.header("content-type"), None);
    }
    target.until_seen("notifications/roots/list_changed", 3).await?;
    Ok(())
}

#[tokio::test]
async fn a_member_that_is_no_message_is_refused_alone_and_the_others_are_answered() -> Outcome {
    let (_target, _moored, session) = start("2025-03-26").await?;
    let ping = request(&json!(1), "ping");
    for bad in
        [json!(7), json!("x"), json!({}), json!({"jsonrpc": "2.0", "id": []}), json!([ping]), Value::Null]
    {
        let answers = answers(&batch(&session, &[bad.clone(), ping.clone()]).await?);
        assert_eq!(answers.len(), 2, "{bad}: {answers:?}");
        assert_eq!(of(&answers, &json!(1))["result"], json!({}), "{bad}");
        assert_eq!(of(&answers, &Value::Null)["error"]["code"], json!(-32600), "{bad}");
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_batch_one_that_is_too_long_and_one_that_begins_a_session_are_refused_whole() -> Outcome {
    let (target, _moored, session) = start("2025-03-26").await?;
    let pings = |count: u64| (1..=count).map(|id| request(&json!(id), "ping")).collect::<Vec<_>>();
    assert_refused(&batch(&session, &[]).await?);
    assert_refused(&batch(&session, &pings(MOST + 1)).await?);
    assert_eq!(answers(&batch(&session, &pings(MOST)).await?).len(), usize::try_from(MOST)?);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let answer = batch(&session, &[call(&json!(2), "echo"), initialize]).await?;
    assert_refused(&answer);
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(target.count("tools/call"), 0, "nothing of a batch that is refused runs");
    let broken = session.post("[{\"jsonrpc\":\"2.0\",").await?;
    assert_eq!((broken.status, broken.error_code()), (StatusCode::BAD_REQUEST, Some(-32700)));
    Ok(())
}

#[tokio::test]
async fn a_batch_without_a_session_is_refused_as_any_message_is() -> Outcome {
    let (_target, moored, _session) = start("2025-03-26").await?;
    let batch = json!([request(&json!(1), "ping")]).to_string();
    let answer = moored.client()?.post(batch.clone()).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::BAD_REQUEST, Some(-32600)));
    let answer = moored.client()?.session("unknown").post(batch).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    Ok(())
}

#[tokio::test]
async fn a_session_that_ends_answers_every_request_of_a_batch() -> Outcome {
    let (target, _moored, session) = start("2025-03-26").await?;
    let messages = [call(&json!(1), "hang"), call(&json!(2), "slow"), request(&json!(3), "ping")];
    let (answer, ended) = tokio::join!(batch(&session, &messages), async {
        target.until_seen("tools/call", 2).await?;
        Ok::<_, Error>(session.delete().await?)
    });
    assert_eq!(ended?.status, StatusCode::NO_CONTENT);
    let answers = answers(&answer?);
    for id in [1, 2] {
        assert_eq!(of(&answers, &json!(id))["error"]["code"], json!(-32001), "{answers:?}");
    }
    assert_eq!(of(&answers, &json!(3))["result"], json!({}));
    Ok(())
}
