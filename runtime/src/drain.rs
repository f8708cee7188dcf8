//! Ordered shutdown: every spawned task is tracked, told to finish, and at the deadline dropped.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Handed to every part that spawns; cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Finish what you hold and take nothing new.
    pub drain: CancellationToken,
    /// Answer what is open with an error and end: the deadline has come.
    pub stop: CancellationToken,
    /// Dropped at the next await.
    kill: CancellationToken,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every task ended by itself.
    Clean,
    /// At the deadline so many tasks were still running.
    Forced {
        /// Tasks that were told to stop.
        left: usize,
    },
}

/// What tasks get between `stop` and being dropped, to write their last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Tasks {
    /// Spawns work that the shutdown waits for.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let kill = self.kill.clone();
        self.tracker.spawn(async move {
            // Nothing to tell apart: ended by itself or dropped, the tracker counts it out.
            let _: Option<()> = kill.run_until_cancelled(work).await;
        });
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Signals the drain, waits up to `deadline`, then stops and at last drops what is left.
    ///
    /// `hurry` cuts the wait short: a second signal of an impatient administrator.
    pub async fn shutdown(&self, deadline: Duration, hurry: impl Future<Output = ()> + Send) -> Outcome {
        self.tracker.close();
        self.drain.cancel();
        let in_time = tokio::select! {
            ended = timeout(deadline, self.tracker.wait()) => ended.is_ok(),
            () = hurry => false,
        };
        if in_time {
            return Outcome::Clean;
        }
        let left = self.tracker.len();
        self.stop.cancel();
        if timeout(LAST_WORDS, self.tracker.wait()).await.is_err() {
            self.kill.cancel();
            self.tracker.wait().await;
        }
        Outcome::Forced { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_forces_what_overstays() {
        let tasks = Tasks::default();
        let drain = tasks.drain.clone();
        tasks.spawn(async move { drain.cancelled().await });
        tasks.spawn(std::future::pending());
        let outcome = tasks.shutdown(Duration::from_secs(25), std::future::pending()).await;
        assert_eq!(outcome, Outcome::Forced { left: 1 });
        assert_eq!(tasks.running(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_task_may_say_its_last_words() {
        let tasks = Tasks::default();
        let stop = tasks.stop.clone();
        let (said, heard) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            stop.cancelled().await;
            assert!(said.send("sorry").is_ok());
        });
        assert_eq!(
            tasks.shutdown(Duration::from_secs(1), std::future::pending()).await,
            Outcome::Forced { left: 1 }
        );
        assert_eq!(heard.await, Ok("sorry"));
    }
}
