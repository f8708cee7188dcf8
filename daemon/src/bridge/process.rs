//! A server that is a process of this machine: started in a group, HOME and TMPDIR of its own, and always reaped.
//!
//! It ends as the protocol says (2025-11-25, lifecycle, shutdown, stdio): its standard input is closed, then SIGTERM,
//! then SIGKILL, to the whole group. A killed daemon cannot do any of this; its processes see the end of their input.

mod group;
mod output;

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use mooring_crds::config::CommandConfig;
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, Command},
    sync::{OwnedSemaphorePermit, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::{group::Group, output::LastWords};
use super::{
    Around,
    home::Home,
    peer::{Input, Outlet, Peer, UNDER_WAY, Unreached, Written},
};
use crate::jsonrpc::Message;

/// How long a process has to end by itself, and again behind SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// As much once the daemon's own deadline has come.
const HURRY: Duration = Duration::from_millis(100);
/// How long what it printed before its end may take to be read, while others hold its output open.
const LAST_OUTPUT: Duration = Duration::from_millis(250);

/// A process that was started.
struct Process {
    name: Arc<str>,
    child: Child,
    group: Group,
    home: Home,
    /// Given back once the process is reaped.
    permit: OwnedSemaphorePermit,
    why: Arc<OnceLock<String>>,
    /// Keeps what it said from ending before `why` is set.
    said: mpsc::Sender<Message>,
    last: Arc<LastWords>,
    /// Somebody wants it to end.
    end: CancellationToken,
    /// It printed its last, or takes nothing: then it must end, too.
    silent: CancellationToken,
    /// Its input is closed.
    closing: CancellationToken,
    /// Its output is of no more interest.
    unheard: CancellationToken,
    /// What it says on standard error is of no more interest.
    over: CancellationToken,
    /// It said its last there.
    muted: CancellationToken,
}

/// Starts a process; it runs until it ends or `end` says so, and is reaped by a task of its own.
///
/// # Errors
/// [`Unreached::Spawn`]; then there is no process and no folder left.
pub(super) fn spawn(
    config: &CommandConfig,
    around: &Around,
    end: CancellationToken,
    permit: OwnedSemaphorePermit,
) -> Result<Peer, Unreached> {
    let Around { name, tasks, .. } = around;
    let unreached = |error: std::io::Error| Unreached::Spawn(error.to_string());
    let home = Home::make().map_err(unreached)?;
    let mut child = command(config, &home).map_err(unreached)?.spawn().map_err(unreached)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(Unreached::Spawn("it has no pipes".to_owned()));
    };
    let group = Group::led_by(&child);
    tracing::debug!(server = &**name, pid = child.id(), "process started");
    let (outgoing, lines) = Input::new();
    let (said, incoming) = mpsc::channel(UNDER_WAY);
    let (why, last) = (Arc::new(OnceLock::new()), Arc::new(LastWords::default()));
    let token = CancellationToken::new;
    let process = Process {
        name: Arc::clone(name),
        child,
        group,
        home,
        permit,
        why: Arc::clone(&why),
        said: said.clone(),
        last: Arc::clone(&last),
        end,
        silent: token(),
        closing: token(),
        unheard: token(),
        over: token(),
        muted: token(),
    };
    let stop = tasks.stop.clone();
    tasks.spawn(async move {
        let name = Arc::clone(&process.name);
        let (silent, closing) = (process.silent.clone(), process.closing.clone());
        let (unheard, over, muted) = (process.unheard.clone(), process.over.clone(), process.muted.clone());
        let writing = async {
            // Dropped at the end, which closes the process's input.
            let written = closing.run_until_cancelled(write(stdin, lines)).await;
            if let Some(Err(error)) = written {
                tracing::debug!(server = &*name, %error, "a process takes no input");
                silent.cancel();
            }
        };
        let reading = async {
            let _ended: Option<()> = unheard.run_until_cancelled(output::messages(stdout, &name, said)).await;
            silent.cancel();
        };
        let draining = async {
            let _ended: Option<()> = over.run_until_cancelled(output::drain(stderr, &name, &last)).await;
            muted.cancel();
        };
        tokio::join!(writing, reading, draining, process.keep(&stop));
    });
    Ok(Peer { outlet: Outlet::Lines(outgoing), incoming, why })
}

/// The environment is the manifest's and what every program needs; nothing else of ours, where secrets may stand.
fn command(config: &CommandConfig, home: &Home) -> std::io::Result<Command> {
    let Some((program, arguments)) = config.command.split_first() else {
        return Err(std::io::Error::other("it has no command"));
    };
    // A path is meant from where the daemon runs; a name is looked for in PATH.
    let is_path = program.contains('/');
    let program = if is_path { std::path::absolute(program)? } else { Path::new(program).to_owned() };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home.home()).env_clear();
    for name in ["PATH", "LANG"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("HOME", home.home()).env("TMPDIR", home.temporary()).envs(&config.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// Writes until nobody has anything to say any more.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Written>) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        stdin.write_all(&line.text).await?;
    }
    // The last one who could speak to it is gone.
    Ok(())
}

impl Process {
    /// Waits for the end, brings it about where it does not come by itself, and leaves nothing behind.
    async fn keep(mut self, stop: &CancellationToken) {
        tokio::select! {
            // What it is waited for is asked again below.
            _ = self.child.wait() => {}
            () = self.end.cancelled() => {}
            () = self.silent.cancelled() => {}
        }
        self.closing.cancel();
        let status = self.ended(stop).await;
        // An answer that it printed last is an answer still, and its last complaint the reason.
        let last = async {
            self.silent.cancelled().await;
            self.muted.cancelled().await;
        };
        if timeout(LAST_OUTPUT, last).await.is_err() {
            tracing::debug!(server = &*self.name, "others hold the output of a process that has ended");
        }
        let why = self.last.reason(status);
        tracing::info!(server = &*self.name, why, "process ended");
        // Set once, here.
        let _: &String = self.why.get_or_init(|| why);
        self.unheard.cancel();
        drop(self.said);
        self.group.clear(GRACE, stop).await;
        self.over.cancel();
        self.home.remove().await;
        drop(self.permit);
    }

    /// The shutdown sequence; none where even SIGKILL ends nothing, such as within a hanging file system.
    async fn ended(&mut self, stop: &CancellationToken) -> Option<ExitStatus> {
        if let Some(status) = self.waited(GRACE, stop).await {
            return Some(status);
        }
        self.group.terminate();
        if let Some(status) = self.waited(GRACE, stop).await {
            return Some(status);
        }
        tracing::warn!(
            server = &*self.name,
            "a process ends neither at the end of its input nor at SIGTERM: SIGKILL"
        );
        self.group.kill();
        let status = self.waited(GRACE, stop).await;
        if status.is_none() {
            tracing::error!(server = &*self.name, pid = self.child.id(), "a process outlives SIGKILL");
        }
        status
    }

    /// Waits for the process, less long once the daemon has to end.
    async fn waited(&mut self, bound: Duration, stop: &CancellationToken) -> Option<ExitStatus> {
        tokio::select! {
            status = self.child.wait() => return status.ok(),
            _ = timeout(bound, stop.cancelled()) => {}
        }
        timeout(HURRY, self.child.wait()).await.ok()?.ok()
    }
}
