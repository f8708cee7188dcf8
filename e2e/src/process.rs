//! Running other programs, each with a deadline, and waiting for what they do.

use std::{
    io,
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::Command,
    signal::unix::{SignalKind, signal as listen},
    time,
};

/// How often a condition is looked at that tells nobody when it comes.
const AGAIN: Duration = Duration::from_millis(50);

/// How long a program may take that only has to look something up.
pub const SHORT: Duration = Duration::from_mins(1);

/// How long a program may take that builds or fetches.
pub const LONG: Duration = Duration::from_hours(1);

/// A program did not do what it was run for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started or listened to.
    #[error("{command}: {source}")]
    Io {
        /// The command line.
        command: String,
        /// What went wrong.
        source: io::Error,
    },
    /// It failed.
    #[error("{command}: {status}\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said on stderr, unless that went to the terminal.
        output: String,
    },
    /// It took too long, and was killed.
    #[error("{command}: not done within {within:?}")]
    Deadline {
        /// The command line.
        command: String,
        /// How long it had.
        within: Duration,
    },
}

/// Runs a command whose output goes where ours goes.
pub async fn run(command: &mut Command, within: Duration) -> Result<(), ProcessError> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let line = line(command);
    let status = match time::timeout(within, async { command.spawn()?.wait().await }).await {
        Ok(Ok(status)) => status,
        Ok(Err(source)) => return Err(ProcessError::Io { command: line, source }),
        Err(_) => return Err(ProcessError::Deadline { command: line, within }),
    };
    if status.success() {
        Ok(())
    } else {
        Err(ProcessError::Failed { command: line, status, output: String::new() })
    }
}

/// Runs a command and returns what it says on stdout.
pub async fn output(command: &mut Command, within: Duration) -> Result<String, ProcessError> {
    feed(command, "", within).await
}

/// Runs a command that may fail, and returns whether it did not and what it says on stdout and stderr.
pub async fn attempt(command: &mut Command, within: Duration) -> Result<(bool, String), ProcessError> {
    let output = finish(command, "", within).await?;
    Ok((output.status.success(), [text(&output.stdout), text(&output.stderr)].concat()))
}

/// Runs a command with something on its stdin and returns what it says on stdout.
pub async fn feed(command: &mut Command, input: &str, within: Duration) -> Result<String, ProcessError> {
    let output = finish(command, input, within).await?;
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let (status, output) = (output.status, text(&output.stderr));
        Err(ProcessError::Failed { command: line(command), status, output })
    }
}

/// Runs a command with something on its stdin until it ends, however it ends.
async fn finish(command: &mut Command, input: &str, within: Duration) -> Result<Output, ProcessError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let done = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take()
            && !input.is_empty()
        {
            stdin.write_all(input.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    match time::timeout(within, done).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(source)) => Err(ProcessError::Io { command: line(command), source }),
        Err(_) => Err(ProcessError::Deadline { command: line(command), within }),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a program of this name can be run.
pub async fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", r#"command -v "$0" >/dev/null"#, program]).status().await;
    found.is_ok_and(|status| status.success())
}

/// Looks again and again until there is something, or until the time is over.
pub async fn poll<T>(within: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let found = async {
        let mut again = time::interval(AGAIN);
        loop {
            again.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    time::timeout(within, found).await.ok()
}

/// Sends SIGTERM, or SIGKILL, to a process.
pub async fn signal(pid: u32, kill: bool) -> Result<(), ProcessError> {
    let signal = if kill { "-KILL" } else { "-TERM" };
    // The shell's own `kill`: the program of that name is not everywhere.
    let mut command = Command::new("sh");
    output(command.args(["-c", r#"kill "$0" "$1""#, signal, &pid.to_string()]), SHORT).await.map(drop)
}

/// Waits until this process is told to end, by SIGTERM or by Ctrl-C.
pub async fn told_to_end() -> io::Result<()> {
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// The command line, for messages.
fn line(command: &Command) -> String {
    let command = command.as_std();
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
