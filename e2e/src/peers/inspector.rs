//! The inspector's command line: each method is a process and a session of its own.

use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use super::{Packages, PeerError, install_packages, run::PATIENCE};
use crate::process;

/// Its program below the folder that holds `node_modules`.
const ENTRY: &str = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// The inspector, in front of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspector {
    /// The URL of an MCP endpoint.
    pub url: String,
}

#[derive(Deserialize)]
struct Answer {
    result: Value,
}

// === impl Inspector ===

impl Inspector {
    /// What a method answers, given further options of the command line.
    pub async fn ask(&self, method: &str, options: &[&str]) -> Result<Value, PeerError> {
        let peers = install_packages(Packages::Inspector).await?;
        let mut command = Command::new(&peers.node);
        command.arg(peers.npm.join(ENTRY)).args([
            "--cli",
            &self.url,
            "--transport",
            "http",
            "--format",
            "json",
        ]);
        // It keeps a catalogue in the user's home.
        command.args(["--method", method]).args(options).env("HOME", &peers.npm);
        let said = process::output(&mut command, PATIENCE).await?;
        let answer = serde_json::from_str::<Answer>(said.trim()).map_err(|_| PeerError::Unreadable(said))?;
        Ok(answer.result)
    }
}
