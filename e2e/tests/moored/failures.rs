//! Targets that answer calls wrongly, or not to the end: the client gets an error for its request that names the target,
//! never a half answer taken for a whole one, and never a status that would end its session.

use e2e::{
    client::{Answer, ClientError, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Interference, RawAnswer, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn script(tools: impl IntoIterator<Item = (String, Behaviour)>) -> Script {
    let tools = tools.into_iter().map(|(name, behaviour)| Tool::new(name, behaviour)).collect();
    Script { tools, ..Script::default() }
}

async fn start(
    tools: impl IntoIterator<Item = (String, Behaviour)>,
) -> Result<(ScriptedServer, Moored, Session), Box<dyn std::error::Error>> {
    let tools = tools.into_iter().chain([("echo".to_owned(), Behaviour::Echo)]);
    let target = ScriptedServer::start(script(tools)).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    Ok((target, moored, session))
}

fn call(id: &Value, tool: &str) -> String {
    let params = json!({"name": format!("a___{tool}"), "arguments": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn names_the_target(answer: &Answer, id: &Value, reason: &str) {
    let response = answer.response();
    let got = (answer.status, answer.error_code(), response.get("id"));
    assert_eq!(got, (StatusCode::OK, Some(-32603), Some(id)), "{reason}: {}", answer.text());
    let data = json!({"target": "a", "reason": reason});
    assert_eq!(response.pointer("/error/data"), Some(&data), "{}", answer.text());
}

async fn goes_on(session: &Session) -> Outcome {
    let answer = session.post(call(&json!("next"), "echo")).await?;
    assert_eq!(answer.tool_text().as_deref(), Some("echo: {}"), "{}", answer.text());
    Ok(())
}

#[tokio::test]
async fn a_status_that_is_no_answer_is_an_error_that_names_the_target_and_ends_no_session() -> Outcome {
    let html = |status| RawAnswer {
        status,
        headers: vec![("content-type".into(), "text/html".into())],
        body: "<p>no".into(),
    };
    let status = |status: u16| StatusCode::from_u16(status).unwrap_or_default();
    let cases = [
        (RawAnswer::status(status(401)), "target_status"),
        (RawAnswer::status(status(403)).with_header("www-authenticate", "Bearer"), "target_status"),
        (RawAnswer::status(status(405)), "target_status"),
        (RawAnswer::status(status(429)).with_header("retry-after", "7"), "target_status"),
        (RawAnswer::status(status(500)), "target_status"),
        (html(status(502)), "target_status"),
        (html(status(503)), "target_status"),
        (RawAnswer::status(status(202)), "target_protocol"),
        (RawAnswer::status(status(204)), "target_protocol"),
        (RawAnswer::status(status(200)), "target_protocol"),
        (html(status(200)), "target_protocol"),
        (RawAnswer::json(""), "target_protocol"),
    ];
    let tools =
        cases.iter().enumerate().map(|(n, (answer, _))| (format!("t{n}"), Behaviour::Raw(answer.clone())));
    let (target, _moored, session) = start(tools).await?;
    for (n, (_, reason)) in cases.iter().enumerate() {
        let answer = session.post(call(&json!(n), &format!("t{n}"))).await?;
        names_the_target(&answer, &json!(n), reason);
        assert_eq!((answer.header("www-authenticate"), answer.header("retry-after")), (None, None));
    }
    goes_on(&session).await?;
    assert_eq!(target.count("tools/call"), cases.len() + 1, "nothing was sent twice");
    assert_eq!(target.count("initialize"), 2, "one for the catalogue and one for the session");
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_not_followed() -> Outcome {
    let elsewhere = ScriptedServer::start(Script::default()).await;
    let statuses = [301, 302, 303, 307, 308];
    let tools = statuses.map(|status| {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let answer = RawAnswer::status(status).with_header("location", &elsewhere.url());
        (format!("t{}", status.as_u16()), Behaviour::Raw(answer))
    });
    let (target, _moored, session) = start(tools).await?;
    for status in statuses {
        let answer = session.post(call(&json!(status), &format!("t{status}"))).await?;
        names_the_target(&answer, &json!(status), "target_redirect");
        assert_eq!(answer.header("location"), None);
    }
    goes_on(&session).await?;
    // Nor is one that answers what the gateway asks for itself.
    let answer = RawAnswer::status(StatusCode::TEMPORARY_REDIRECT).with_header("location", &elsewhere.url());
    target.interfere("initialize", Interference::Answer(answer));
    target.forget_sessions();
    target.until_seen("initialize", 4).await?;
    assert_eq!(elsewhere.counts().connections, 0, "nothing was sent to where it redirects");
    Ok(())
}

#[tokio::test]
async fn an_error_for_the_call_is_its_answer_whatever_the_http_status_is() -> Outcome {
    let error =
        r#"{"error":{"message":"bad \u0061rgument","code":-32602,"data":{"n":1.0}},"id":7,"jsonrpc":"2.0"}"#;
    let with = |status, body: &str| Behaviour::Raw(RawAnswer { status, ..RawAnswer::json(body) });
    let of_another = error.replace(":7,", ":8,");
    let tools = [
        ("bad".to_owned(), with(StatusCode::BAD_REQUEST, error)),
        ("broken".to_owned(), with(StatusCode::INTERNAL_SERVER_ERROR, error)),
        ("fine".to_owned(), with(StatusCode::OK, error)),
        ("other".to_owned(), with(StatusCode::BAD_REQUEST, &of_another)),
    ];
    let (_target, _moored, session) = start(tools).await?;
    for tool in ["bad", "broken", "fine"] {
        let answer = session.post(call(&json!(7), tool)).await?;
        assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, error), "{tool}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let answer = session.post(call(&json!(7), "other")).await?;
    names_the_target(&answer, &json!(7), "target_refused");
    goes_on(&session).await
}

#[tokio::test]
async fn a_json_answer_that_breaks_off_is_never_taken_for_a_whole_one() -> Outcome {
    let (target, _moored, session) = start([("die".to_owned(), Behaviour::Die)]).await?;
    let answer = session.post(call(&json!(1), "die")).await?;
    names_the_target(&answer, &json!(1), "target_protocol");
    target.interfere_once("tools/call", Interference::Cut);
    let answer = session.post(call(&json!(2), "echo")).await?;
    names_the_target(&answer, &json!(2), "target_unreachable");
    goes_on(&session).await?;
    assert_eq!(target.count("tools/call"), 3, "a call that may have run is not repeated");
    Ok(())
}

#[tokio::test]
async fn a_large_answer_that_breaks_off_breaks_the_clients_connection_off() -> Outcome {
    let (target, _moored, session) = start([("big".to_owned(), Behaviour::Big(64 << 20))]).await?;
    let begun = session.open(call(&json!(1), "big")).await?;
    assert_eq!(begun.status, StatusCode::OK);
    // Nobody has read it yet, and it is larger than all the buffers between.
    target.cut_connections();
    assert!(
        matches!(begun.collect().await, Err(ClientError::Body(_))),
        "half an answer was taken for a whole one"
    );
    goes_on(&session).await
}

#[tokio::test]
async fn a_stream_that_breaks_off_or_ends_too_early_ends_with_an_error_for_its_request() -> Outcome {
    let tools = [("die_sse".to_owned(), Behaviour::DieOnStream), ("fed".to_owned(), Behaviour::Fed)];
    let (target, moored, session) = start(tools).await?;
    let answer = session.post(call(&json!(1), "die_sse")).await?;
    assert!(answer.is_stream(), "{}", answer.text());
    names_the_target(&answer, &json!(1), "target_protocol");

    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let mut events = session.open(call(&json!(2), "fed")).await?;
    target.until_feeds(1).await?;
    target.feed(format!("data: {log}\n\n"));
    assert_eq!(events.next_data().await?.as_deref(), Some(log));
    target.cut_connections();
    let error = events.next_message().await?.unwrap_or_default();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(-32603)));
    assert_eq!(events.next_message().await?, None);

    let mut events = session.open(call(&json!("two"), "fed")).await?;
    target.until_fed(2).await?;
    target.feed(
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\ndata: {\"half\"",
    );
    assert!(events.next_message().await?.is_some());
    target.end_feeds();
    let error = events.next_message().await?.unwrap_or_default();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("two"), &json!(-32603)));
    assert_eq!(error["error"]["data"]["target"], json!("a"));
    assert_eq!(events.next_message().await?, None);

    let in_json = moored.client()?.with_header("accept", "application/json")?.initialize().await?;
    let answer = in_json.post(call(&json!(3), "die_sse")).await?;
    assert!(!answer.is_stream());
    names_the_target(&answer, &json!(3), "target_protocol");
    goes_on(&session).await
}

/// A lost connection is no cancellation (2025-11-25, transports): only the client's word ends what runs.
#[tokio::test]
async fn a_client_that_goes_away_cancels_nothing_and_may_still_cancel() -> Outcome {
    let (target, moored, session) =
        start([("fed".to_owned(), Behaviour::Fed), ("hang".to_owned(), Behaviour::Hang)]).await?;
    let events = session.open(call(&json!("gone"), "fed")).await?;
    target.until_feeds(1).await?;
    drop(events);
    session.notify("notifications/cancelled", json!({"requestId": "gone"})).await?;
    target.until_seen("notifications/cancelled", 1).await?;
    assert_eq!(target.seen("notifications/cancelled")[0].message["params"]["requestId"], "gone");
    target.until_feeds(0).await?;
    // In a session of its own: the client of this one keeps its connection.
    let impatient = moored.client()?.with_deadline(std::time::Duration::from_millis(300));
    let impatient = session.through(&impatient);
    assert!(matches!(impatient.post(call(&json!(1), "hang")).await, Err(ClientError::Deadline(_))));
    target.until("the abandoned call to be dropped", |target| target.counts().waiting == 0).await?;
    session.notify("notifications/cancelled", json!({"requestId": 1})).await?;
    target.until_seen("notifications/cancelled", 2).await?;
    // The id is free again, and the session lives: a lost connection ends no session.
    let again = session.post(call(&json!(1), "echo")).await?;
    assert_eq!(again.tool_text().as_deref(), Some("echo: {}"));
    assert_eq!(target.count("DELETE"), 0);
    Ok(())
}
