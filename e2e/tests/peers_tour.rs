//! Each client of others does all that it can in one session through `moored serve`: every list, prompts, resources,
//! completion, logging, progress, cancellation, and answers to what servers ask. Behind the gateway are
//! server-everything and the conformance server, which alone can tell whether a cancelled call ended: over Streamable
//! HTTP, and, with a client of each language, on stdio and over the old HTTP+SSE, where nothing may be any different.

use std::time::Duration;

use e2e::{
    manifest,
    moored::Moored,
    peers::{EverythingServer, FixtureServer, Inspector, Peer, Prefixes, Seen},
    process,
};
use serde_json::{Map, Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const DYNAMIC: &str = "demo://resource/dynamic/text/1";

/// How long two servers may take to start.
const PATIENCE: Duration = Duration::from_mins(3);

struct Stage {
    moored: Moored,
    _servers: Option<(EverythingServer, FixtureServer)>,
}

impl Stage {
    async fn set() -> Result<Self, Box<dyn std::error::Error>> {
        Self::before(EverythingServer::start().await?, FixtureServer::start().await?, "StreamableHTTP").await
    }

    /// The same with servers of the old transport, which the gateway is told of by this word.
    async fn set_sse(protocol: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Self::before(EverythingServer::start_sse().await?, FixtureServer::start_sse().await?, protocol).await
    }

    async fn before(
        everything: EverythingServer,
        fixture: FixtureServer,
        protocol: &str,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let targets = [("everything", everything.url()), ("fixture", fixture.url())];
        let manifests = manifest::gateway_with(targets);
        let manifests = manifests.replace("server: {", &format!("protocol: {protocol}, server: {{"));
        Ok(Self { moored: Moored::serve(manifests).await?, _servers: Some((everything, fixture)) })
    }

    /// The same with servers that the gateway starts.
    async fn set_stdio() -> Result<Self, Box<dyn std::error::Error>> {
        let everything = manifest::command("everything", "tools", &EverythingServer::command().await?, "");
        let fixture = manifest::command("fixture", "tools", &FixtureServer::command().await?, "");
        let manifests = [manifest::gateway("tools"), everything, fixture].concat();
        // A server in Python needs more than five seconds to start where the machine is busy.
        let manifests = manifests.replace("server: {", "timeouts: {connectSeconds: 60}, server: {");
        let moored = Moored::serve(manifests).await?;
        // Lists do not wait for servers that are slow to start.
        let session = moored.client()?.initialize().await?;
        let slowest = "fixture___test_simple_text".to_owned();
        let listed = async || session.tools().await.ok()?.contains(&slowest).then_some(());
        process::poll(PATIENCE, listed).await.ok_or("the servers' tools are not listed")?;
        Ok(Self { moored, _servers: None })
    }
}

async fn tour(peer: Peer) -> Result<Seen, Box<dyn std::error::Error>> {
    tour_of(&Stage::set().await?, peer).await
}

async fn tour_of(stage: &Stage, peer: Peer) -> Result<Seen, Box<dyn std::error::Error>> {
    let mut calls = Map::new();
    calls.insert("everything___echo".to_owned(), json!({"message": "ahoy"}));
    calls.insert("fixture___test_simple_text".to_owned(), json!({}));
    let prefixes = Prefixes {
        everything: Some("everything___".to_owned()),
        fixture: Some("fixture___".to_owned()),
        calls,
    };
    Ok(peer.tour(&stage.moored.url(), &prefixes).await?)
}

fn assert_has(list: &[String], names: &[&str]) {
    for name in names {
        assert!(list.iter().any(|listed| listed == name), "{name} is not in {list:?}");
    }
}

fn assert_lists(seen: &Seen) {
    // The last two are offered to clients alone that can elicit and sample.
    let tools = [
        "everything___echo",
        "fixture___test_simple_text",
        "everything___trigger-elicitation-request",
        "everything___trigger-sampling-request",
    ];
    assert_has(&seen.tools, &tools);
    assert_has(&seen.prompts, &["everything___args-prompt", "fixture___test_simple_prompt"]);
    let document = "demo://resource/static/document/architecture.md";
    assert_has(&seen.resources, &[document, "test://static-text"]);
    assert_has(&seen.templates, &["demo://resource/dynamic/text/{resourceId}", "test://template/{id}/data"]);
}

/// What a client has seen that did all of it.
fn assert_complete(seen: &Seen) {
    assert!(seen.protocol.as_deref().is_none_or(|version| version == "2025-11-25"), "{seen:?}");
    assert_lists(seen);
    let called = |tool: &str| seen.calls.get(tool).map(String::as_str);
    assert_eq!(called("everything___echo"), Some("Echo: ahoy"));
    let text = "This is a simple text response for testing.";
    assert_eq!(called("fixture___test_simple_text"), Some(text));
    assert_eq!(seen.prompt, "What's weather in Kiel?");
    assert!(seen.resource.starts_with("Resource 1: "), "{seen:?}");
    assert_eq!(seen.completion, ["Sales", "Support"]);
    // Two targets ask with equal ids; each gets its own answer.
    assert!(seen.elicitation.contains("User provided the requested information"), "{seen:?}");
    assert!(seen.sampling.contains("It was a model."), "{seen:?}");
    assert_eq!(seen.asked, ["elicitation", "sampling"]);
    assert!(seen.roots.contains("file:///srv/boats"), "{seen:?}");
    assert_eq!(seen.progress, [(1.0, 4.0), (2.0, 4.0), (3.0, 4.0), (4.0, 4.0)]);
    assert!(seen.long.contains("Long running operation completed"), "{seen:?}");
    assert_eq!(seen.updated, DYNAMIC);
    assert_eq!(seen.logged, [3, 0]);
    assert_eq!(seen.reconnection, "It is here again.");
    assert!(seen.cancelled && seen.noticed, "{seen:?}");
    assert_eq!(seen.again, "Echo: ahoy");
}

/// What a client has seen too that keeps what is logged: the subscription, and not its end, since that is no error.
fn assert_has_logs(seen: &Seen) {
    let subscribed = format!("Received Subscribe Resource request for URI: {DYNAMIC}");
    assert!(seen.told.iter().all(|told| told.starts_with(&subscribed)) && seen.told.len() == 1, "{seen:?}");
}

/// What a client has seen too that opens pages: on its session's own stream it is told that one was read.
fn assert_has_pages(seen: &Seen) {
    assert_eq!((&*seen.opened, &*seen.read), ("action=accept", "consent"));
}

#[tokio::test]
async fn the_python_client_2_in_its_automatic_mode_does_all_of_it() -> Outcome {
    let seen = tour(Peer::Python2("auto")).await?;
    assert_complete(&seen);
    assert_has_pages(&seen);
    Ok(())
}

#[tokio::test]
async fn the_python_client_2_in_its_legacy_mode_does_all_of_it() -> Outcome {
    let seen = tour(Peer::Python2("legacy")).await?;
    assert_complete(&seen);
    assert_has_pages(&seen);
    Ok(())
}

#[tokio::test]
async fn the_python_client_1_does_all_of_it() -> Outcome {
    let seen = tour(Peer::Python1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    assert_has_pages(&seen);
    Ok(())
}

#[tokio::test]
async fn the_typescript_sdk_1_does_all_of_it() -> Outcome {
    let seen = tour(Peer::TypeScript1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    Ok(())
}

#[tokio::test]
async fn the_typescript_client_2_does_all_of_it() -> Outcome {
    assert_complete(&tour(Peer::TypeScript2("legacy")).await?);
    Ok(())
}

#[tokio::test]
async fn the_typescript_client_2_in_its_automatic_mode_does_all_of_it() -> Outcome {
    assert_complete(&tour(Peer::TypeScript2("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_rust_client_in_its_automatic_mode_does_all_of_it() -> Outcome {
    assert_complete(&tour(Peer::Rust("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_rust_client_does_all_of_it() -> Outcome {
    assert_complete(&tour(Peer::Rust("legacy")).await?);
    Ok(())
}

#[tokio::test]
async fn fastmcp_does_all_of_it() -> Outcome {
    assert_complete(&tour(Peer::Fastmcp("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_typescript_sdk_1_does_all_of_it_with_servers_on_stdio() -> Outcome {
    let seen = tour_of(&Stage::set_stdio().await?, Peer::TypeScript1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    Ok(())
}

#[tokio::test]
async fn the_python_client_1_does_all_of_it_with_servers_on_stdio() -> Outcome {
    let seen = tour_of(&Stage::set_stdio().await?, Peer::Python1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    assert_has_pages(&seen);
    Ok(())
}

#[tokio::test]
async fn the_typescript_sdk_1_does_all_of_it_with_servers_of_the_old_transport() -> Outcome {
    let seen = tour_of(&Stage::set_sse("SSE").await?, Peer::TypeScript1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    Ok(())
}

#[tokio::test]
async fn the_python_client_1_does_all_of_it_with_servers_that_turn_out_to_speak_the_old_transport() -> Outcome
{
    let seen = tour_of(&Stage::set_sse("Auto").await?, Peer::Python1).await?;
    assert_complete(&seen);
    assert_has_logs(&seen);
    assert_has_pages(&seen);
    Ok(())
}

/// What the items of a list are called.
fn names<'a>(result: &'a Value, list: &str, name: &str) -> Vec<&'a str> {
    let items = result[list].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item[name].as_str()).collect()
}

/// The command line of the inspector has no more methods than these. It cannot complete, subscribe, cancel or show
/// progress, and announces neither sampling nor elicitation nor roots, so that it is offered no tool that needs them.
#[tokio::test]
async fn the_inspector_does_what_its_command_line_can() -> Outcome {
    let stage = Stage::set().await?;
    let inspector = Inspector { url: stage.moored.url() };
    let tools = inspector.ask("tools/list", &[]).await?;
    let tools = names(&tools, "tools", "name");
    assert!(
        tools.contains(&"everything___echo") && tools.contains(&"fixture___test_simple_text"),
        "{tools:?}"
    );
    assert!(!tools.contains(&"everything___trigger-sampling-request"), "{tools:?}");
    let echo = ["--tool-name", "everything___echo", "--tool-arg", "message=ahoy"];
    let result = inspector.ask("tools/call", &echo).await?;
    assert_eq!(result["content"][0]["text"], "Echo: ahoy");
    let prompts = inspector.ask("prompts/list", &[]).await?;
    let prompts = names(&prompts, "prompts", "name");
    assert!(prompts.contains(&"everything___args-prompt"), "{prompts:?}");
    let city = ["--prompt-name", "everything___args-prompt", "--prompt-args", "city=Kiel"];
    let result = inspector.ask("prompts/get", &city).await?;
    assert_eq!(result["messages"][0]["content"]["text"], "What's weather in Kiel?");
    let resources = inspector.ask("resources/list", &[]).await?;
    assert!(names(&resources, "resources", "uri").contains(&"test://static-text"), "{resources}");
    let templates = inspector.ask("resources/templates/list", &[]).await?;
    let templates = names(&templates, "resourceTemplates", "uriTemplate");
    assert!(templates.contains(&"test://template/{id}/data"), "{templates:?}");
    let result = inspector.ask("resources/read", &["--uri", DYNAMIC]).await?;
    assert_eq!(result["contents"][0]["uri"], DYNAMIC);
    assert_eq!(inspector.ask("logging/setLevel", &["--log-level", "info"]).await?, json!({}));
    Ok(())
}
