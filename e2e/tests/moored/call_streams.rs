//! A tool call whose target answers with an event stream: what passes, when, and what stays on the target's side.

use e2e::{
    asking::{event, rest},
    client::{Event, Events},
    manifest,
    moored::Moored,
    scripted::{Behaviour, EventIds, Script, ScriptedServer, Tool},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn script(tools: impl IntoIterator<Item = (&'static str, Behaviour)>) -> Script {
    let tools = tools.into_iter().map(|(name, behaviour)| Tool::new(name, behaviour)).collect();
    Script { tools, ..Script::default() }
}

/// A call under an id, with the progress token that it may have.
fn call(id: &Value, tool: &str, token: Option<&Value>) -> String {
    let meta = token.map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn result(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
}

fn progress(token: &Value, step: u32) -> Value {
    let params = json!({"progressToken": token, "progress": step});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

fn log(n: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}})
}

/// Case 026.
#[tokio::test]
async fn events_are_relayed_while_the_target_still_holds_the_rest() -> Outcome {
    let target = ScriptedServer::start(script([("fed", Behaviour::Fed)])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let request = session.request(Method::POST).header("accept-encoding", "gzip, br");
    // The head is here before the first event is.
    let opened = moored.client()?.open(request.body(call(&json!(1), "a___fed", None).into())?).await;
    let mut events = opened?;
    target.until_feeds(1).await?;
    let header = |events: &Events, name: &str| {
        events.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    assert_eq!(events.status, StatusCode::OK);
    assert_eq!(header(&events, "content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(header(&events, "x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(header(&events, "cache-control").as_deref(), Some("no-cache"));
    assert_eq!(header(&events, "content-length"), None);
    assert_eq!(header(&events, "content-encoding"), None);
    for n in 0..3 {
        target.feed(event(&log(n)));
        assert_eq!(events.next_message().await?, Some(log(n)));
    }
    target.feed(event(&result(&json!(1))));
    assert_eq!(events.next_message().await?, Some(result(&json!(1))));
    assert_eq!(events.next_message().await?, None);
    Ok(())
}

#[tokio::test]
async fn an_event_that_comes_in_pieces_is_relayed_whole_and_as_it_was() -> Outcome {
    let target = ScriptedServer::start(script([("fed", Behaviour::Fed)])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let mut events = session.open(call(&json!(1), "a___fed", None)).await?;
    target.until_feeds(1).await?;
    let odd = r#"{"params":{"data":1.0e2,"x":"\u00e9"}, "method":"notifications/odd","jsonrpc":"2.0"}"#;
    for piece in ["\u{feff}: hello\r\n\r\nevent: mess", "age\r\nda", "ta: ", odd, "\r", "\n\r", "\nda"] {
        target.feed(piece.to_owned());
    }
    assert_eq!(events.next_data().await?.as_deref(), Some(odd));
    target.feed(format!("ta: {}\n\n", result(&json!(1))));
    assert_eq!(rest(events).await?, [result(&json!(1))]);
    Ok(())
}

#[tokio::test]
async fn event_ids_and_retry_times_stay_on_the_targets_side() -> Outcome {
    let tools = script([("fed", Behaviour::Fed), ("echo_sse", Behaviour::EchoStream(2))]);
    let target = ScriptedServer::start(Script { event_ids: EventIds::Present, ..tools }).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let answer = session.post(call(&json!(1), "a___echo_sse", None)).await?;
    assert!(answer.is_stream() && !answer.text().contains("event-"), "{}", answer.text());
    assert_eq!(answer.messages().len(), 3);

    let mut events = session.open(call(&json!(2), "a___fed", None)).await?;
    target.until_feeds(1).await?;
    target.feed(format!("retry: 1\nid: 7\ndata: {}\n\n", log(0)));
    target.feed("id: 8\nretry: 5\n\n");
    target.feed(format!("id: 9\ndata: {}\n\n", result(&json!(2))));
    let mut seen = Vec::new();
    while let Some(event) = events.next().await? {
        let Event { id, retry, data, .. } = event;
        let id = id.ok_or("an event without an id")?;
        assert!(!["7", "8", "9"].contains(&id.as_str()) && retry.is_none(), "{id} {retry:?}");
        seen.extend(data.filter(|data| !data.is_empty()));
    }
    assert_eq!(seen, [log(0).to_string(), result(&json!(2)).to_string()]);
    Ok(())
}

/// Cases 023 and 025 (c): what a target asks under the id of the call that runs.
#[tokio::test]
async fn what_a_target_asks_is_refused_there_and_the_call_goes_on_to_its_answer() -> Outcome {
    let ask = |method: &str| Behaviour::Ask(json!(1), method.into());
    let asking = || {
        script([
            ("sample", ask("sampling/createMessage")),
            ("elicit", ask("elicitation/create")),
            ("roots", ask("roots/list")),
            ("ping", ask("ping")),
        ])
    };
    let (a, b) = (ScriptedServer::start(asking()).await, ScriptedServer::start(asking()).await);
    let moored = Moored::serve(manifest::gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let client = moored.client()?;
    let (one, two) = (client.initialize().await?, client.initialize().await?);
    for tool in ["sample", "elicit", "roots", "ping"] {
        let (at_a, at_b) = tokio::join!(
            one.post(call(&json!(1), &format!("a___{tool}"), None)),
            two.post(call(&json!(1), &format!("b___{tool}"), None)),
        );
        for answer in [at_a?, at_b?] {
            assert_eq!(answer.messages().len(), 1, "the question reached the client: {}", answer.text());
            assert_eq!(answer.response()["id"], json!(1));
            let told: Value = serde_json::from_str(&answer.tool_text().unwrap_or_default())?;
            assert_eq!(told["id"], json!(1));
            match tool {
                "ping" => assert_eq!(told["result"], json!({})),
                _ => assert_eq!(told["error"]["code"], json!(-32601)),
            }
        }
    }
    for target in [&a, &b] {
        assert_eq!(target.answers().len(), 4);
        let initialized = target.seen("initialize");
        assert!(initialized.iter().all(|seen| seen.message["params"]["capabilities"] == json!({})));
    }
    Ok(())
}

/// Case 028.
#[tokio::test]
async fn progress_reaches_its_own_call_alone_though_tokens_are_equal() -> Outcome {
    let target = ScriptedServer::start(script([("fed", Behaviour::Fed)])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let (one, two) = (client.initialize().await?, client.initialize().await?);
    let token = json!(1);
    let mut of_one = one.open(call(&json!(1), "a___fed", Some(&token))).await?;
    target.until_feeds(1).await?;
    let mut of_two = two.open(call(&json!(1), "a___fed", Some(&token))).await?;
    target.until_feeds(2).await?;
    let called = target.seen("tools/call");
    let at_target: Vec<&str> = called.iter().filter_map(|seen| seen.session.as_deref()).collect();
    let [first, second] = at_target[..] else { return Err("two calls, two sessions".into()) };
    assert_ne!(first, second);
    assert!(called.iter().all(|seen| seen.message["params"]["_meta"]["progressToken"] == token));

    target.feed_to(first, event(&progress(&token, 1)));
    assert_eq!(of_one.next_message().await?, Some(progress(&token, 1)));
    // Nothing may come behind the answer, though the target goes on.
    target.feed_to(first, event(&result(&json!(1))) + &event(&progress(&token, 2)));
    target.feed_to(second, event(&progress(&token, 7)));
    assert_eq!(rest(of_one).await?, [result(&json!(1))]);
    assert_eq!(of_two.next_message().await?, Some(progress(&token, 7)));
    target.feed_to(second, event(&result(&json!(1))));
    assert_eq!(rest(of_two).await?, [result(&json!(1))]);
    Ok(())
}

/// Case 028: clients break off at progress that they did not ask for.
#[tokio::test]
async fn progress_of_a_token_that_the_call_did_not_give_is_dropped() -> Outcome {
    let target = ScriptedServer::start(script([("fed", Behaviour::Fed)])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let (number, text) = (json!(1), json!("1"));
    for token in [None, Some(&number), Some(&text)] {
        let events = session.open(call(&json!(1), "a___fed", token)).await?;
        target.until_feeds(1).await?;
        for given in [&number, &text, &json!("other")] {
            target.feed(event(&progress(given, 1)));
        }
        target.feed(event(&log(0)) + &event(&result(&json!(1))));
        let wanted: Vec<Value> =
            token.map(|token| progress(token, 1)).into_iter().chain([log(0), result(&json!(1))]).collect();
        assert_eq!(rest(events).await?, wanted, "{token:?}");
        target.until_feeds(0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn answers_to_requests_of_others_on_a_calls_stream_are_dropped() -> Outcome {
    let target = ScriptedServer::start(script([("fed", Behaviour::Fed)])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let events = session.open(call(&json!(4), "a___fed", None)).await?;
    target.until_feeds(1).await?;
    target.feed(event(&result(&json!(5))) + &event(&result(&json!("4"))) + "data: not json\n\n");
    target.feed(event(&result(&json!(4))));
    assert_eq!(rest(events).await?, [result(&json!(4))]);
    Ok(())
}

#[tokio::test]
async fn a_target_whose_answer_cannot_be_taken_hears_that_nobody_waits_for_it() -> Outcome {
    let mut script = Script::default();
    script.tools.push(Tool::new("fed", Behaviour::Fed));
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let json_only = client.clone().with_header("accept", "application/json")?;
    for (n, client) in [client, json_only].into_iter().enumerate() {
        let session = client.initialize().await?;
        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "a___fed"}});
        let mut calling = JoinSet::new();
        calling.spawn(async move { session.post(call.to_string()).await });
        target.until_feeds(1).await?;
        // An event that never ends, and is larger than any that is taken.
        target.feed(format!("data: {}", "x".repeat(17 << 20)));
        assert_eq!(calling.join_next().await.ok_or("no call")???.error_code(), Some(-32603));
        target.until_seen("notifications/cancelled", n + 1).await?;
        assert_eq!(target.seen("notifications/cancelled")[n].message["params"]["requestId"], json!(n));
        target.end_feeds();
        target.until("its stream's end", |server| server.counts().feeds == 0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_takes_no_stream_gets_the_answer_of_one_in_json() -> Outcome {
    let target = ScriptedServer::start(script([
        ("echo_sse", Behaviour::EchoStream(3)),
        ("ask", Behaviour::Ask(json!(0), "elicitation/create".into())),
    ]))
    .await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?.with_header("accept", "application/json")?;
    let session = client.initialize().await?;
    for (tool, text) in [("a___echo_sse", "echo_sse: {}"), ("a___ask", "-32601")] {
        let answer = session.call(tool, json!({})).await?;
        assert!(!answer.is_stream() && answer.header("content-length").is_some(), "{}", answer.text());
        assert!(answer.tool_text().is_some_and(|said| said.contains(text)), "{}", answer.text());
    }
    Ok(())
}
