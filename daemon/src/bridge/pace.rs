//! Pure: how many lines of somebody else go into the log. The clock is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Lines that may come at once.
const BURST: u32 = 20;
/// How often one more may come.
const EVERY: Duration = Duration::from_millis(200);

/// Lets the first lines through, then five a second, and counts the others.
#[derive(Debug)]
pub(super) struct Pace {
    left: u32,
    since: Instant,
    withheld: u64,
}

impl Pace {
    /// With a whole burst to spend.
    pub(super) fn new(now: Instant) -> Self {
        Self { left: BURST, since: now, withheld: 0 }
    }

    /// Whether a line may be logged; with it, how many were withheld since the last one.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        let whole = now.saturating_duration_since(self.since).as_millis() / EVERY.as_millis();
        let whole = u32::try_from(whole).unwrap_or(u32::MAX);
        if whole > 0 {
            self.left = self.left.saturating_add(whole).min(BURST);
            self.since = now;
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.withheld += 1;
            return None;
        };
        self.left = left;
        Some(std::mem::take(&mut self.withheld))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_a_trickle_is_logged() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let admitted = (0..1000).filter(|_| pace.admit(start).is_some()).count();
        assert_eq!(admitted, 20);
        assert_eq!(pace.admit(start + EVERY), Some(980));
        assert_eq!(pace.admit(start + EVERY), None);
        assert_eq!(pace.admit(start + EVERY * 40), Some(1));
    }
}
