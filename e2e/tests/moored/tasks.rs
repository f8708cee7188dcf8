//! Tasks (2025-11-25, experimental): two targets' tasks have one id at the targets and two at the client, and each leads
//! back to its own.

use e2e::{
    client::Session,
    manifest::gateway_with,
    moored::Moored,
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A task of this id and a sign of who keeps it.
fn task(id: &str, keeper: &str) -> Value {
    json!({"taskId": id, "status": "working", "ttl": 60000, "statusMessage": keeper})
}

/// A server that keeps one task under the id `t:1`, and says of everything that it is `name`'s.
async fn keeper(name: &str) -> ScriptedServer {
    let related = json!({RELATED: {"taskId": "t:1"}});
    let result = json!({"content": [{"type": "text", "text": name}], "_meta": related});
    let results = [
        ("tasks/get", task("t:1", name)),
        ("tasks/cancel", task("t:1", name)),
        ("tasks/result", result),
        ("tasks/list", json!({"tasks": [task("t:1", name), task("t:2", name)]})),
    ];
    let tools = vec![
        Tool::new("long", Behaviour::Result(json!({"task": task("t:1", name)}))),
        Tool::new("plain", Behaviour::Result(json!({"content": [], "structuredContent": {"taskId": "t:1"}}))),
    ];
    let script = Script { tools, capabilities: json!({"tools": {}, "tasks": {}}), ..Script::default() };
    let results = results.map(|(method, result)| (method.to_owned(), result)).into();
    ScriptedServer::start(Script { results, ..script }).await
}

async fn start() -> Result<(ScriptedServer, ScriptedServer, Moored, Session), Error> {
    let (a, b) = (keeper("a").await, keeper("b").await);
    let moored = Moored::serve(gateway_with([("a", a.url()), ("b", b.url())])).await?;
    let session = moored.client()?.initialize().await?;
    Ok((a, b, moored, session))
}

async fn begin(session: &Session, target: &str) -> Result<Value, Error> {
    let params = json!({"name": format!("{target}___long"), "arguments": {}, "task": {"ttl": 60000}});
    let answer = session.ask("tools/call", params).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    Ok(answer.response().pointer("/result/task").cloned().unwrap_or_default())
}

#[tokio::test]
async fn a_task_has_an_id_of_ours_and_each_method_leads_back_to_the_target_that_keeps_it() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    for (target, name) in [(&a, "a"), (&b, "b")] {
        let ours = format!("{name}:t:1");
        assert_eq!(begin(&session, name).await?, task(&ours, name));
        let call = target.seen("tools/call").pop().ok_or("no call")?;
        assert_eq!(call.message["params"]["task"], json!({"ttl": 60000}));
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let answer = session.ask(method, json!({"taskId": ours})).await?;
            let result = answer.response()["result"].clone();
            if method == "tasks/result" {
                assert_eq!(answer.tool_text().as_deref(), Some(name));
                assert_eq!(result["_meta"], json!({RELATED: {"taskId": ours}}));
            } else {
                assert_eq!(result, task(&ours, name), "{method}");
            }
            let seen = target.seen(method);
            assert_eq!((seen.len(), &seen[0].message["params"]), (1, &json!({"taskId": "t:1"})), "{method}");
            assert_eq!(seen[0].session, call.session, "{method}");
        }
    }
    assert_eq!((a.count("tasks/get"), b.count("tasks/get")), (1, 1));
    Ok(())
}

#[tokio::test]
async fn tasks_are_listed_of_every_target_in_use_under_our_ids() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    let ids = async || -> Result<Vec<String>, Error> {
        let answer = session.ask("tasks/list", json!({})).await?;
        let tasks =
            answer.response()["result"]["tasks"].as_array().cloned().ok_or_else(|| answer.unexpected())?;
        let mut ids: Vec<String> =
            tasks.iter().filter_map(|task| Some(task["taskId"].as_str()?.to_owned())).collect();
        ids.sort();
        Ok(ids)
    };
    assert_eq!(ids().await?, [] as [&str; 0], "no target is in use yet");
    begin(&session, "a").await?;
    assert_eq!(ids().await?, ["a:t:1", "a:t:2"]);
    begin(&session, "b").await?;
    assert_eq!(ids().await?, ["a:t:1", "a:t:2", "b:t:1", "b:t:2"]);
    // A target that knows no tasks is left out.
    a.change(|script| drop(script.results.remove("tasks/list")));
    assert_eq!(ids().await?, ["b:t:1", "b:t:2"]);
    assert!(b.seen("tasks/list").iter().all(|seen| seen.session == b.seen("tools/call")[0].session));
    Ok(())
}

#[tokio::test]
async fn an_id_of_no_task_is_refused_and_asked_of_nobody() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    begin(&session, "a").await?;
    for params in [
        json!({"taskId": "t"}),
        json!({"taskId": "c:t:1"}),
        json!({"taskId": 7}),
        json!({}),
        json!({"taskId": ""}),
    ] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = session.ask(method, params.clone()).await?;
            assert_eq!(
                (answer.status, answer.error_code()),
                (StatusCode::OK, Some(-32602)),
                "{method} {params}"
            );
        }
    }
    assert_eq!(a.count("tasks/get") + b.count("tasks/get"), 0);
    Ok(())
}

#[tokio::test]
async fn the_news_of_a_task_comes_on_the_get_stream_under_its_id_of_ours() -> Outcome {
    let (a, b, _moored, session) = start().await?;
    begin(&session, "a").await?;
    begin(&session, "b").await?;
    let mut events = session.get().await?;
    a.until_streams(1).await?;
    b.until_streams(1).await?;
    let news = |id: &str| {
        let params = json!({"taskId": id, "status": "completed"});
        json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})
    };
    for (target, ours) in [(&a, "a:t:1"), (&b, "b:t:1")] {
        let at_target = target.seen("tools/call")[0].session.clone().ok_or("no session")?;
        assert_eq!(target.push_to(&at_target, &news("t:1").to_string()), 1);
        let heard = loop {
            let message = events.next_message().await?.ok_or("the stream has ended")?;
            if message["method"] == "notifications/tasks/status" {
                break message;
            }
        };
        assert_eq!(heard, news(ours));
    }
    Ok(())
}

#[tokio::test]
async fn the_news_of_a_task_on_the_stream_of_another_call_comes_under_its_id_of_ours_too() -> Outcome {
    let (a, _b, _moored, session) = start().await?;
    begin(&session, "a").await?;
    a.change(|script| script.tools.push(Tool::new("fed", Behaviour::Fed)));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a___fed"}});
    let mut events = session.open(call.to_string()).await?;
    a.until_feeds(1).await?;
    let news = |id: &str| {
        let params = json!({"taskId": id, "status": "completed"});
        json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})
    };
    a.feed(format!("data: {}\n\n", news("t:1")));
    assert_eq!(events.next_message().await?, Some(news("a:t:1")));
    Ok(())
}

#[tokio::test]
async fn what_a_tool_says_of_tasks_in_its_own_result_is_left_alone() -> Outcome {
    let (_a, _b, _moored, session) = start().await?;
    let answer = session.call("a___plain", json!({})).await?;
    assert_eq!(answer.response()["result"]["structuredContent"], json!({"taskId": "t:1"}));
    Ok(())
}
