//! The wall clock, as a value that tests can replace. The only place that reads the system's time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Milliseconds since the Unix epoch: what records keep, so that every replica reads the same deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time and `duration`; the far future where that overflows.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long until `later`; zero where that is past.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

/// Tells the time.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    System,
    /// Wall time that follows tokio's clock, and so stands still when a test pauses it.
    Tokio {
        origin: Instant,
        at_origin: Timestamp,
    },
}

impl Clock {
    /// The system's wall clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that reads `now` at once and then follows tokio's time.
    pub fn tokio(now: Timestamp) -> Self {
        Self(Source::Tokio { origin: Instant::now(), at_origin: now })
    }

    /// The time.
    pub fn now(self) -> Timestamp {
        match self.0 {
            Source::System => Timestamp(system_millis()),
            Source::Tokio { origin, at_origin } => at_origin.plus(origin.elapsed()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn system_millis() -> i64 {
    // A clock before 1970 is a broken machine; zero makes every session look expired rather than eternal.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|d| i64::try_from(d.as_millis()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_moves_only_with_tokio() {
        let clock = Clock::tokio(Timestamp(1_000));
        assert_eq!(clock.now(), Timestamp(1_000));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), Timestamp(6_000));
    }

    #[test]
    fn time_to_a_past_moment_is_zero() {
        assert_eq!(Timestamp(10).until(Timestamp(5)), Duration::ZERO);
        assert_eq!(Timestamp(5).until(Timestamp(10)), Duration::from_millis(5));
    }
}
