//! Each client of others reaches five servers of others through one `moored serve`: server-everything over Streamable
//! HTTP, and memory, filesystem, time and git as local processes on stdio.

use std::time::Duration;

use e2e::{
    manifest,
    moored::Moored,
    peers::{EverythingServer, Inspector, Peer, Prefixes, Seen, StdioServers},
    process,
};
use serde_json::{Map, Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long five servers may take to start, all of them at once.
const PATIENCE: Duration = Duration::from_mins(1);

struct Stage {
    moored: Moored,
    servers: StdioServers,
    _everything: EverythingServer,
}

impl Stage {
    async fn set() -> Result<Self, Box<dyn std::error::Error>> {
        let (everything, servers) = (EverythingServer::start().await?, StdioServers::install().await?);
        let manifests = manifest::gateway_with([("everything", everything.url())]) + &servers.manifests();
        // A server in Python needs more than five seconds to start where the machine is busy.
        let manifests = manifests.replace("server: {", "timeouts: {connectSeconds: 60}, server: {");
        let moored = Moored::serve(manifests).await?;
        let stage = Self { moored, servers, _everything: everything };
        let session = stage.moored.client()?.initialize().await?;
        stage.until_listed(async || session.tools().await.ok()).await?;
        Ok(stage)
    }

    /// Waits until a list has a tool of each server. Lists do not wait for servers that are slow to start.
    async fn until_listed(&self, mut list: impl AsyncFnMut() -> Option<Vec<String>>) -> Outcome {
        let listed = async || {
            let tools = list().await?;
            self.calls().iter().all(|(tool, _, _)| tools.contains(tool)).then_some(())
        };
        Ok(process::poll(PATIENCE, listed).await.ok_or("some servers' tools are not listed")?)
    }

    /// A tool of each server, with arguments and with what its result holds.
    fn calls(&self) -> Vec<(String, Value, &'static str)> {
        let echo = ("everything___echo".to_owned(), json!({"message": "ahoy"}), "Echo: ahoy");
        [echo].into_iter().chain(self.servers.calls()).collect()
    }
}

/// Calls a tool of each server in one session, and one of them in a second session.
async fn assert_reaches_all(peer: Peer) -> Outcome {
    let stage = Stage::set().await?;
    let given: Map<String, Value> =
        stage.calls().into_iter().map(|(tool, arguments, _)| (tool, arguments)).collect();
    let prefixes = Prefixes { calls: given, ..Prefixes::default() };
    let Seen { calls, again, .. } = peer.tour(&stage.moored.url(), &prefixes).await?;
    for (tool, _, result) in stage.calls() {
        let text = calls.get(&tool).map(String::as_str).unwrap_or_default();
        assert!(text.contains(result), "{tool}: {result:?} is not in {text:?}");
    }
    assert_eq!(again, "Echo: ahoy");
    Ok(())
}

#[tokio::test]
async fn the_python_client_2_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::Python2("auto")).await
}

#[tokio::test]
async fn the_python_client_1_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::Python1).await
}

#[tokio::test]
async fn the_typescript_sdk_1_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::TypeScript1).await
}

#[tokio::test]
async fn the_typescript_client_2_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::TypeScript2("auto")).await
}

#[tokio::test]
async fn the_rust_client_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::Rust("auto")).await
}

#[tokio::test]
async fn fastmcp_reaches_five_servers() -> Outcome {
    assert_reaches_all(Peer::Fastmcp("auto")).await
}

#[tokio::test]
async fn the_inspector_reaches_five_servers() -> Outcome {
    let stage = Stage::set().await?;
    let inspector = Inspector { url: stage.moored.url() };
    // It calls what it has listed itself, and nothing else.
    let list = async || {
        let result = inspector.ask("tools/list", &[]).await.ok()?;
        let tools = result.get("tools")?.as_array()?;
        Some(tools.iter().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect())
    };
    stage.until_listed(list).await?;
    for (tool, arguments, result) in stage.calls() {
        let arguments = arguments.to_string();
        let answer =
            inspector.ask("tools/call", &["--tool-name", &tool, "--tool-args-json", &arguments]).await?;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(result), "{tool}: {result:?} is not in {text:?}");
    }
    Ok(())
}
