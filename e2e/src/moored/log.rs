//! Reads a daemon's log as it comes: JSON lines on stdout, kept whole, and whatever it says on stderr.

use std::{io, process::Stdio, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::watch,
};
use tokio_util::task::TaskTracker;

/// The lines so far, and word of each new one.
#[derive(Debug, Clone)]
pub(super) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
}

/// Starts a command whose output becomes a log; it is killed with the child's handle.
pub(super) fn spawn(mut command: Command) -> io::Result<(Child, Log)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (sender, count) = watch::channel(0);
    let (lines, sender) = (Arc::default(), Arc::new(sender));
    let readers = TaskTracker::new();
    if let Some(stdout) = child.stdout.take() {
        readers.spawn(keep(stdout, Arc::clone(&lines), Arc::clone(&sender)));
    }
    if let Some(stderr) = child.stderr.take() {
        readers.spawn(keep(stderr, Arc::clone(&lines), sender));
    }
    Ok((child, Log { lines, count }))
}

/// Keeps the lines of one output until its end.
async fn keep(
    output: impl AsyncRead + Unpin,
    lines: Arc<Mutex<Vec<String>>>,
    count: Arc<watch::Sender<usize>>,
) {
    let mut reader = BufReader::new(output).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.lock().push(line);
        count.send_modify(|count| *count += 1);
    }
}

// === impl Log ===

impl Log {
    /// The address in the entry of this message, waiting for it; none if the process ends before.
    pub(super) async fn address<A: std::str::FromStr>(&mut self, message: &str) -> Option<A> {
        loop {
            let entry = self.entries().into_iter().find(|entry| field(entry, "message") == Some(message));
            if let Some(entry) = entry {
                return field(&entry, "address")?.parse().ok();
            }
            self.count.changed().await.ok()?;
        }
    }

    /// The entries so far; lines that are no JSON are left out.
    pub(super) fn entries(&self) -> Vec<Value> {
        self.lines.lock().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// All of it.
    pub(super) fn text(&self) -> String {
        self.lines.lock().join("\n")
    }
}

/// A field of an entry, wherever the formatter puts fields: at the top or under `fields`.
fn field<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name).or_else(|| entry.get("fields")?.get(name))?.as_str()
}
