//! Prompts, resources and templates: listed beside tools, each with changes of its own, and never asked of a target
//! that announces none.

use std::time::Duration;

use e2e::{
    asking::hears_nothing,
    client::{ClientError, Events, Session},
    manifest,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use serde_json::{Value, json};
use tokio::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long a stream is watched for what must not come.
const A_WHILE: Duration = Duration::from_millis(300);

async fn hears(stream: &mut Events, method: &str) -> Outcome {
    let message = stream.next_message().await?.ok_or("the stream ended")?;
    assert_eq!(message.get("method"), Some(&json!(method)));
    Ok(())
}

async fn all(session: &Session) -> Result<[Vec<String>; 4], ClientError> {
    Ok([
        session.tools().await?,
        session.prompts().await?,
        session.resources().await?,
        session.templates().await?,
    ])
}

#[tokio::test]
async fn every_kind_is_one_list_of_all_targets_and_only_names_show_the_target() -> Outcome {
    let one = ScriptedServer::start(Script {
        page_size: Some(1),
        prompts: vec![json!({"name": "ask"}), json!({"name": "again"})],
        ..Script::offering("echo", "", "a://1", "a://{x}")
    })
    .await;
    let two = ScriptedServer::start(Script::offering("sum", "tell", "b://1", "b://{x}")).await;
    let moored = Moored::serve(manifest::gateway_with([("one", one.url()), ("two", two.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let [tools, prompts, resources, templates] = all(&session).await?;
    assert_eq!(tools, ["one___echo", "two___sum"]);
    assert_eq!(prompts, ["one___ask", "one___again", "two___tell"]);
    assert_eq!(
        (resources, templates),
        (vec!["a://1".into(), "b://1".into()], vec!["a://{x}".into(), "b://{x}".into()])
    );
    assert_eq!((one.count("prompts/list"), two.count("prompts/list")), (2, 1));
    assert_eq!(one.count("initialize"), 1, "the gateway's own session alone");
    Ok(())
}

#[tokio::test]
async fn an_item_is_listed_as_its_target_wrote_it_and_of_equal_uris_the_older_targets_is() -> Outcome {
    let resource = json!({
        "uri": "a://1", "name": "r", "icons": [{"src": "data:,"}], "_meta": {"x/y": 1}, "annotations": {"priority": 1},
        "unknown": {"name": "kept"},
    });
    let older = Script { resources: vec![resource.clone()], ..Script::offering("t", "p", "", "a://{x}") };
    let older = ScriptedServer::start(older).await;
    let newer = ScriptedServer::start(Script::offering("t", "p", "a://1", "b://{x}")).await;
    let moored = Moored::serve(manifest::gateway_with([("a", older.url()), ("b", newer.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let listed = session.ask("resources/list", json!({})).await?.response();
    assert_eq!(listed["result"], json!({"resources": [resource]}));
    Ok(())
}

#[tokio::test]
async fn a_target_is_asked_for_what_it_announced_and_a_missing_method_is_an_empty_list() -> Outcome {
    let tools_only = ScriptedServer::start(Script::echoing(["echo"])).await;
    let script = Script { capabilities: json!({"resources": {}}), ..Script::offering("t", "p", "a://1", "") };
    let resources_only = ScriptedServer::start(script).await;
    let missing = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    resources_only.interfere("resources/templates/list", Interference::Answer(RawAnswer::json(missing)));
    let targets = [("t", tools_only.url()), ("r", resources_only.url())];
    let moored = Moored::serve(manifest::gateway_with(targets)).await?;
    let session = moored.client()?.initialize().await?;
    let [tools, prompts, resources, templates] = all(&session).await?;
    assert_eq!((tools, resources), (vec!["t___echo".to_owned()], vec!["a://1".to_owned()]));
    assert!(prompts.is_empty() && templates.is_empty());
    for kind in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(tools_only.count(kind), 0, "{kind}");
    }
    for kind in ["tools/list", "prompts/list", "GET"] {
        assert_eq!(resources_only.count(kind), 0, "{kind}");
    }
    moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[]) >= 2.0).await?;
    Ok(())
}

/// Case 032.
#[tokio::test]
async fn a_change_of_each_kind_is_told_once_by_its_name_and_the_next_list_is_the_new_one() -> Outcome {
    let target = ScriptedServer::start(Script::offering("t", "p", "a://1", "a://{x}")).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    all(&session).await?;
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    target.change(|script| script.prompts = vec![json!({"name": "other"})]);
    target.push(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    hears(&mut stream, "notifications/prompts/list_changed").await?;
    assert_eq!(session.prompts().await?, ["a___other"]);
    target.change(|script| script.templates = vec![json!({"uriTemplate": "b://{x}", "name": "t"})]);
    target.push(r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#);
    hears(&mut stream, "notifications/resources/list_changed").await?;
    assert_eq!(session.templates().await?, ["b://{x}"]);
    hears_nothing(&mut stream, A_WHILE).await?;
    assert_eq!(
        (target.count("tools/list"), target.count("prompts/list")),
        (1, 2),
        "only what changed is asked for"
    );
    // Two kinds at once are two notifications, and none is lost.
    target.change(|script| {
        script.prompts = vec![json!({"name": "third"})];
        script.resources = vec![json!({"uri": "c://1", "name": "r"})];
    });
    target.push(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    target.push(r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#);
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(stream.next_message().await?.ok_or("the stream ended")?["method"].clone());
    }
    told.sort_by_key(Value::to_string);
    assert_eq!(told, ["notifications/prompts/list_changed", "notifications/resources/list_changed"]);
    assert_eq!(
        (session.prompts().await?, session.resources().await?),
        (vec!["a___third".into()], vec!["c://1".into()])
    );
    Ok(())
}

/// Case 034, for one kind of one target.
#[tokio::test]
async fn a_list_that_never_comes_holds_up_no_other_and_is_made_up_for() -> Outcome {
    let slow = ScriptedServer::start(Script::offering("t", "p", "a://1", "a://{x}")).await;
    slow.interfere("prompts/list", Interference::Hang);
    let good = ScriptedServer::start(Script::offering("t", "p", "b://1", "b://{x}")).await;
    let bounded = manifest::target("slow", "tools", &slow.url())
        .replace("spec: {", "spec: {timeouts: {connectSeconds: 1}, ");
    let manifests = manifest::gateway("tools") + &manifest::target("good", "tools", &good.url()) + &bounded;
    let moored = Moored::serve(manifests).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["good___t", "slow___t"]);
    assert_eq!(session.resources().await?, ["b://1", "a://1"]);
    let begun = Instant::now();
    assert_eq!(session.prompts().await?, ["good___p"]);
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    all(&session).await?;
    moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[]) >= 2.0).await?;
    let mut stream = session.get().await?;
    slow.behave("prompts/list");
    slow.push(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#);
    hears(&mut stream, "notifications/prompts/list_changed").await?;
    assert_eq!(session.prompts().await?, ["good___p", "slow___p"]);
    assert_eq!(slow.count("initialize"), 1, "the session goes on without that list");
    Ok(())
}

#[tokio::test]
async fn a_cursor_of_another_kind_is_refused() -> Outcome {
    let many = |n: usize| format!("n{n}");
    let script = Script {
        prompts: (0..1100).map(|n| json!({"name": many(n)})).collect(),
        resources: (0..1100).map(|n| json!({"uri": many(n), "name": "r"})).collect(),
        ..Script::offering("t", "p", "", "a://{x}")
    };
    let target = ScriptedServer::start(script).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let page = session.ask("prompts/list", json!({})).await?.response();
    let cursor = page["result"]["nextCursor"].clone();
    assert!(cursor.is_string(), "{page}");
    assert_eq!(session.ask("resources/list", json!({"cursor": cursor})).await?.error_code(), Some(-32602));
    assert_eq!(session.prompts().await?.len(), 1100);
    assert_eq!(session.resources().await?.len(), 1100);
    Ok(())
}
