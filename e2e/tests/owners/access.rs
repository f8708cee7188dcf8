//! Access rules: what none allows is hidden and refused, exactly as if it did not exist.

use std::time::Duration;

use e2e::asking::hears_nothing;

use super::*;

/// How long a stream is watched for what must not come.
const A_WHILE: Duration = Duration::from_millis(500);

// Case 044: what headers say has no authority.
#[tokio::test]
async fn a_caller_sees_and_calls_what_a_rule_allows_and_the_rest_does_not_exist() -> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let mut provider = IdentityProvider::start().await?;
    let rules = ", access: [{subjects: [alice]}, \
                 {claims: [{claim: groups, values: [dev]}], targets: [a], tools: ['ech?', 'count*']}]";
    let manifest =
        gateway(&provider, "", rules) + &target("a", "tools", &a.url()) + &target("b", "tools", &b.url());
    let moored = Moored::serve(manifest).await?;
    let alice = bearing(&moored, &provider.token(of("alice")).await?)?.initialize().await?;
    let everything = alice.tools().await?;
    assert!(everything.iter().any(|tool| tool == "b___echo"), "{everything:?}");

    let mut claims = of("dora");
    claims["groups"] = json!(["dev"]);
    let dev = bearing(&moored, &provider.token(claims).await?)?.initialize().await?;
    let mut seen = dev.tools().await?;
    seen.sort_unstable();
    assert_eq!(seen, ["a___counter", "a___echo"]);
    assert_eq!(dev.call("a___echo", json!({})).await?.error_code(), None);
    let refused = async |session: &Session, tool: &str| -> Result<Value, Error> {
        let mut response = session.call(tool, json!({})).await?.response();
        let message = response.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        response["error"]["message"] = json!(message.replace(tool, "X"));
        response["id"] = json!(0);
        Ok(response)
    };
    let unknown = refused(&dev, "a___no_such_tool").await?;
    assert_eq!(unknown.pointer("/error/code"), Some(&json!(-32602)));
    for hidden in ["b___echo", "b___counter"] {
        assert_eq!(refused(&dev, hidden).await?, refused(&dev, "c___echo").await?, "{hidden}");
    }
    let header =
        dev.request(http::Method::POST).header("mcp-name", "a___echo").header("mcp-method", "tools/list");
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "b___echo"}});
    let answer = moored.client()?.send(header.body(body.to_string().into())?).await?;
    assert_eq!(answer.error_code(), Some(-32602));

    let nobody = bearing(&moored, &provider.token(of("zoe")).await?)?.initialize().await?;
    assert!(nobody.tools().await?.is_empty());
    assert_eq!(nobody.call("a___echo", json!({})).await?.error_code(), Some(-32602));
    assert_eq!(b.count("tools/call"), 0, "nothing that is refused reaches a target");
    Ok(())
}

// Case 032: not those that may not see the target.
#[tokio::test]
async fn a_change_of_tools_is_told_to_those_alone_who_see_it() -> Outcome {
    let (a, b) = (
        ScriptedServer::start(Script::echoing(["x"])).await,
        ScriptedServer::start(Script::echoing(["x"])).await,
    );
    let mut provider = IdentityProvider::start().await?;
    let rules = ", access: [{subjects: [alice]}, {subjects: [dora], targets: [a]}]";
    let manifest =
        gateway(&provider, "", rules) + &target("a", "tools", &a.url()) + &target("b", "tools", &b.url());
    let moored = Moored::serve(manifest).await?;
    let alice = bearing(&moored, &provider.token(of("alice")).await?)?.initialize().await?;
    let dora = bearing(&moored, &provider.token(of("dora")).await?)?.initialize().await?;
    assert_eq!((alice.tools().await?.len(), dora.tools().await?.len()), (2, 1));
    let (mut hers, mut doras) = (alice.get().await?, dora.get().await?);
    b.until_streams(1).await?;
    b.set_tools(Script::echoing(["y"]).tools);
    assert!(hers.next_message().await?.is_some());
    hears_nothing(&mut doras, A_WHILE).await?;
    a.until_streams(1).await?;
    a.set_tools(Script::echoing(["y"]).tools);
    assert!(hers.next_message().await?.is_some() && doras.next_message().await?.is_some());
    assert_eq!(dora.tools().await?, ["a___y"]);
    Ok(())
}

#[tokio::test]
async fn what_a_newer_token_lets_a_caller_see_stays_open_though_a_stream_was_opened_with_an_older_one()
-> Outcome {
    let (a, b) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let mut provider = IdentityProvider::start().await?;
    let rules = ", access: [{subjects: [alice], targets: [a]}, \
                 {claims: [{claim: groups, values: [dev]}], targets: [b]}]";
    let manifest =
        gateway(&provider, "", rules) + &target("a", "tools", &a.url()) + &target("b", "tools", &b.url());
    let moored = Moored::serve(manifest).await?;
    let older = bearing(&moored, &provider.token(of("alice")).await?)?.initialize().await?;
    assert!(!older.tools().await?.is_empty());
    let mut stream = older.get().await?;
    let mut claims = of("alice");
    claims["groups"] = json!(["dev"]);
    let newer = older.through(&bearing(&moored, &provider.token(claims).await?)?);
    assert_eq!(newer.call("b___counter", json!({})).await?.tool_text().as_deref(), Some("1"));
    // The stream looks at what its caller sees.
    a.until_streams(1).await?;
    a.set_tools(Script::echoing(["y"]).tools);
    assert!(stream.next_message().await?.is_some());
    assert_eq!(newer.call("b___counter", json!({})).await?.tool_text().as_deref(), Some("2"));
    Ok(())
}
