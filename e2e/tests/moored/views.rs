//! Who is shown what: lists by what clients can do, by session, and by what a target's configuration hides.

use e2e::{
    manifest,
    moored::Moored,
    scripted::{Behaviour, Interference, Script, ScriptedServer, Tool},
};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn echo(name: &str) -> Tool {
    Tool::new(name, Behaviour::Echo)
}

fn conditional() -> Script {
    Script {
        conditional_tools: vec![("elicitation".into(), echo("elicit")), ("sampling".into(), echo("sample"))],
        ..Script::echoing(["echo"])
    }
}

#[tokio::test]
async fn a_client_is_shown_what_targets_list_for_its_capabilities() -> Outcome {
    let target = ScriptedServer::start(conditional()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    for (capabilities, tools) in [
        (json!({}), vec!["a___echo"]),
        (json!({"elicitation": {}}), vec!["a___echo", "a___elicit"]),
        (json!({"elicitation": {}, "sampling": {}}), vec!["a___echo", "a___elicit", "a___sample"]),
        (json!({"sampling": {}, "elicitation": {}}), vec!["a___echo", "a___elicit", "a___sample"]),
    ] {
        let session = client.initialize_as(capabilities.clone()).await?;
        assert_eq!(session.tools().await?, tools, "{capabilities}");
    }
    assert_eq!(target.count("initialize"), 3, "one catalogue session for each set of capabilities");
    let offered: Vec<Value> =
        target.seen("initialize").iter().map(|seen| seen.message["params"]["capabilities"].clone()).collect();
    assert_eq!(offered, [json!({}), json!({"elicitation": {}}), json!({"elicitation": {}, "sampling": {}})]);
    Ok(())
}

#[tokio::test]
async fn however_many_sets_of_capabilities_clients_announce_the_catalogue_sessions_are_bounded() -> Outcome {
    let target = ScriptedServer::start(conditional()).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let client = moored.client()?;
    for n in 0..40 {
        let session = client.initialize_as(json!({"experimental": {"n": n}})).await?;
        assert_eq!(session.tools().await?, ["a___echo"]);
    }
    // Those that made room have been deleted.
    target.until("32 catalogue sessions at most", |target| target.open_sessions().len() <= 32).await?;
    assert_eq!(target.count("initialize"), 41);
    // Where all are in use, further clients share the view without capabilities.
    let mut held = Vec::new();
    for n in 100..128 {
        let session = client.initialize_as(json!({"experimental": {"n": n}})).await?;
        held.push(session.get().await?);
    }
    let shared = client.initialize_as(json!({"elicitation": {}})).await?;
    assert_eq!(shared.tools().await?, ["a___echo"]);
    drop(held);
    Ok(())
}

#[tokio::test]
async fn roots_are_none_in_the_gateways_own_session_where_they_were_announced() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    target.until_streams(1).await?;
    let session = moored.client()?.initialize_as(json!({"roots": {}})).await?;
    session.tools().await?;
    target.until_streams(2).await?;
    assert_eq!(target.push(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#), 2);
    target.until("two answers", |target| target.answers().len() == 2).await?;
    let answers = target.answers();
    let roots = answers.iter().filter(|answer| answer["result"] == json!({"roots": []})).count();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == json!(-32601)).count();
    assert_eq!((roots, refused), (1, 1), "{answers:?}");
    Ok(())
}

fn filtered(url: &str, tools: &str) -> String {
    manifest::gateway("tools")
        + &manifest::target("a", "tools", url).replace("spec: {", &format!("spec: {{tools: {tools}, "))
}

#[tokio::test]
async fn tools_that_a_target_may_not_offer_are_neither_listed_nor_called() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["get_sum", "get_secret", "put_sum"])).await;
    let manifests = filtered(&target.url(), "{allow: ['get_*'], deny: ['*_secret']}");
    for (manifests, prefix) in [
        (manifests.clone(), "a___"),
        (manifests.replace("spec: {auth", "spec: {tools: {naming: Plain}, auth"), ""),
    ] {
        let moored = Moored::serve(manifests).await?;
        let session = moored.client()?.initialize().await?;
        assert_eq!(session.tools().await?, [format!("{prefix}get_sum")]);
        let called = session.call(&format!("{prefix}get_sum"), json!({})).await?;
        assert_eq!(called.tool_text().as_deref(), Some("get_sum: {}"));
        let before = target.count("tools/call");
        for hidden in ["get_secret", "put_sum"] {
            let refused = session.call(&format!("{prefix}{hidden}"), json!({})).await?;
            assert_eq!((refused.status, refused.error_code()), (StatusCode::OK, Some(-32602)), "{hidden}");
        }
        assert_eq!(target.count("tools/call"), before);
    }
    Ok(())
}

#[tokio::test]
async fn a_hidden_tool_is_not_called_by_a_second_spelling_of_a_key_either() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["get_sum", "get_secret"])).await;
    let moored = Moored::serve(filtered(&target.url(), "{deny: ['*_secret']}")).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___get_sum"]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a___get_sum"}}"#;
    for second in [
        r#""a___get_sum","Name":"get_secret"}}"#,
        r#""a___get_sum","\u004eAME":"get_secret"}}"#,
        r#""a___get_sum","name\u0000":"get_secret"}}"#,
        r#""a___get_sum"},"Params":{"name":"get_secret"}}"#,
        r#""a___get_sum"},"param\u017f":{"name":"get_secret"}}"#,
    ] {
        let refused = session.post(call.replace(r#""a___get_sum"}}"#, second)).await?;
        assert_eq!(refused.error_code(), Some(-32600), "{second}: {}", refused.text());
    }
    let ping =
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"get_secret"}}"#;
    assert_eq!(session.post(ping).await?.error_code(), Some(-32600));
    assert_eq!(target.count("tools/call"), 0);
    assert_eq!(session.post(call).await?.tool_text().as_deref(), Some("get_sum: {}"));
    Ok(())
}

fn per_session(url: &str) -> String {
    manifest::target("own", "tools", url)
        .replace("spec: {", "spec: {listing: PerSession, timeouts: {connectSeconds: 1}, ")
}

#[tokio::test]
async fn a_target_that_lists_per_session_shows_each_session_its_own_list() -> Outcome {
    let own = ScriptedServer::start(Script::echoing(["shared"])).await;
    let other = ScriptedServer::start(Script::echoing(["echo"])).await;
    let plain = manifest::gateway("tools").replace("spec: {", "spec: {tools: {naming: Plain}, ");
    let moored =
        Moored::serve(plain + &per_session(&own.url()) + &manifest::target("z", "tools", &other.url()))
            .await?;
    own.until_seen("tools/list", 1).await?;
    own.change(|script| {
        script.session_tools = vec![
            ("scripted-session-000002".into(), echo("first")),
            ("scripted-session-000003".into(), echo("second")),
        ];
    });
    let client = moored.client()?;
    for tool in ["first", "second"] {
        let session = client.initialize().await?;
        assert_eq!(session.tools().await?, ["shared", tool, "echo"]);
        assert_eq!(session.tools().await?.len(), 3);
        assert_eq!(session.call(tool, json!({})).await?.tool_text(), Some(format!("{tool}: {{}}")));
        assert_eq!(session.call("echo", json!({})).await?.tool_text().as_deref(), Some("echo: {}"));
        let unknown = if tool == "first" { "second" } else { "first" };
        assert_eq!(session.call(unknown, json!({})).await?.error_code(), Some(-32602));
    }
    let listed: Vec<_> =
        own.seen("tools/list").into_iter().map(|seen| seen.session.unwrap_or_default()).collect();
    let once = ["scripted-session-000001", "scripted-session-000002", "scripted-session-000003"];
    assert_eq!(listed, once, "kept for the session, and read in the session that calls go to");
    assert_eq!(other.count("tools/list"), 1);
    Ok(())
}

#[tokio::test]
async fn a_target_that_does_not_list_for_a_session_in_time_is_left_out_and_asked_again() -> Outcome {
    let own = ScriptedServer::start(Script::echoing(["late"])).await;
    let other = ScriptedServer::start(Script::echoing(["echo"])).await;
    let targets = per_session(&own.url()) + &manifest::target("z", "tools", &other.url());
    let moored = Moored::serve(manifest::gateway("tools") + &targets).await?;
    own.until_seen("tools/list", 1).await?;
    let session = moored.client()?.initialize().await?;
    own.interfere_once("tools/list", Interference::Hang);
    assert_eq!(session.tools().await?, ["z___echo"]);
    let unlisted = moored.metrics().await?.sum("mooring_target_unlisted_total", &[("target", "own")]);
    assert!((unlisted - 1.0).abs() < 0.1, "{unlisted}");
    assert_eq!(session.tools().await?, ["own___late", "z___echo"]);
    Ok(())
}

#[tokio::test]
async fn a_target_that_a_caller_does_not_see_begins_no_session_for_it() -> Outcome {
    let hidden = ScriptedServer::start(Script::echoing(["hidden"])).await;
    let other = ScriptedServer::start(Script::echoing(["echo"])).await;
    let targets = per_session(&hidden.url()) + &manifest::target("z", "tools", &other.url());
    let ruled = manifest::gateway("tools").replace("spec: {", "spec: {access: [{targets: [z]}], ");
    let moored = Moored::serve(ruled + &targets).await?;
    hidden.until_seen("tools/list", 1).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["z___echo"]);
    assert_eq!(session.call("z___echo", json!({})).await?.tool_text().as_deref(), Some("echo: {}"));
    assert_eq!(session.call("own___hidden", json!({})).await?.error_code(), Some(-32602));
    assert_eq!(hidden.count("initialize"), 1, "the catalogue's alone");
    Ok(())
}
