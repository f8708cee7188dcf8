//! Pure: when a provider is asked for its keys again, and who waits for the answer.

use std::time::Duration;

/// Keys of this age are asked for again, beside the requests that use them.
pub(super) const FRESH: Duration = Duration::from_secs(60);
/// Keys of this age may long have been removed: who needs them waits for newer ones, where the provider answers.
pub(super) const STALE: Duration = Duration::from_secs(300);
/// The least time between two questions, whoever sends tokens with whatever keys.
pub(super) const FLOOR: Duration = Duration::from_secs(5);

/// What is known when a token is to be verified.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// The age of the keys that are held; none where none are.
    pub age: Option<Duration>,
    /// Whether one of them may have signed the token.
    pub known: bool,
    /// How long ago the provider was last asked.
    pub asked: Option<Duration>,
    /// Whether it then failed to answer.
    pub failing: bool,
    /// Whether it is being asked now.
    pub asking: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Go on with what is held.
    Use,
    /// Go on with what is held, and ask beside it.
    UseAndAsk,
    /// Ask, unless somebody does, and wait.
    Wait,
}

/// Decides for one token.
///
/// | keys | one fits | step |
/// |---|---|---|
/// | none | | wait, at most once in [`FLOOR`] |
/// | any | no | wait, at most once in [`FLOOR`]: it may have a new one |
/// | younger than [`FRESH`] | yes | use |
/// | older | yes | use, and ask at most once in [`FLOOR`] |
/// | [`STALE`] | yes | wait, unless the provider failed to answer last time |
pub(super) fn step(facts: Facts) -> Step {
    let Facts { age, known, asked, failing, asking } = facts;
    let may_ask = asking || asked.is_none_or(|ago| ago >= FLOOR);
    match (age.filter(|_| known), may_ask) {
        (None, true) => Step::Wait,
        (None | Some(_), false) => Step::Use,
        (Some(age), true) if age < FRESH => Step::Use,
        (Some(age), true) if age >= STALE && !failing => Step::Wait,
        (Some(_), true) => Step::UseAndAsk,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_decision() {
        let seconds = Duration::from_secs;
        let held = |age, asked| Facts {
            age: Some(seconds(age)),
            known: true,
            asked: Some(seconds(asked)),
            ..Facts::default()
        };
        let nothing = Facts::default();
        for (name, facts, want) in [
            ("the first token", nothing, Step::Wait),
            ("the first token while the provider is asked", Facts { asking: true, ..nothing }, Step::Wait),
            (
                "a provider that was down a moment ago",
                Facts { asked: Some(seconds(4)), failing: true, ..nothing },
                Step::Use,
            ),
            (
                "a provider that was down a while ago",
                Facts { asked: Some(FLOOR), failing: true, ..nothing },
                Step::Wait,
            ),
            ("young keys", held(59, 59), Step::Use),
            ("keys that are not so young", held(60, 60), Step::UseAndAsk),
            ("old keys", held(300, 300), Step::Wait),
            (
                "old keys of a provider that is down",
                Facts { failing: true, ..held(300, 60) },
                Step::UseAndAsk,
            ),
            (
                "old keys of a provider that was down a moment ago",
                Facts { failing: true, ..held(300, 4) },
                Step::Use,
            ),
            ("an unknown key", Facts { known: false, ..held(10, 10) }, Step::Wait),
            ("unknown keys one after the other", Facts { known: false, ..held(4, 4) }, Step::Use),
            (
                "an unknown key while the provider is asked",
                Facts { known: false, asking: true, ..held(4, 4) },
                Step::Wait,
            ),
        ] {
            assert_eq!(step(facts), want, "{name}");
        }
    }
}
