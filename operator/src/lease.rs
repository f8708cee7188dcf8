//! Who leads: a pure decision over a Lease, and the thin loop in `lease/election.rs` that asks and acts on it.

pub mod election;

use std::time::Duration;

/// How long things may take in an election. Each is well below the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a standby lets a Lease stand unrenewed before it takes it.
    pub lease: Duration,
    /// How long a leader goes on without a renewal. Below `lease`, so that two never lead.
    pub renew_within: Duration,
    /// How often both look.
    pub every: Duration,
}

impl Terms {
    /// What Kubernetes' own components use.
    pub const KUBERNETES: Self = Self {
        lease: Duration::from_secs(15),
        renew_within: Duration::from_secs(10),
        every: Duration::from_secs(2),
    };
}

/// The Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// There is none.
    Absent,
    /// It could not be read.
    Failed,
    /// There is one.
    Found {
        /// Who holds it; empty where it was released.
        holder: String,
        /// How long it has been seen unchanged, by our own clock: those of others may differ.
        unchanged: Duration,
        /// How long its holder may leave it so.
        lease: Duration,
    },
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make the Lease, in our name.
    Create,
    /// Write our name into it: it is free, or its holder is silent.
    Take,
    /// Write a new time into it: it is ours.
    Renew,
    /// Look again later.
    Wait,
    /// We led, and do no longer: end.
    Lost,
}

/// Decides for `me`, which has led for so long since its last renewal, or does not lead.
pub fn decide(me: &str, since_renewal: Option<Duration>, read: &Read, terms: &Terms) -> Step {
    if since_renewal.is_some_and(|since| since >= terms.renew_within) {
        return Step::Lost;
    }
    let leads = since_renewal.is_some();
    match read {
        Read::Absent => Step::Create,
        Read::Found { holder, .. } if holder == me => Step::Renew,
        Read::Found { .. } if leads => Step::Lost,
        Read::Found { holder, unchanged, lease } if holder.is_empty() || unchanged >= lease => Step::Take,
        Read::Found { .. } | Read::Failed => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(holder: &str, unchanged: u64) -> Read {
        Read::Found {
            holder: holder.to_owned(),
            unchanged: Duration::from_secs(unchanged),
            lease: Duration::from_secs(15),
        }
    }

    #[test]
    fn every_row_of_the_table_holds() {
        let table = [
            (None, Read::Absent, Step::Create, "nobody has led yet"),
            (None, Read::Failed, Step::Wait, "a standby cannot tell"),
            (None, found("", 0), Step::Take, "released"),
            (None, found("other", 0), Step::Wait, "just renewed"),
            (None, found("other", 14), Step::Wait, "late"),
            (None, found("other", 15), Step::Take, "silent for too long"),
            (None, found("me", 0), Step::Renew, "this replica's last process held it"),
            (Some(2), found("me", 2), Step::Renew, "still ours"),
            (Some(2), Read::Absent, Step::Create, "deleted under us"),
            (Some(9), Read::Failed, Step::Wait, "a gap that may still close"),
            (Some(10), Read::Failed, Step::Lost, "a gap too long"),
            (Some(10), found("me", 10), Step::Lost, "late, even where it is still ours"),
            (Some(2), found("other", 0), Step::Lost, "taken"),
            (Some(2), found("", 0), Step::Lost, "released by somebody else"),
        ];
        for (since, read, step, why) in table {
            let since = since.map(Duration::from_secs);
            assert_eq!(decide("me", since, &read, &Terms::KUBERNETES), step, "{why}");
        }
    }

    #[test]
    fn a_leader_stops_before_a_standby_may_begin() {
        assert!(Terms::KUBERNETES.renew_within + Terms::KUBERNETES.every < Terms::KUBERNETES.lease);
    }
}
