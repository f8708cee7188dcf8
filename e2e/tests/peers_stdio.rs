//! Each client of others reaches five servers of others through one `moored serve`: server-everything over Streamable
//! HTTP, and memory, filesystem, time and git as local processes on stdio.

use std::time::Duration;

use e2e::{
    manifest,
    moored::Moored,
    peers::{Call, EverythingServer, Inspector, Peer, Prefixes, Seen, StdioServers, time, told},
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
        Ok(Self { moored, servers, _everything: everything })
    }

    /// Waits until a list has a tool of each server. Lists do not wait for servers that are slow to start.
    async fn until_listed(&self, mut list: impl AsyncFnMut() -> Option<Vec<String>>) -> Outcome {
        let calls = self.calls("nobody");
        let listed = async || {
            let tools = list().await?;
            calls.iter().all(|call| tools.contains(&call.tool)).then_some(())
        };
        Ok(process::poll(PATIENCE, listed).await.ok_or("some servers' tools are not listed")?)
    }

    /// A call of each server, by somebody.
    fn calls(&self, who: &str) -> Vec<Call> {
        let (tool, arguments) = ("everything___echo".to_owned(), json!({"message": "ahoy"}));
        let echo = Call { tool, arguments, answer: "Echo: ahoy".into() };
        [echo].into_iter().chain(self.servers.calls(who)).collect()
    }
}

/// Calls a tool of each server in one session, and one of them in a second session; each client of these in turn.
async fn assert_reach_all(peers: &[Peer]) -> Outcome {
    let stage = Stage::set().await?;
    for peer in peers {
        let expected = stage.calls(&format!("{peer:?}"));
        let given: Map<String, Value> =
            expected.iter().map(|call| (call.tool.clone(), call.arguments.clone())).collect();
        let prefixes = Prefixes { calls: given, ..Prefixes::default() };
        let Seen { calls, again, .. } = peer.tour(&stage.moored.url(), &prefixes).await?;
        for call in expected {
            let text = calls.get(&call.tool).map(String::as_str).unwrap_or_default();
            assert_eq!(told(text), call.answer, "{peer:?}: {}", call.tool);
        }
        assert_eq!(again, "Echo: ahoy");
    }
    Ok(())
}

#[tokio::test]
async fn the_python_client_2_in_both_of_its_modes_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::Python2("auto"), Peer::Python2("legacy")]).await
}

#[tokio::test]
async fn the_python_client_1_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::Python1]).await
}

#[tokio::test]
async fn the_typescript_sdk_1_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::TypeScript1]).await
}

#[tokio::test]
async fn the_typescript_client_2_in_both_of_its_modes_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::TypeScript2("auto"), Peer::TypeScript2("legacy")]).await
}

#[tokio::test]
async fn the_rust_client_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::Rust("auto")]).await
}

#[tokio::test]
async fn fastmcp_reaches_five_servers() -> Outcome {
    assert_reach_all(&[Peer::Fastmcp("auto")]).await
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
    for Call { tool, arguments, answer } in stage.calls("the inspector") {
        let arguments = arguments.to_string();
        let result =
            inspector.ask("tools/call", &["--tool-name", &tool, "--tool-args-json", &arguments]).await?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(told(text), answer, "{tool}");
    }
    Ok(())
}

/// A gateway before one or two of the servers alone.
async fn serve(servers: &StdioServers, names: &[&str]) -> Result<Moored, Box<dyn std::error::Error>> {
    let targets = names.iter().map(|name| servers.manifest(name, ""));
    let manifests: String = [manifest::gateway("tools")].into_iter().chain(targets).collect();
    Ok(Moored::serve(manifests.replace("server: {", "timeouts: {connectSeconds: 60}, server: {")).await?)
}

/// What a result of a tool that failed looks like: the client was answered, and no error of the protocol came.
fn failed(text: &str) -> Value {
    json!({"text": text, "isError": true})
}

fn worked(text: &str) -> Value {
    json!({"text": text, "isError": false})
}

#[tokio::test]
async fn two_sessions_of_a_shared_memory_remember_together_and_each_hears_of_the_other() -> Outcome {
    let servers = StdioServers::install().await?;
    let memory = servers.manifest("memory", ", isolation: Shared");
    let moored = Moored::serve(manifest::gateway("tools") + &memory).await?;
    let entities = json!([{"name": "Ann", "entityType": "sailor", "observations": ["has a boat"]}]);
    let what = json!({"memory": "memory___", "entities": entities});
    let seen: Value = Peer::TypeScript1.does("meet", &moored.url(), &what).await?;
    assert_eq!(
        seen["updated"],
        json!(["memory://knowledge-graph"]),
        "the server told one process's subscriber"
    );
    for read in ["graph", "resource", "afterwards"] {
        let graph = told(seen[read].as_str().unwrap_or_default());
        assert_eq!(graph, json!({"entities": entities, "relations": []}), "{read}");
    }
    Ok(())
}

#[tokio::test]
async fn a_path_outside_the_allowed_folder_is_an_error_of_the_tool_and_not_of_the_gateway() -> Outcome {
    let servers = StdioServers::install().await?;
    let moored = serve(&servers, &["filesystem"]).await?;
    let (inside, folder) = (servers.path("hello.txt"), servers.path(""));
    let folder = folder.display().to_string();
    let outside = format!("{}-elsewhere/hello.txt", folder.trim_end_matches('/'));
    let read = |path: &str| json!({"tool": "filesystem___read_text_file", "arguments": {"path": path}});
    let calls =
        json!([read(&outside), read(&format!("{folder}../hello.txt")), read(&inside.display().to_string())]);
    let seen: Value = Peer::TypeScript1.does("work", &moored.url(), &json!({"calls": calls})).await?;
    for refused in [&seen[0], &seen[1]] {
        let text = refused["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("Access denied - path outside allowed directories: "), "{seen}");
        assert_eq!(*refused, failed(text));
    }
    assert_eq!(seen[2], worked("ahoy from a file"));
    Ok(())
}

#[tokio::test]
async fn roots_that_a_client_changes_move_what_a_server_on_stdio_allows() -> Outcome {
    let servers = StdioServers::install().await?;
    let moored = serve(&servers, &["filesystem"]).await?;
    let (harbour, outside) = (servers.path("harbour"), servers.path("hello.txt"));
    let read =
        |path: &std::path::Path| json!({"tool": "filesystem___read_text_file", "arguments": {"path": path}});
    let allowed = json!({"tool": "filesystem___list_allowed_directories", "arguments": {},
        "until": format!("Allowed directories:\n{}", harbour.display())});
    let calls = json!([read(&outside), {}, allowed, read(&harbour.join("boat.txt")), read(&outside)]);
    let what = json!({"roots": [format!("file://{}", harbour.display())], "calls": calls});
    let seen: Value = Peer::TypeScript1.does("work", &moored.url(), &what).await?;
    assert_eq!(seen[0], worked("ahoy from a file"));
    assert_eq!(seen[2], worked("a boat"));
    let (outside, harbour) = (outside.display(), harbour.display());
    let denied = format!("Access denied - path outside allowed directories: {outside} not in {harbour}");
    assert_eq!(seen[3], failed(&denied));
    Ok(())
}

#[tokio::test]
async fn roots_of_the_beginning_are_what_a_server_on_stdio_allows() -> Outcome {
    let servers = StdioServers::install().await?;
    let moored = serve(&servers, &["filesystem"]).await?;
    let harbour = servers.path("harbour").display().to_string();
    let allowed = json!({"tool": "filesystem___list_allowed_directories", "arguments": {},
        "until": format!("Allowed directories:\n{harbour}")});
    let what = json!({"roots": [format!("file://{harbour}")], "calls": [allowed]});
    let seen: Value = Peer::TypeScript1.does("work", &moored.url(), &what).await?;
    assert_eq!(seen[0]["isError"], false);
    Ok(())
}

#[tokio::test]
async fn a_time_is_converted_and_one_that_is_none_is_an_error_of_the_tool() -> Outcome {
    let servers = StdioServers::install().await?;
    let moored = serve(&servers, &["time"]).await?;
    let convert = |from: &str, hour: &str, to: &str| {
        let arguments = json!({"source_timezone": from, "time": hour, "target_timezone": to});
        json!({"tool": "time___convert_time", "arguments": arguments})
    };
    let calls = json!([
        convert("Asia/Kathmandu", "09:30", "UTC"),
        convert("UTC", "9.30", "Asia/Tokyo"),
        convert("UTC", "09:30", "Baltic/Kiel"),
        {"tool": "time___stop_time", "arguments": {}},
    ]);
    let seen: Value = Peer::TypeScript1.does("work", &moored.url(), &json!({"calls": calls})).await?;
    let converted = json!({
        "source": time("Asia/Kathmandu", "09:30:00+05:45"),
        "target": time("UTC", "03:45:00+00:00"),
        "time_difference": "-5.75h",
    });
    assert_eq!(told(seen[0]["text"].as_str().unwrap_or_default()), converted);
    let why = "Error executing tool convert_time: ";
    assert_eq!(seen[1], failed(&format!("{why}Invalid time format. Expected HH:MM [24-hour format]")));
    let unknown = "Invalid timezone: 'No time zone found with key Baltic/Kiel'";
    assert_eq!(seen[2], failed(&format!("{why}{unknown}")));
    assert_eq!(seen[3]["code"], -32602);
    Ok(())
}

#[tokio::test]
async fn a_file_of_one_server_is_committed_by_another_and_shows_in_its_log() -> Outcome {
    let servers = StdioServers::install().await?;
    let moored = serve(&servers, &["filesystem", "git"]).await?;
    let (repository, file) = (servers.path("repository"), servers.path("repository/log.txt"));
    let git = |tool: &str, more: Value| {
        let mut arguments = json!({"repo_path": repository});
        arguments
            .as_object_mut()
            .into_iter()
            .for_each(|all| all.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"tool": format!("git___git_{tool}"), "arguments": arguments})
    };
    let write = json!({"path": file, "content": "We left at dawn."});
    let calls = json!([
        {"tool": "filesystem___write_file", "arguments": write},
        git("commit", json!({"message": "Too early"})),
        git("add", json!({"files": ["log.txt"]})),
        git("commit", json!({"message": "Leave"})),
        git("log", json!({})),
        git("log", json!({"repo_path": servers.path("harbour")})),
    ]);
    let seen: Value = Peer::TypeScript1.does("work", &moored.url(), &json!({"calls": calls})).await?;
    assert_eq!(seen[0], worked(&format!("Successfully wrote to {}", file.display())));
    assert_eq!(seen[1]["isError"], true, "nothing was staged: {seen}");
    assert_eq!(seen[2], worked("Files staged successfully"));
    assert_eq!(seen[3]["isError"], false, "{seen}");
    let (first, second) =
        (servers.git(&["rev-parse", "HEAD~1"]).await?, servers.git(&["rev-parse", "HEAD"]).await?);
    assert_eq!(seen[3], worked(&format!("Changes committed successfully with hash {second}")));
    let log = [servers.logged(&second, "Leave"), servers.logged(&first, "Begin the logbook\n")].join("\n");
    assert_eq!(seen[4], worked(&format!("Commit history:\n{log}")));
    assert_eq!(servers.git(&["show", "HEAD:log.txt"]).await?, "We left at dawn.");
    assert_eq!(seen[5]["isError"], true, "a repository that is not the server's: {seen}");
    Ok(())
}
