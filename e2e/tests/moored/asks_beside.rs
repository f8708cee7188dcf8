//! What a target asks during a call whose answer is no event stream, of a client that takes streams: it goes to the
//! client's GET stream where one is open, and is answered to the target at once where none is. And what a client that
//! announced one kind of elicitation is not asked.

use e2e::{
    asking::{Scene, begin, call, event, everything, news, request, rest, result},
    client::{Answer, ClientError, Session},
    manifest,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// A gateway with these fields and target `a`, whose tool `ask_roots` asks for roots.
async fn serve(fields: &str) -> Result<(ScriptedServer, Moored), Error> {
    let mut script = Script::default();
    script.tools.push(Tool::new("ask_roots", Behaviour::Ask(json!(7), "roots/list".into())));
    let target = ScriptedServer::start(script).await;
    let gateway = manifest::gateway("tools").replace("spec: {", &format!("spec: {{{fields}, "));
    Ok((Moored::serve(gateway + &manifest::target("a", "tools", &target.url())).await?, target))
        .map(|(moored, target)| (target, moored))
}

/// Posts beside whatever else the client does.
fn post(session: &Session, body: String) -> JoinSet<Result<Answer, ClientError>> {
    let (session, mut posted) = (session.clone(), JoinSet::new());
    posted.spawn(async move { session.post(body).await });
    posted
}

/// The answer, in JSON.
async fn end(mut posted: JoinSet<Result<Answer, ClientError>>) -> Result<Value, Error> {
    let answer = posted.join_next().await.ok_or("nothing was posted")???;
    Ok(serde_json::from_slice(&answer.body)?)
}

fn text(answer: &Value) -> &str {
    answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn a_call_without_a_place_for_its_stream_has_its_client_asked_on_the_one_that_is_open() -> Outcome {
    let (_target, moored) = serve("limits: {streamsPerSession: 1}").await?;
    let session = moored.client()?.initialize_as(everything()).await?;
    let mut open = session.get().await?;
    let asking = post(&session, call(&json!(1), "a___ask_roots", None));
    let asked = news(&mut open).await?;
    assert_eq!(asked["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
    assert_eq!(session.post(answer.to_string()).await?.status, StatusCode::ACCEPTED);
    let answer = end(asking).await?;
    assert!(text(&answer).contains(r#""roots""#), "{answer}");
    let refused = moored.metrics().await?.sum("mooring_faults_total", &[("fault", "too_many_streams")]);
    assert!((refused - 1.0).abs() < 0.5, "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_batch_has_its_client_asked_on_its_get_stream_and_its_target_told_where_there_is_none() -> Outcome {
    let (_target, moored) = serve("limits: {streamsPerSession: 2}").await?;
    let client = moored.client()?;
    let begun = client.post_initialize("2025-03-26", everything()).await?;
    let session = client.session(begun.header("mcp-session-id").ok_or("no session")?);
    session.notify("notifications/initialized", json!({})).await?;
    let batch = || format!("[{}]", call(&json!(1), "a___ask_roots", None));
    let answer = end(post(&session, batch())).await?;
    assert!(text(&answer[0]).contains("no stream open"), "{answer}");
    let mut open = session.get().await?;
    let asking = post(&session, batch());
    let asked = news(&mut open).await?;
    assert_eq!(asked["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}});
    assert_eq!(session.post(answer.to_string()).await?.status, StatusCode::ACCEPTED);
    let answer = end(asking).await?;
    assert!(text(&answer[0]).contains(r#""roots""#), "{answer}");
    Ok(())
}

#[tokio::test]
async fn an_elicitation_in_a_mode_that_the_client_did_not_announce_is_answered_to_the_target() -> Outcome {
    let scene = Scene::start("").await.map_err(|error| error.to_string())?;
    let client = scene.moored.client()?;
    let (form, url) = (json!({"mode": "form"}), json!({"mode": "url", "url": "https://a.example"}));
    for (announced, reached, refused) in [(json!({}), &form, &url), (json!({"url": {}}), &url, &form)] {
        let session = client.initialize_as(json!({"elicitation": announced})).await?;
        let answers = scene.a.answers().len();
        let begun = begin(&session, (&scene.a, "a"), &json!(1), None).await;
        let (mut events, at_a) = begun.map_err(|error| error.to_string())?;
        for params in [refused, reached] {
            scene.a.feed_to(&at_a, event(&request(&json!("e"), "elicitation/create", params)));
        }
        let asked = events.next_message().await?.unwrap_or_default();
        assert_eq!(asked["params"], *reached, "{announced}");
        scene.a.until("the refusal", |server| server.answers().len() > answers).await?;
        assert_eq!(scene.a.answers()[answers]["error"]["code"], json!(-32602), "{announced}");
        scene.a.feed_to(&at_a, event(&result(&json!(1), "done")));
        assert_eq!(rest(events).await?.last(), Some(&result(&json!(1), "done")));
    }
    Ok(())
}
