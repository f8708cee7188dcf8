//! `tools/list`: one list out of many targets' lists, learnt by the gateway for itself. How it changes is in
//! `list_changes.rs`.

use std::time::Duration;

use e2e::{
    client::{Client, PROTOCOL_VERSION},
    manifest,
    moored::Moored,
    scripted::{Get, Interference, RawAnswer, Script, ScriptedServer, Version},
};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn plain_gateway() -> String {
    manifest::gateway("tools").replace("spec: {", "spec: {tools: {naming: Plain}, ")
}

fn page(tools: &str, more: &str) -> Interference {
    Interference::Answer(RawAnswer::json(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]{more}}}}}"#
    )))
}

#[tokio::test]
async fn all_pages_of_all_targets_are_one_list_in_the_targets_order() -> Outcome {
    let names: Vec<String> = (0..23).map(|n| format!("tool-{n}")).collect();
    let paged = ScriptedServer::start(Script { page_size: Some(5), ..Script::echoing(names.clone()) }).await;
    let whole = ScriptedServer::start(Script::echoing(["x"])).await;
    let moored = Moored::serve(manifest::gateway_with([("p", paged.url()), ("w", whole.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let wanted: Vec<String> =
        names.iter().map(|name| format!("p___{name}")).chain(["w___x".to_owned()]).collect();
    assert_eq!(session.tools().await?, wanted);
    assert_eq!(paged.count("tools/list"), 5);
    Ok(())
}

#[tokio::test]
async fn a_tool_is_listed_as_its_target_wrote_it_but_for_its_name() -> Outcome {
    let target = ScriptedServer::start(Script::default()).await;
    let odd = r#"{ "x-new":{"name":"a"}, "inputSchema":{"type":"object","properties":{"n":{"minimum":1.0e2}}},"name" : "get\u002dsum" ,"annotations":null}"#;
    target.interfere("tools/list", page(odd, ""));
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let answer = session.post(r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#).await?;
    let wanted = odd.replace(r#""get\u002dsum""#, r#""a___get-sum""#);
    assert!(answer.text().contains(&wanted), "{}", answer.text());
    assert_eq!(answer.response()["id"], json!("l"));
    Ok(())
}

#[tokio::test]
async fn of_two_plain_names_the_older_targets_is_listed_and_called() -> Outcome {
    let older = ScriptedServer::start(Script::echoing(["echo", "only-older"])).await;
    let newer = ScriptedServer::start(Script::echoing(["echo", "only-newer"])).await;
    let made = |name: &str, at: &str, target: &ScriptedServer| {
        let named = format!("metadata: {{name: {name}");
        let dated = format!("metadata: {{name: {name}, creationTimestamp: \"{at}\"");
        manifest::target(name, "tools", &target.url()).replace(&named, &dated)
    };
    let newer_one = made("a", "2026-02-02T00:00:00Z", &newer);
    let older_one = made("b", "2026-02-01T00:00:00Z", &older);
    let moored = Moored::serve(plain_gateway() + &newer_one + &older_one).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["echo", "only-older", "only-newer"]);
    assert_eq!(session.call("echo", json!({})).await?.status, StatusCode::OK);
    assert_eq!(session.call("only-newer", json!({})).await?.tool_text().as_deref(), Some("only-newer: {}"));
    assert_eq!((older.count("tools/call"), newer.count("tools/call")), (1, 1));
    Ok(())
}

#[tokio::test]
async fn names_that_are_too_long_for_some_clients_are_listed_and_called() -> Outcome {
    let long = "x".repeat(100);
    let target = ScriptedServer::start(Script::echoing([long.clone()])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let exposed = format!("a___{long}");
    assert_eq!(session.tools().await?, std::slice::from_ref(&exposed));
    assert_eq!(session.call(&exposed, json!({})).await?.tool_text(), Some(format!("{long}: {{}}")));
    Ok(())
}

#[tokio::test]
async fn a_target_that_pages_for_ever_or_lists_too_much_is_cut_off_and_the_others_are_whole() -> Outcome {
    let endless = ScriptedServer::start(Script::default()).await;
    endless.interfere("tools/list", page(r#"{"name":"same"}"#, r#","nextCursor":"again""#));
    let many: Vec<String> = (0..12_000).map(|n| format!("t{n}")).collect();
    let huge = ScriptedServer::start(Script::echoing(many)).await;
    let good = ScriptedServer::start(Script::echoing(["echo"])).await;
    let targets = [("endless", endless.url()), ("huge", huge.url()), ("good", good.url())];
    let moored = Moored::serve(manifest::gateway_with(targets)).await?;
    let session = moored.client()?.initialize().await?;
    let up = |target: &'static str| [("target", target)];
    moored
        .until_metrics(|metrics| {
            ["endless", "huge", "good"]
                .iter()
                .all(|target| metrics.sum("mooring_target_up", &up(target)) >= 1.0)
        })
        .await?;
    let tools = session.tools().await?;
    let of = |alias: &str| tools.iter().filter(|tool| tool.starts_with(alias)).count();
    assert_eq!((of("endless___"), of("huge___"), of("good___")), (1, 10_000, 1));
    assert!(endless.count("tools/list") <= 200, "{} pages were asked for", endless.count("tools/list"));
    assert_eq!(session.call("good___echo", json!({})).await?.status, StatusCode::OK);
    Ok(())
}

#[tokio::test]
async fn a_long_list_comes_in_pages_and_a_cursor_of_no_page_is_refused() -> Outcome {
    let many: Vec<String> = (0..2500).map(|n| format!("t{n}")).collect();
    let target = ScriptedServer::start(Script::echoing(many.clone())).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let wanted: Vec<String> = many.iter().map(|name| format!("a___{name}")).collect();
    assert!(session.tools().await? == wanted, "every tool once, in order");
    for cursor in [json!("made-up"), json!(""), json!("0.1"), json!("1.99"), json!(7), json!({})] {
        let answer = session.ask("tools/list", json!({"cursor": cursor})).await?;
        assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32602)), "{cursor}");
    }
    let first = session.ask("tools/list", json!({"cursor": null})).await?;
    let cursor = first.response()["result"]["nextCursor"].clone();
    assert!(cursor.is_string());
    // Behind a change the old cursor would skip or repeat tools.
    let mut stream = session.get().await?;
    target.set_tools(Script::echoing(["x"]).tools);
    assert!(stream.next_message().await?.is_some());
    let stale = session.ask("tools/list", json!({"cursor": cursor})).await?;
    assert_eq!((stale.status, stale.error_code()), (StatusCode::OK, Some(-32602)));
    Ok(())
}

#[tokio::test]
async fn a_target_of_an_unknown_version_is_disconnected_and_has_no_tools() -> Outcome {
    let odd = Script { protocol_version: Version::Always("2031-01-01".into()), ..Script::default() };
    let (odd, good) =
        (ScriptedServer::start(odd).await, ScriptedServer::start(Script::echoing(["echo"])).await);
    let moored = Moored::serve(manifest::gateway_with([("odd", odd.url()), ("good", good.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["good___echo"]);
    odd.until("its sessions to be deleted", |odd| odd.count("DELETE") >= 1 && odd.open_sessions().is_empty())
        .await?;
    assert_eq!((odd.count("notifications/initialized"), odd.count("tools/list")), (0, 0));
    let answer = session.call("odd___echo", json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)));
    let data = &answer.response()["error"]["data"];
    assert_eq!(data, &json!({"target": "odd", "reason": "target_unsupported_version"}));
    assert_eq!(odd.count("tools/call"), 0);
    Ok(())
}

#[tokio::test]
async fn lists_cost_targets_one_session_of_the_gateways_own_however_many_clients_ask() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    let mut sessions = Vec::new();
    for _ in 0..10 {
        let session = client.initialize().await?;
        assert_eq!(session.tools().await?, ["a___echo"]);
        sessions.push(session);
    }
    assert_eq!((target.count("initialize"), target.count("tools/list")), (1, 1));
    let own = target.seen("initialize").remove(0);
    assert_eq!(own.message["params"]["clientInfo"]["name"], json!("mooring"));
    for session in &sessions[..2] {
        session.call("a___echo", json!({})).await?;
    }
    assert_eq!(target.count("initialize"), 3);
    let names: Vec<Value> = target
        .seen("initialize")
        .iter()
        .map(|seen| seen.message["params"]["clientInfo"]["name"].clone())
        .collect();
    assert_eq!(names, ["mooring", "raw", "raw"]);
    let listed: Vec<_> = target.seen("tools/list").iter().map(|seen| seen.session.clone()).collect();
    let called: Vec<_> = target.seen("tools/call").iter().map(|seen| seen.session.clone()).collect();
    assert!(called.iter().all(|session| session.is_some() && !listed.contains(session)));
    assert_ne!(called[0], called[1]);
    Ok(())
}

#[tokio::test]
async fn a_target_that_forgets_sessions_is_listed_again_in_a_new_one() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["before"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___before"]);
    let mut stream = session.get().await?;
    target.until_streams(1).await?;
    target.change(|script| script.tools = Script::echoing(["after"]).tools);
    target.forget_sessions();
    target.until_seen("initialize", 2).await?;
    let message = stream.next_message().await?.unwrap_or_default();
    assert_eq!(message["method"], json!("notifications/tools/list_changed"));
    assert_eq!(session.tools().await?, ["a___after"]);
    assert_eq!(target.open_sessions().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_target_is_listed_in_the_version_of_the_client_and_never_offered_a_newer_one() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    target.until_seen("tools/list", 1).await?;
    let client = moored.client()?;
    for version in ["2025-03-26", "2025-06-18"] {
        let answer = client.post_initialize(version, json!({})).await?;
        let id = answer.header("mcp-session-id").unwrap_or_default();
        let client = client.clone().with_header("mcp-session-id", id)?;
        let client = client.with_header("mcp-protocol-version", version)?;
        let listed = client.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await?;
        assert_eq!(listed.response()["result"]["tools"][0]["name"], json!("a___echo"), "{}", listed.text());
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a___echo"}}"#;
        assert_eq!(client.post(call).await?.tool_text().as_deref(), Some("echo: {}"));
    }
    let offered: Vec<Value> = target
        .seen("initialize")
        .iter()
        .map(|seen| seen.message["params"]["protocolVersion"].clone())
        .collect();
    let wanted = [PROTOCOL_VERSION, "2025-03-26", "2025-03-26", "2025-06-18", "2025-06-18"];
    assert_eq!(offered, wanted, "one for each version's catalogue, one for each client's session");
    for seen in target.seen("tools/list").iter().chain(&target.seen("tools/call")).skip(1) {
        assert_ne!(seen.header("mcp-protocol-version"), Some(PROTOCOL_VERSION));
    }
    Ok(())
}

#[tokio::test]
async fn a_target_whose_get_never_answers_is_listed_all_the_same() -> Outcome {
    for get in [Get::Silence, Get::MethodNotAllowed] {
        let target = ScriptedServer::start(Script { get, ..Script::echoing(["echo"]) }).await;
        let url = target.url();
        let slow =
            manifest::target("a", "tools", &url).replace("spec: {", "spec: {timeouts: {connectSeconds: 1}, ");
        let moored = Moored::serve(manifest::gateway("tools") + &slow).await?;
        moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[]) >= 1.0).await?;
        let client = Client::new(&moored.url())?.with_deadline(Duration::from_secs(3));
        assert_eq!(client.initialize().await?.tools().await?, ["a___echo"], "{get:?}");
    }
    Ok(())
}
