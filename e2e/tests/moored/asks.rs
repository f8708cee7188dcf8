//! What a target asks on the stream of a call: it reaches the client that announced it, and the answer the target.

use e2e::{
    asking::{Scene, begin, call, event, everything, id_of, notification, request, rest, result},
    scripted::{ScriptedServer, Seen},
};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The one answer that was posted under an id, byte by byte.
async fn answered(server: &ScriptedServer, id: &Value) -> Result<String, Box<dyn std::error::Error>> {
    let is = |seen: &Seen| seen.method().is_none() && seen.id() == Some(id);
    server.until("an answer", |server| server.requests().iter().any(is)).await?;
    let mut seen: Vec<_> = server.requests().into_iter().filter(is).collect();
    match (seen.pop(), seen.is_empty()) {
        (Some(one), true) => Ok(String::from_utf8_lossy(&one.body).into_owned()),
        _ => Err("an id was answered twice".into()),
    }
}

/// Cases 023 and 025 (a): under the id of the call that runs, to a client that never opens a GET stream.
#[tokio::test]
async fn what_is_asked_on_a_calls_stream_and_what_is_answered_pass_unchanged_but_for_the_id() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let answers =
        [r#""result" : {"x":1.0e2,"y":"\u00e9"}"#, r#""error":{"code":-1, "message":"no","data":[1.0]}"#];
    let methods = ["sampling/createMessage", "elicitation/create", "roots/list"];
    for (n, (method, answer)) in
        methods.iter().flat_map(|method| answers.map(|answer| (method, answer))).enumerate()
    {
        // The first has the id of the call; others are strings, spelt as no other server does.
        let id = if n == 0 { "1".to_owned() } else { format!(r#""\u0061{n}""#) };
        let asked = |id: &str| {
            format!(
                r#"{{"params":{{"id":1.0e2,"x":"\u00e9"}}, "method":"{method}","id":{id} ,"jsonrpc":"2.0"}}"#
            )
        };
        scene.a.feed(format!("data: {}\n\n", asked(&id)));
        let data = events.next_data().await?.ok_or("the stream ended")?;
        let ours = id_of(&serde_json::from_str(&data)?).ok_or("no id of ours")?;
        assert_eq!(data, asked(&ours.to_string()));
        let answer = |id: &str| format!(r#"{{{answer}, "jsonrpc":"2.0", "id":{id} }}"#);
        let taken = session.post(answer(&ours.to_string())).await?;
        assert_eq!((taken.status, taken.body.len()), (StatusCode::ACCEPTED, 0));
        assert_eq!(answered(&scene.a, &serde_json::from_str(&id)?).await?, answer(&id));
    }
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")]);
    assert!(scene.b.answers().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_request_within_a_task_names_it_as_the_client_knows_it() -> Outcome {
    let scene = Scene::start("").await?;
    let session = scene.session().await?;
    let (mut events, _) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let of = |task: &str| json!({"io.modelcontextprotocol/related-task": {"taskId": task}});
    let asked = request(&json!(0), "elicitation/create", &json!({"message": "?", "_meta": of("t")}));
    scene.a.feed(event(&asked));
    let shown = events.next_message().await?.unwrap_or_default();
    assert_eq!(shown["params"], json!({"message": "?", "_meta": of("a:t")}));
    let answer = |id: &Value, task: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"_meta": of(task)}});
    session.post(answer(&shown["id"], "a:t").to_string()).await?;
    let told: Value = serde_json::from_str(&answered(&scene.a, &json!(0)).await?)?;
    assert_eq!(told, answer(&json!(0), "t"));
    Ok(())
}

/// Case 023: three calls, four requests, one id.
#[tokio::test]
async fn equal_ids_of_two_targets_two_clients_and_their_calls_do_not_meet() -> Outcome {
    let scene = Scene::start("").await?;
    let one = json!(1);
    let (first, second) = (scene.session().await?, scene.session().await?);
    let (mut first_a, at_a) = begin(&first, (&scene.a, "a"), &one, None).await?;
    let (mut first_b, at_b) = begin(&first, (&scene.b, "b"), &json!("1"), None).await?;
    let (mut second_a, other_at_a) = begin(&second, (&scene.a, "a"), &one, None).await?;
    let ask = |of: &str| event(&request(&one, "elicitation/create", &json!({"message": of})));
    scene.a.feed_to(&at_a, ask("first a"));
    scene.b.feed_to(&at_b, ask("first b"));
    scene.a.feed_to(&other_at_a, ask("second a"));
    let mut asked = Vec::new();
    for (events, of) in [(&mut first_a, "first a"), (&mut first_b, "first b"), (&mut second_a, "second a")] {
        let message = events.next_message().await?.unwrap_or_default();
        assert_eq!(message["params"]["message"], json!(of));
        asked.push(id_of(&message).ok_or("no id of ours")?);
    }
    assert_ne!(asked[0], asked[1]);
    // The answers come in another order than the requests.
    for (session, ours, of) in
        [(&second, &asked[2], "second a"), (&first, &asked[1], "first b"), (&first, &asked[0], "first a")]
    {
        session.post(result(ours, of).to_string()).await?;
    }
    for (server, session, of) in
        [(&scene.a, &at_a, "first a"), (&scene.b, &at_b, "first b"), (&scene.a, &other_at_a, "second a")]
    {
        let is = |seen: &Seen| {
            seen.session.as_ref() == Some(session)
                && seen.method().is_none()
                && seen.verb == http::Method::POST
        };
        server.until("its answer", |server| server.requests().iter().any(is)).await?;
        let answers: Vec<Value> = server.requests().into_iter().filter(is).map(|seen| seen.message).collect();
        assert_eq!(answers, [result(&one, of)], "{of}");
    }
    scene.a.feed_to(&at_a, event(&result(&one, "first a")));
    scene.b.feed_to(&at_b, event(&result(&json!("1"), "first b")));
    scene.a.feed_to(&other_at_a, event(&result(&one, "second a")));
    assert_eq!(rest(first_a).await?, [result(&one, "first a")]);
    assert_eq!(rest(first_b).await?, [result(&json!("1"), "first b")]);
    assert_eq!(rest(second_a).await?, [result(&one, "second a")]);
    Ok(())
}

/// Case 025 (c), and clients that take JSON only.
#[tokio::test]
async fn what_cannot_be_asked_is_answered_to_the_target_at_once() -> Outcome {
    let scene = Scene::start("").await?;
    let client = scene.moored.client()?;
    let roots = client.initialize_as(json!({"roots": {}})).await?;
    let (events, _) = begin(&roots, (&scene.a, "a"), &json!(1), None).await?;
    let offers = |seen: &Seen| seen.message["params"]["capabilities"] == json!({"roots": {}});
    assert!(scene.a.seen("initialize").iter().any(offers), "what is offered is what the client announced");
    let methods = ["sampling/createMessage", "elicitation/create", "tasks/get", "unknown/method"];
    for (n, method) in methods.iter().enumerate() {
        let id = json!(n);
        scene.a.feed(event(&request(&id, method, &json!({}))));
        let told: Value = serde_json::from_str(&answered(&scene.a, &id).await?)?;
        assert_eq!(told["error"]["code"], json!(-32601), "{method}");
    }
    scene.a.feed(event(&request(&json!("p"), "ping", &json!({}))));
    assert_eq!(serde_json::from_str::<Value>(&answered(&scene.a, &json!("p")).await?)?["result"], json!({}));
    scene.a.feed(event(&result(&json!(1), "done")));
    assert_eq!(rest(events).await?, [result(&json!(1), "done")], "the client was asked");

    let json_only = client.with_header("accept", "application/json")?.initialize_as(everything()).await?;
    let answer = json_only.post(call(&json!(1), "b___ask", None)).await?;
    assert!(!answer.is_stream(), "{}", answer.text());
    assert!(answer.tool_text().is_some_and(|said| said.contains("-32601")), "{}", answer.text());
    assert_eq!(scene.b.answers().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_client_is_asked_nothing_before_it_says_that_it_is_initialized() -> Outcome {
    let scene = Scene::start("").await?;
    let client = scene.moored.client()?;
    let begun = client.post_initialize("2025-11-25", everything()).await?;
    let session = client.session(begun.header("mcp-session-id").ok_or("no session")?);
    let (mut first, at_a) = begin(&session, (&scene.a, "a"), &json!(1), None).await?;
    let (mut second, _) = begin(&session, (&scene.a, "a"), &json!(2), None).await?;
    let log = notification("notifications/message", &json!({"level": "info", "data": 1}));
    for (call, events) in [(1, &mut first), (2, &mut second)] {
        let call = json!(call);
        let ask = request(&json!(0), "elicitation/create", &json!({"message": call}));
        scene.a.feed_call(&at_a, &call, event(&ask) + &event(&log));
        assert_eq!(events.next_message().await?, Some(log.clone()), "it was asked too early");
    }
    session.notify("notifications/initialized", json!({})).await?;
    for (call, mut events) in [(1, first), (2, second)] {
        let call = json!(call);
        let asked = events.next_message().await?.unwrap_or_default();
        assert_eq!(asked["params"]["message"], call, "it was asked on another call's stream");
        let ours = id_of(&asked).ok_or("no id of ours")?;
        session.post(result(&ours, "yes").to_string()).await?;
        scene
            .a
            .until("the answer", |server| server.answers().len() as u64 == call.as_u64().unwrap_or(0))
            .await?;
        scene.a.feed_call(&at_a, &call, event(&result(&call, "done")));
        assert_eq!(rest(events).await?, [result(&call, "done")]);
    }
    Ok(())
}
