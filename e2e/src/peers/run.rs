//! Runs a client of others against a URL and reads what it says.

use std::{io, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::process::Command;

use super::{
    Environment, InstallError, Prefixes, Seen, install::checkout, install::install_scripts, install_node,
    install_python, install_rust,
};
use crate::process::{self, ProcessError};

/// How long a client may take for a whole session.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);

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
    /// The client of fastmcp, in a mode of its own: `auto` or `legacy`. It only tours.
    Fastmcp(&'static str),
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
    #[error("a server could not be started")]
    Io(#[from] io::Error),
    /// A server did not answer.
    #[error("a server did not answer within {PATIENCE:?}")]
    Silent,
}

// === impl Peer ===

impl Peer {
    /// Lists the tools at a URL and calls one of them.
    pub async fn list_and_call(self, url: &str, tool: &str, arguments: &Value) -> Result<Said, PeerError> {
        self.run(&["call", url, tool, &arguments.to_string()]).await
    }

    /// Does with one session at a URL all that the servers there are good for.
    pub async fn tour(self, url: &str, prefixes: &Prefixes) -> Result<Seen, PeerError> {
        self.run(&["tour", url, &prefixes.json().to_string()]).await
    }

    /// Does something that its script has a verb of its own for, and returns what it saw. Only the SDKs 1.x have any.
    pub async fn does<T: DeserializeOwned>(
        self,
        verb: &str,
        url: &str,
        what: &Value,
    ) -> Result<T, PeerError> {
        self.run(&[verb, url, &what.to_string()]).await
    }

    async fn run<T: DeserializeOwned>(self, arguments: &[&str]) -> Result<T, PeerError> {
        let said = process::output(self.command().await?.args(arguments), PATIENCE).await?;
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|_| PeerError::Unreadable(said.clone()))
    }

    async fn command(self) -> Result<Command, PeerError> {
        Ok(match self {
            Self::Python1 => python(Environment::Mcp1, "python-mcp-1.py", "").await?,
            Self::Python2(mode) => python(Environment::Mcp2, "python-mcp-2.py", mode).await?,
            Self::Fastmcp(mode) => python(Environment::Fastmcp, "python-fastmcp.py", mode).await?,
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

async fn python(environment: Environment, script: &str, mode: &str) -> Result<Command, PeerError> {
    let mut command = Command::new(install_python(environment).await?.join("bin/python"));
    command.arg(checkout().join("clients").join(script)).env("MODE", mode);
    Ok(command)
}

async fn node(script: &str, mode: &str) -> Result<Command, PeerError> {
    let peers = install_node().await?;
    let mut command = Command::new(&peers.node);
    command.arg(install_scripts(&peers).await?.join(script)).env("MODE", mode);
    Ok(command)
}
