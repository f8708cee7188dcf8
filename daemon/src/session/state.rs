//! Pure: when a session ends, and why, and when its use is written down. No clock, no IO, no task.

use std::time::Duration;

use mooring_runtime::Timestamp;

use crate::fault::EndReason;

/// How long a session lives on whose every used target lost its session (DESIGN §3.6).
pub const LOST_GRACE: Duration = Duration::from_secs(300);

/// What the decision looks at, read once by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The absolute end.
    pub expires: Timestamp,
    /// When it was last used.
    pub last_used: Timestamp,
    /// Whether it used targets and all of them lost their sessions.
    pub all_targets_lost: bool,
    /// Its idle timeout, where it has one.
    pub idle: Option<Idle>,
}

/// What the idle timeout looks at.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// How long it may go unused.
    pub timeout: Duration,
    /// Whether a request is in flight: it is in use now.
    pub in_flight: bool,
    /// Its last use as the record has it.
    pub stored: Timestamp,
    /// When this replica last wrote that.
    pub noted: Timestamp,
}

/// What the caller must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time.
    WakeAt(Timestamp),
    /// Write into the record that it was used at `used`; then nothing before `wake`.
    Note {
        /// The last use.
        used: Timestamp,
        /// When to look again.
        wake: Timestamp,
    },
    /// End it.
    End(EndReason),
}

/// Decides for one session at one time. The first row that holds:
///
/// | holds | step |
/// |---|---|
/// | `expires` has come | end: expired |
/// | all targets are lost, 300 s after the last use | end: targets lost |
/// | nothing is in flight, the idle timeout after the last use | end: idle |
/// | it was used since the record's last use, a quarter of the idle timeout after the last note | note the use |
/// | else | wake at the earliest of these, and each quarter of the idle timeout |
///
/// A request in flight is a use that goes on. Each quarter is looked at, though nothing may have happened: a use costs
/// its request nothing then.
pub fn step(facts: Facts, now: Timestamp) -> Step {
    let Facts { expires, last_used, all_targets_lost, idle } = facts;
    if now >= expires {
        return Step::End(EndReason::Expired);
    }
    let mut wake = expires;
    if all_targets_lost {
        let given_up = last_used.plus(LOST_GRACE);
        if now >= given_up {
            return Step::End(EndReason::TargetsLost);
        }
        wake = wake.min(given_up);
    }
    let Some(Idle { timeout, in_flight, stored, noted }) = idle else { return Step::WakeAt(wake) };
    let used = if in_flight { now } else { last_used };
    let end = used.plus(timeout);
    if now >= end {
        return Step::End(EndReason::Idle);
    }
    let quarter = timeout / 4;
    let wake = wake.min(end).min(now.plus(quarter));
    if used > stored && now >= noted.plus(quarter) { Step::Note { used, wake } } else { Step::WakeAt(wake) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_transition() {
        let at = |seconds: i64| Timestamp(seconds * 1000);
        let facts = |last_used, all_targets_lost| Facts {
            expires: at(3600),
            last_used: at(last_used),
            all_targets_lost,
            idle: None,
        };
        for (name, facts, now, want) in [
            ("young", facts(0, false), 10, Step::WakeAt(at(3600))),
            ("busy to the end", facts(3599, false), 3599, Step::WakeAt(at(3600))),
            ("too old, however busy", facts(3600, false), 3600, Step::End(EndReason::Expired)),
            ("long past, after a restart", facts(0, false), 9999, Step::End(EndReason::Expired)),
            ("lost, lately used", facts(100, true), 399, Step::WakeAt(at(400))),
            ("lost, nobody came back", facts(100, true), 400, Step::End(EndReason::TargetsLost)),
            ("lost near the end", facts(3500, true), 3550, Step::WakeAt(at(3600))),
            ("lost and too old", facts(3500, true), 3600, Step::End(EndReason::Expired)),
        ] {
            assert_eq!(step(facts, at(now)), want, "{name}");
        }
    }
    /// Used at `used`, as the record has it at `stored`, which was written at `noted`; idle for 100 s at most.
    fn idle(used: i64, stored: i64, noted: i64) -> Facts {
        let idle = Idle {
            timeout: Duration::from_secs(100),
            in_flight: false,
            stored: Timestamp(stored * 1000),
            noted: Timestamp(noted * 1000),
        };
        Facts {
            expires: Timestamp(3_600_000),
            last_used: Timestamp(used * 1000),
            all_targets_lost: false,
            idle: Some(idle),
        }
    }

    #[test]
    fn one_row_per_transition_of_the_idle_timeout() {
        let at = |seconds: i64| Timestamp(seconds * 1000);
        let busy = |mut facts: Facts| {
            facts.idle = facts.idle.map(|idle| Idle { in_flight: true, ..idle });
            facts
        };
        let lost = |facts: Facts| Facts { all_targets_lost: true, ..facts };
        let note = |used, wake| Step::Note { used: at(used), wake: at(wake) };
        for (name, facts, now, want) in [
            ("unused from the start", idle(0, 0, 0), 0, Step::WakeAt(at(25))),
            ("unused for a while", idle(0, 0, 0), 75, Step::WakeAt(at(100))),
            ("unused for too long", idle(0, 0, 0), 100, Step::End(EndReason::Idle)),
            ("used, and noted lately", idle(10, 0, 0), 24, Step::WakeAt(at(49))),
            ("used, and noted a quarter ago", idle(10, 0, 0), 25, note(10, 50)),
            ("used, and noted here", idle(10, 10, 25), 50, Step::WakeAt(at(75))),
            ("used elsewhere later than here", idle(60, 60, 0), 100, Step::WakeAt(at(125))),
            ("noted, and unused for too long", idle(10, 10, 25), 110, Step::End(EndReason::Idle)),
            ("a request for longer than the timeout", busy(idle(0, 0, 0)), 500, note(500, 525)),
            ("a request, and noted lately", busy(idle(0, 480, 480)), 500, Step::WakeAt(at(525))),
            ("near the absolute end", idle(3590, 3590, 3590), 3595, Step::WakeAt(at(3600))),
            ("too old, however busy", busy(idle(3599, 0, 0)), 3600, Step::End(EndReason::Expired)),
            ("all lost and idle first", lost(idle(0, 0, 0)), 100, Step::End(EndReason::Idle)),
        ] {
            assert_eq!(step(facts, at(now)), want, "{name}");
        }
    }
}
