//! Servers of others, and the conformance server: those on HTTP run on free ports and end when dropped, for those on
//! stdio there are the commands that start them.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Stdio,
};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::{
    EVERYTHING_ENTRY, Environment, Packages, PeerError, install::checkout, install_node, install_packages,
    install_python, run::PATIENCE,
};
use crate::{
    client::Client,
    folder::Folder,
    process::{self, SHORT},
};

/// server-everything.
#[derive(Debug)]
pub struct EverythingServer {
    url: String,
    _child: Child,
}

/// The conformance server of `e2e/conformance`.
#[derive(Debug)]
pub struct FixtureServer {
    url: String,
    _child: Child,
}

/// Servers on stdio, installed, and a folder of files for them to work on.
#[derive(Debug)]
pub struct StdioServers {
    folder: Folder,
    commands: Vec<(&'static str, Vec<String>)>,
}

// === impl EverythingServer ===

impl EverythingServer {
    /// Starts one and returns when it answers.
    pub async fn start() -> Result<Self, PeerError> {
        Self::start_as("streamableHttp", "mcp", StatusCode::OK).await
    }

    /// Starts one that speaks HTTP+SSE, the transport of 2024-11-05.
    pub async fn start_sse() -> Result<Self, PeerError> {
        // That it knows no POST where its event streams are is an answer too.
        Self::start_as("sse", "sse", StatusCode::NOT_FOUND).await
    }

    async fn start_as(speaks: &str, path: &str, status: StatusCode) -> Result<Self, PeerError> {
        let peers = install_node().await?;
        // It takes a port, not a socket: one that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(&peers.node);
        command.arg(peers.npm.join(EVERYTHING_ENTRY)).arg(speaks).env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let server = Self { url: format!("http://127.0.0.1:{port}/{path}"), _child: command.spawn()? };
        let client = Client::with_fresh_connections(&server.url).map_err(|_| PeerError::Silent)?;
        let answers = async || {
            let answer = client.post_initialize("2025-11-25", json!({})).await.ok()?;
            (answer.status == status).then_some(())
        };
        process::poll(PATIENCE, answers).await.ok_or(PeerError::Silent)?;
        Ok(server)
    }

    /// The command that starts one on stdio.
    pub async fn command() -> Result<Vec<String>, PeerError> {
        let peers = install_node().await?;
        Ok(vec![own(&peers.node), own(&peers.npm.join(EVERYTHING_ENTRY)), "stdio".to_owned()])
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        self.url.clone()
    }
}

// === impl FixtureServer ===

impl FixtureServer {
    /// Starts one and returns when it listens.
    pub async fn start() -> Result<Self, PeerError> {
        Self::start_as("streamable-http").await
    }

    /// Starts one that speaks HTTP+SSE, the transport of 2024-11-05.
    pub async fn start_sse() -> Result<Self, PeerError> {
        Self::start_as("sse").await
    }

    async fn start_as(speaks: &str) -> Result<Self, PeerError> {
        let words = Self::words(speaks).await?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or(PeerError::Silent)?).lines();
        let first = timeout(PATIENCE, lines.next_line()).await.map_err(|_| PeerError::Silent)??;
        Ok(Self { url: first.ok_or(PeerError::Silent)?, _child: child })
    }

    /// The command that starts one on stdio.
    pub async fn command() -> Result<Vec<String>, PeerError> {
        Self::words("stdio").await.map(Vec::from)
    }

    /// The command that starts one that speaks so.
    async fn words(speaks: &str) -> Result<[String; 4], PeerError> {
        let python = install_python(Environment::Mcp2).await?.join("bin/python");
        // `-B`: nothing is written into the checkout.
        let script = checkout().join("conformance/server.py");
        Ok([own(&python), "-B".to_owned(), own(&script), speaks.to_owned()])
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        self.url.clone()
    }
}

// === impl StdioServers ===

impl StdioServers {
    /// Installs them, and makes the files they work on: `hello.txt` and the git repository `repository`.
    pub async fn install() -> Result<Self, PeerError> {
        let packages = install_packages(Packages::Servers).await?;
        let python = install_python(Environment::Servers).await?;
        let folder = Folder::temporary("stdio-servers")?;
        std::fs::write(folder.path().join("hello.txt"), "ahoy from a file")?;
        let repository = folder.path().join("repository");
        make_repository(&repository).await?;
        let node = |server: &str, more: &[String]| {
            let entry = format!("node_modules/@modelcontextprotocol/server-{server}/dist/index.js");
            [own(&packages.node), own(&packages.npm.join(entry))].into_iter().chain(more.to_vec()).collect()
        };
        let commands = vec![
            ("memory", node("memory", &[])),
            ("filesystem", node("filesystem", &[own(folder.path())])),
            ("time", vec![own(&python.join("bin/mcp-server-time")), "--local-timezone=UTC".to_owned()]),
            (
                "git",
                vec![own(&python.join("bin/mcp-server-git")), "--repository".to_owned(), own(&repository)],
            ),
        ];
        Ok(Self { folder, commands })
    }

    /// Each as a target of the gateway `tools`, as YAML.
    pub fn manifests(&self) -> String {
        let memory = self.folder.path().join("memory.jsonl");
        let env = json!([{"name": "MEMORY_FILE_PATH", "value": memory}]);
        let target = |(name, command): &(&str, Vec<String>)| {
            let container = json!({"image": "unused", "command": command, "env": env});
            let server = json!({"type": "Container", "container": container});
            format!(
                "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {{name: {name}}}\n\
                 spec: {{gatewayRefs: [{{name: tools}}], server: {server}}}\n"
            )
        };
        self.commands.iter().map(target).collect()
    }

    /// A tool of each, as it is written with the target's name before it, with arguments and with what its result holds.
    pub fn calls(&self) -> Vec<(String, Value, &'static str)> {
        let path = |name: &str| self.folder.path().join(name);
        let ann = json!({"name": "Ann", "entityType": "sailor", "observations": ["has a boat"]});
        [
            ("memory___create_entities", json!({"entities": [ann]}), "has a boat"),
            ("filesystem___read_text_file", json!({"path": path("hello.txt")}), "ahoy from a file"),
            ("time___get_current_time", json!({"timezone": "UTC"}), "\"timezone\": \"UTC\""),
            ("git___git_log", json!({"repo_path": path("repository")}), "Begin the logbook"),
        ]
        .map(|(tool, arguments, result)| (tool.to_owned(), arguments, result))
        .into()
    }
}

/// A path as a word of a command line.
fn own(path: &Path) -> String {
    path.display().to_string()
}

/// A git repository with one commit.
async fn make_repository(folder: &Path) -> Result<(), PeerError> {
    std::fs::create_dir_all(folder)?;
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@boats.test"];
    for arguments in
        [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "-m", "Begin the logbook"]]
    {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(identity).args(arguments);
        // The one of whoever runs the tests may sign commits, or ask.
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        process::output(&mut git, SHORT).await.map_err(PeerError::from)?;
    }
    Ok(())
}
