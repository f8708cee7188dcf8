//! server-everything and the conformance server: on HTTP they run on free ports and end when dropped, for stdio there are
//! the commands that start them.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Stdio,
};

use http::StatusCode;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::{
    EVERYTHING_ENTRY, Environment, PeerError, install::checkout, install_node, install_python, run::PATIENCE,
};
use crate::{client::Client, process};

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

/// A path as a word of a command line.
pub(super) fn own(path: &Path) -> String {
    path.display().to_string()
}
