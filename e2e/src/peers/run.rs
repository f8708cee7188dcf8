//! Runs a client of others against a URL and reads what it says; runs server-everything on a free port.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
    time::Duration,
};

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{EVERYTHING_ENTRY, InstallError, clients, install_node, install_python, install_rust};
use crate::{
    client::Client,
    process::{self, ProcessError},
};

/// How long a client may take for a whole session.
const PATIENCE: Duration = Duration::from_mins(1);

/// A client of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The Python SDK, 2.x, in a mode of its own: `auto` or `legacy`.
    Python2(&'static str),
    /// The Python SDK, 1.x.
    Python1,
    /// The TypeScript SDK, 1.x.
    TypeScript1,
    /// The TypeScript client, 2.x, in a mode of its own: `auto` or `legacy`.
    TypeScript2(&'static str),
    /// The Rust SDK, in a mode of its own: `auto` or `legacy`.
    Rust(&'static str),
}

/// What a client found in its session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// The protocol version it settled on, where it tells.
    pub protocol: Option<String>,
    /// The names of the tools it listed.
    pub tools: Vec<String>,
    /// The text of the one call's result.
    pub text: String,
}

/// Why a client said nothing.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It is not there.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// It failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It said something else.
    #[error("{0:?} is not what a client says")]
    Unreadable(String),
    /// A server could not be started.
    #[error("server-everything could not be started")]
    Io(#[from] io::Error),
    /// A server did not answer.
    #[error("server-everything did not answer within {PATIENCE:?}")]
    Silent,
}

/// server-everything over Streamable HTTP on a free port; it ends when dropped.
#[derive(Debug)]
pub struct EverythingServer {
    port: u16,
    _child: Child,
}

// === impl Peer ===

impl Peer {
    /// Lists the tools at a URL and calls one of them.
    pub async fn list_and_call(self, url: &str, tool: &str, arguments: &Value) -> Result<Said, PeerError> {
        let mut command = self.command().await?;
        command.args([url, tool, &arguments.to_string()]);
        let said = process::output(&mut command, PATIENCE).await?;
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|_| PeerError::Unreadable(said.clone()))
    }

    async fn command(self) -> Result<Command, PeerError> {
        Ok(match self {
            Self::Python1 => python(1, "").await?,
            Self::Python2(mode) => python(2, mode).await?,
            Self::TypeScript1 => node("typescript-sdk-1.mjs", "").await?,
            Self::TypeScript2(mode) => node("typescript-client-2.mjs", mode).await?,
            Self::Rust(mode) => {
                let mut command = Command::new(install_rust().await?);
                command.env("MODE", mode);
                command
            }
        })
    }
}

async fn python(major: u8, mode: &str) -> Result<Command, PeerError> {
    let mut command = Command::new(install_python(major).await?);
    command.arg(clients().join(format!("python-mcp-{major}.py"))).env("MODE", mode);
    Ok(command)
}

async fn node(script: &str, mode: &str) -> Result<Command, PeerError> {
    let peers = install_node().await?;
    // Node looks for packages beside the script, not where it is started.
    let copy = peers.npm.join(script);
    std::fs::copy(clients().join(script), &copy)?;
    let mut command = Command::new(&peers.node);
    command.arg(copy).env("MODE", mode);
    Ok(command)
}

// === impl EverythingServer ===

impl EverythingServer {
    /// Starts one and returns when it answers.
    pub async fn start() -> Result<Self, PeerError> {
        let peers = install_node().await?;
        // It takes a port, not a socket: one that was free a moment ago.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(&peers.node);
        command.arg(peers.npm.join(EVERYTHING_ENTRY)).arg("streamableHttp").env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let server = Self { port, _child: command.spawn()? };
        let client = Client::with_fresh_connections(&server.url()).map_err(|_| PeerError::Silent)?;
        let answers = async || {
            let answer = client.post_initialize("2025-11-25", json!({})).await.ok()?;
            (answer.status == StatusCode::OK).then_some(())
        };
        process::poll(PATIENCE, answers).await.ok_or(PeerError::Silent)?;
        Ok(server)
    }

    /// The URL of its MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}
