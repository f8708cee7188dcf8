//! The clock of one call, behind a lock. It stands while the client is asked something on the target's behalf
//! (API, timeouts: a request that is open to the client stops `requestSeconds`).

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

/// The clock of one call.
#[derive(Debug, Default)]
pub struct Pause {
    state: Mutex<State>,
    resumes: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Requests to the client that are open.
    open: u32,
    /// When the last of them was closed.
    resumed: Option<Instant>,
}

/// How the clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// It stands.
    Stands,
    /// It runs, and was started again at this time, if ever.
    Runs(Option<Instant>),
}

impl Pause {
    /// A request to the client was opened.
    pub fn opened(&self) {
        self.state.lock().open += 1;
    }

    /// One was closed at `now`.
    pub fn closed(&self, now: Instant) {
        let mut state = self.state.lock();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            state.resumed = Some(now);
            drop(state);
            self.resumes.notify_waiters();
        }
    }

    /// Returns once the clock runs again, where that happens behind the making of this.
    pub fn resumes(&self) -> Notified<'_> {
        self.resumes.notified()
    }

    /// The target showed progress at `now` on another stream than the call's.
    pub fn heard(&self, now: Instant) {
        self.state.lock().resumed = Some(now);
    }

    /// How it runs.
    pub fn clock(&self) -> Clock {
        let state = self.state.lock();
        if state.open > 0 { Clock::Stands } else { Clock::Runs(state.resumed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_while_any_request_is_open() {
        let (pause, now) = (Pause::default(), Instant::now());
        assert_eq!(pause.clock(), Clock::Runs(None));
        pause.opened();
        pause.opened();
        pause.closed(now);
        assert_eq!(pause.clock(), Clock::Stands);
        pause.closed(now);
        assert_eq!(pause.clock(), Clock::Runs(Some(now)));
    }
}
