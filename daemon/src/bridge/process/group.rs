//! A process group: signals to all of it, and the end of those that outlive their leader (case 040).

use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};
use tokio::{process::Child, time::timeout};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether a group is empty: nobody tells.
const AGAIN: Duration = Duration::from_millis(25);

/// A group. Killed when dropped, unless it was cleared.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that this child was started to lead.
    pub(super) fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    /// SIGTERM to all of it.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGKILL to all of it.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let Some(group) = self.0 else { return };
        // An error means that nobody is in it.
        if kill_process_group(group, signal).is_err() {
            tracing::trace!(group = group.as_raw_nonzero(), "an empty group");
        }
    }

    /// Ends those that outlived the leader: SIGTERM, a wait, SIGKILL. The leader has been reaped.
    pub(super) async fn clear(mut self, grace: Duration, stop: &CancellationToken) {
        if self.is_empty() {
            self.0 = None;
            return;
        }
        self.terminate();
        let emptied = tokio::select! {
            emptied = timeout(grace, self.emptied()) => emptied.is_ok(),
            () = stop.cancelled() => false,
        };
        if !emptied {
            self.kill();
            if timeout(grace, self.emptied()).await.is_err() {
                tracing::error!(group = ?self.0, "a process group outlives SIGKILL");
            }
        }
        self.0 = None;
    }

    async fn emptied(&self) {
        let mut again = tokio::time::interval(AGAIN);
        loop {
            again.tick().await;
            if self.is_empty() {
                return;
            }
        }
    }

    /// Reaps those that became our children, as they do where we are process 1, and looks whether any is left.
    fn is_empty(&self) -> bool {
        let Some(group) = self.0 else { return true };
        while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
        test_kill_process_group(group).is_err()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
