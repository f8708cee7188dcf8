//! What `cargo e2e` says: steps with their times, and why one failed. All of it goes to stderr, so that stdout is
//! the tools' own.

use std::io::{self, Write};

use tokio::time::Instant;

use crate::Failure;

/// Says a line. A terminal that is gone does not matter: the exit code tells.
pub(crate) fn say(line: &str) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Does one step, saying when it begins and how long it took.
pub(crate) async fn step<T>(
    name: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    say(&format!("==> {name}"));
    let begun = Instant::now();
    let done = Box::pin(work).await;
    let verdict = if done.is_ok() { "done" } else { "FAILED" };
    say(&format!("<== {name}: {verdict} in {:.1} s", begun.elapsed().as_secs_f64()));
    done
}

/// Says why the command failed, with every cause.
pub(crate) fn failed(failure: &(dyn std::error::Error + 'static)) {
    say(&format!("cargo e2e failed: {failure}"));
    let mut cause = failure.source();
    while let Some(why) = cause {
        say(&format!("  because {why}"));
        cause = why.source();
    }
}
