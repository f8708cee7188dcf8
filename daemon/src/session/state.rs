//! Pure: when a session ends, and why. No clock, no IO, no task.

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
}

/// What the caller must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this time.
    WakeAt(Timestamp),
    /// End it.
    End(EndReason),
}

/// Decides for one session at one time.
///
/// | all targets lost | now | step |
/// |---|---|---|
/// | any | `expires` or later | end: expired |
/// | no | earlier | wake at `expires` |
/// | yes | 300 s after the last use or later | end: targets lost |
/// | yes | earlier | wake at the earlier of both |
pub fn step(facts: Facts, now: Timestamp) -> Step {
    let Facts { expires, last_used, all_targets_lost } = facts;
    if now >= expires {
        return Step::End(EndReason::Expired);
    }
    if !all_targets_lost {
        return Step::WakeAt(expires);
    }
    let given_up = last_used.plus(LOST_GRACE);
    if now >= given_up { Step::End(EndReason::TargetsLost) } else { Step::WakeAt(given_up.min(expires)) }
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
}
