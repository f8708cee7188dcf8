//! Conditions as values: verdicts in, conditions out, the clock an argument. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What pure code decides; [`merge`] adds time and generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The condition's type.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// Why, in one CamelCase word.
    pub reason: &'static str,
    /// Why, in a sentence that says what to do; without names of pods, times or counts, which flap.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// That cannot be told yet.
    Unknown,
}

impl Verdict {
    /// A condition that holds.
    pub fn yes(kind: &'static str, reason: &'static str) -> Self {
        Self { kind, status: Status::True, reason, message: String::new() }
    }

    /// A condition that does not hold.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: Status::False, reason, message: message.into() }
    }

    /// A condition of which nothing can be said yet.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status: Status::Unknown, reason, message: message.into() }
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.status == Status::True
    }
}

impl Status {
    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Makes conditions of verdicts; the transition time of one stays for as long as its status does.
pub fn merge(
    old: &[Condition],
    verdicts: Vec<Verdict>,
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    verdicts
        .into_iter()
        .map(|verdict| {
            let same = find(old, verdict.kind).filter(|old| old.status == verdict.status.as_str());
            Condition {
                last_transition_time: same.map_or(now, |old| &old.last_transition_time).clone(),
                observed_generation: generation,
                type_: verdict.kind.to_owned(),
                status: verdict.status.as_str().to_owned(),
                reason: verdict.reason.to_owned(),
                message: verdict.message,
            }
        })
        .collect()
}

/// The condition of one type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The conditions whose status changed, as they are now. One that is new counts unless it holds.
pub fn transitions<'a>(old: &[Condition], new: &'a [Condition]) -> Vec<&'a Condition> {
    new.iter()
        .filter(|new| find(old, &new.type_).map_or(new.status != "True", |old| old.status != new.status))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let first = merge(&[], vec![Verdict::no("Ready", "NoPods", "none")], Some(1), &at(10));
        let same = merge(&first, vec![Verdict::no("Ready", "Rollout", "soon")], Some(2), &at(20));
        assert_eq!(same[0].last_transition_time, at(10));
        assert_eq!(same[0].reason, "Rollout");
        assert_eq!(same[0].observed_generation, Some(2));
        let turned = merge(&same, vec![Verdict::yes("Ready", "Ready")], Some(2), &at(30));
        assert_eq!(turned[0].last_transition_time, at(30));
    }

    #[test]
    fn merging_the_same_verdicts_again_changes_nothing() {
        let verdicts = vec![Verdict::yes("Accepted", "Accepted"), Verdict::unknown("Ready", "NoReport", "x")];
        let first = merge(&[], verdicts.clone(), Some(1), &at(10));
        assert_eq!(merge(&first, verdicts, Some(1), &at(99)), first);
    }

    #[test]
    fn a_condition_that_nobody_decides_any_more_is_dropped() {
        let first = merge(&[], vec![Verdict::yes("Old", "Old")], None, &at(1));
        assert!(merge(&first, vec![], None, &at(2)).is_empty());
    }

    #[test]
    fn transitions_are_changes_of_status_and_new_troubles() {
        let old =
            merge(&[], vec![Verdict::no("Ready", "NoPods", ""), Verdict::yes("Accepted", "A")], None, &at(1));
        let verdicts = vec![
            Verdict::yes("Ready", "R"),
            Verdict::yes("Accepted", "B"),
            Verdict::yes("New", "N"),
            Verdict::no("Bad", "B", ""),
        ];
        let new = merge(&old, verdicts, None, &at(2));
        let kinds: Vec<_> =
            transitions(&old, &new).iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(kinds, ["Ready", "Bad"]);
    }
}
