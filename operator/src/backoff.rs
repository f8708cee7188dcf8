//! How long an object that failed waits: exponential, with jitter from a seed. Pure.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(5);

/// The wait after so many failures in a row: half of it fixed, half spread by `seed`, so that objects which fail
/// together do not come back together.
pub fn delay(failures: u32, seed: impl Hash) -> Duration {
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1).min(16))).min(LONGEST);
    let mut hasher = DefaultHasher::new();
    (seed, failures).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1_000).unwrap_or(0);
    whole / 2 + whole / 2 * share / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_and_stays_below_five_minutes() {
        assert!(delay(1, "a") <= FIRST);
        assert!(delay(5, "a") > delay(3, "a"));
        assert!(delay(u32::MAX, "a") <= LONGEST);
        assert!(delay(u32::MAX, "a") >= LONGEST / 2);
    }

    #[test]
    fn objects_that_fail_together_come_back_apart() {
        assert_ne!(delay(9, "a"), delay(9, "b"));
        assert_eq!(delay(9, "a"), delay(9, "a"));
    }
}
