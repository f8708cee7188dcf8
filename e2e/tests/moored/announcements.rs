//! What `initialize` announces: what the targets announce, as far as it is known within the bound.

use std::time::Duration;

use e2e::{
    manifest,
    moored::Moored,
    scripted::{Interference, Script, ScriptedServer},
};
use serde_json::{Value, json};
use tokio::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn initialized(moored: &Moored) -> Result<Value, Box<dyn std::error::Error>> {
    let answer = moored.client()?.post_initialize("2025-11-25", json!({})).await?;
    Ok(answer.response().get("result").cloned().unwrap_or_default())
}

#[tokio::test]
async fn what_any_target_announces_is_announced_with_their_instructions() -> Outcome {
    let one = Script {
        capabilities: json!({"tools": {}, "logging": {}, "experimental": {"x": {"of": "one"}}}),
        instructions: Some("Ask twice.".into()),
        ..Script::echoing(["echo"])
    };
    let two = Script {
        capabilities: json!({
            "resources": {"subscribe": true}, "completions": {}, "tasks": {"requests": {"tools": {"call": {}}}},
            "experimental": {"x": {"of": "two"}, "y": {}}, "unheardOf": {},
        }),
        instructions: Some("Answer once.".into()),
        ..Script::default()
    };
    let (one, two) = (ScriptedServer::start(one).await, ScriptedServer::start(two).await);
    let moored = Moored::serve(manifest::gateway_with([("one", one.url()), ("two", two.url())])).await?;
    let result = initialized(&moored).await?;
    assert_eq!(
        result["capabilities"],
        json!({
            "tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true},
            "logging": {}, "completions": {}, "tasks": {"requests": {"tools": {"call": {}}}},
            "experimental": {"x": {"of": "one"}, "y": {}},
        })
    );
    assert_eq!(result["instructions"], json!("# one\n\nAsk twice.\n\n# two\n\nAnswer once."));
    assert_eq!(result["serverInfo"]["name"], json!("tools"));
    Ok(())
}

/// Case 034: a target that never answers delays `initialize` by its bound at most, and hides nothing of the others.
#[tokio::test]
async fn of_a_target_that_is_silent_only_lists_are_announced_within_the_bound() -> Outcome {
    let silent = ScriptedServer::start(Script::default()).await;
    silent.interfere("initialize", Interference::Hang);
    let good = Script { capabilities: json!({"tools": {}, "logging": {}}), ..Script::echoing(["echo"]) };
    let good = ScriptedServer::start(good).await;
    let bounded = manifest::target("silent", "tools", &silent.url())
        .replace("spec: {", "spec: {timeouts: {connectSeconds: 1}, ");
    let manifests = manifest::gateway("tools") + &bounded + &manifest::target("good", "tools", &good.url());
    let moored = Moored::serve(manifests).await?;
    let begun = Instant::now();
    let capabilities = initialized(&moored).await?["capabilities"].clone();
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    let changes = json!({"listChanged": true});
    assert_eq!(
        capabilities,
        json!({"tools": changes, "prompts": changes, "resources": changes, "logging": {}})
    );
    Ok(())
}

/// Case 043: the probe of a modern client waits for no target and begins nothing.
#[tokio::test]
async fn a_modern_probe_is_answered_at_once_though_no_target_is() -> Outcome {
    let silent = ScriptedServer::start(Script::default()).await;
    silent.interfere("initialize", Interference::Hang);
    let moored = Moored::serve(manifest::gateway_with([("silent", silent.url())])).await?;
    silent.until_seen("initialize", 1).await?;
    let begun = Instant::now();
    let probe = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let client = moored.client()?.with_header("mcp-protocol-version", "2026-07-28")?;
    let client = client.with_header("mcp-method", "server/discover")?;
    let answer = client.post(probe.to_string()).await?;
    assert!(answer.status.is_client_error(), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(silent.count("initialize"), 1, "the gateway's own");
    Ok(())
}
