//! Pure: how long one call may take, resolved once when it begins.

use std::time::Duration;

use mooring_crds::config::{TimeoutOverride, TimeoutsConfig};

use crate::glob;

/// How long one call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The target may be silent; progress restarts it.
    pub silent: Duration,
    /// In all.
    pub maximum: Duration,
}

impl CallLimits {
    /// Those of any request.
    pub fn of(timeouts: &TimeoutsConfig) -> Self {
        Self {
            silent: Duration::from_secs(timeouts.request_seconds.into()),
            maximum: Duration::from_secs(timeouts.maximum_seconds.into()),
        }
    }

    /// The same, but silence no longer than `patience`.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { silent: self.silent.min(patience), ..self }
    }

    /// Those of a call of `tool`, the target's own name: the first override that matches counts, and nothing exceeds
    /// the maximum.
    pub fn of_tool(timeouts: &TimeoutsConfig, tool: &str) -> Self {
        let usual = Self::of(timeouts);
        let matches =
            |other: &&TimeoutOverride| other.tools.iter().any(|pattern| glob::matches(pattern, tool));
        let Some(other) = timeouts.overrides.iter().find(matches) else { return usual };
        let TimeoutOverride { tools: _, request_seconds, maximum_seconds } = other;
        let or = |seconds: &Option<u32>, usual| seconds.map_or(usual, |s| Duration::from_secs(s.into()));
        let maximum = or(maximum_seconds, usual.maximum);
        Self { silent: or(request_seconds, usual.silent).min(maximum), maximum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_override_that_matches_counts_and_nothing_exceeds_the_maximum() {
        let other = |tool: &str, request_seconds, maximum_seconds| TimeoutOverride {
            tools: vec![tool.to_owned()],
            request_seconds,
            maximum_seconds,
        };
        let timeouts = TimeoutsConfig {
            request_seconds: 10,
            maximum_seconds: 100,
            overrides: vec![
                other("slow-*", Some(50), None),
                other("slow-query", Some(1), Some(2)),
                other("brief", None, Some(3)),
            ],
            ..TimeoutsConfig::default()
        };
        let of = |tool| {
            let CallLimits { silent, maximum } = CallLimits::of_tool(&timeouts, tool);
            (silent.as_secs(), maximum.as_secs())
        };
        assert_eq!(of("slow-query"), (50, 100));
        assert_eq!(of("brief"), (3, 3));
        assert_eq!(of("other"), (10, 100));
    }
}
