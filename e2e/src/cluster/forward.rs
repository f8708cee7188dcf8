//! `kubectl port-forward`, as a value: open as long as it lives.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout},
    time::timeout,
};

use super::{Cluster, ClusterError};
use crate::process::ProcessError;

/// How long the way may take to open.
const PATIENCE: Duration = Duration::from_secs(20);

/// An open way from a port of this machine to one in the cluster.
#[derive(Debug)]
pub struct Forward {
    port: u16,
    _kubectl: Child,
    // Read no further, but kept: kubectl ends when it cannot write.
    _output: BufReader<ChildStdout>,
}

impl Forward {
    pub(super) async fn open(
        cluster: &Cluster,
        namespace: &str,
        what: &str,
        port: u16,
    ) -> Result<Self, ClusterError> {
        let mut command = cluster.command("kubectl");
        command.args([
            "--namespace",
            namespace,
            "port-forward",
            "--address",
            "127.0.0.1",
            what,
            &format!(":{port}"),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let spawned = command.spawn();
        let mut kubectl = spawned
            .map_err(|source| ProcessError::Io { command: format!("kubectl port-forward {what}"), source })?;
        let mut output = BufReader::new(kubectl.stdout.take().ok_or(ClusterError::Forward)?);
        let mut line = String::new();
        let read = timeout(PATIENCE, output.read_line(&mut line)).await;
        let read = read.ok().and_then(Result::ok).ok_or(ClusterError::Forward)?;
        // "Forwarding from 127.0.0.1:40123 -> 80"
        let port = line.split_whitespace().find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok());
        match (read, port) {
            (1.., Some(port)) => Ok(Self { port, _kubectl: kubectl, _output: output }),
            (_, Some(_) | None) => Err(ClusterError::Forward),
        }
    }

    /// The URL of the MCP endpoint at the other end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The URL of a path at the other end.
    pub fn url_of(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}
