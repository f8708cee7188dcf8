//! Ordered shutdown: every spawned task is tracked, told to finish, and at the deadline dropped.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::{self, AbortHandle},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Handed to every part that spawns; cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Finish what you hold and take nothing new.
    pub drain: CancellationToken,
    /// Answer what is open with an error and end: the deadline has come.
    pub stop: CancellationToken,
    /// For the end: a token that all tasks look at would be looked at whenever one of them is polled.
    running: Arc<Mutex<Running>>,
}

/// The tasks that run.
#[derive(Debug, Default)]
struct Running {
    /// None where a task left before it was entered.
    handles: HashMap<task::Id, Option<AbortHandle>>,
    /// Whether whatever begins now is dropped, too.
    killed: bool,
}

/// A task among those that run, for as long as it does.
struct Member(Arc<Mutex<Running>>);

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(id) = task::try_id() {
            let mut running = self.0.lock();
            if running.handles.remove(&id).is_none() {
                running.handles.insert(id, None);
            }
        }
    }
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
        let member = Member(Arc::clone(&self.running));
        let task = self.tracker.spawn(async move {
            work.await;
            drop(member);
        });
        let handle = task.abort_handle();
        let mut running = self.running.lock();
        if running.handles.remove(&handle.id()).is_none() {
            running.handles.insert(handle.id(), Some(handle.clone()));
        }
        let killed = running.killed;
        // What is aborted may end here and now, and leave.
        drop(running);
        if killed {
            handle.abort();
        }
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
            self.kill();
            self.tracker.wait().await;
        }
        Outcome::Forced { left }
    }

    /// Drops what runs, each at its next await.
    fn kill(&self) {
        let mut running = self.running.lock();
        running.killed = true;
        let handles: Vec<AbortHandle> = running.handles.values().flatten().cloned().collect();
        drop(running);
        handles.iter().for_each(AbortHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a task that overstays when it is dropped.
    struct Last(Tasks);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.spawn(std::future::pending());
        }
    }

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
    async fn what_has_ended_is_not_held_and_what_begins_behind_the_end_ends_as_well() {
        let tasks = Tasks::default();
        for _ in 0..100 {
            tasks.spawn(async {});
        }
        while tasks.running() > 0 {
            task::yield_now().await;
        }
        assert!(tasks.running.lock().handles.is_empty());
        let late = tasks.clone();
        // Its last words are another task that overstays.
        tasks.spawn(async move {
            let _last = Last(late);
            std::future::pending::<()>().await;
        });
        let outcome = tasks.shutdown(Duration::from_secs(1), std::future::pending()).await;
        assert_eq!((outcome, tasks.running()), (Outcome::Forced { left: 1 }, 0));
        assert!(tasks.running.lock().handles.is_empty());
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
