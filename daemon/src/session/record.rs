//! Pure: what a store keeps of a session. Everything another replica needs to serve it stands here.

use std::collections::BTreeMap;

use mooring_runtime::Timestamp;

use crate::version::Version;

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whom it belongs to.
    pub principal: Principal,
    /// When `initialize` was answered.
    pub created: Timestamp,
    /// Its absolute end. Fixed at the start: neither a restart nor a changed spec moves it.
    pub expires: Timestamp,
    /// The version negotiated with the client.
    pub version: Version,
    /// The client's `clientInfo`, raw JSON.
    pub client_info: Box<str>,
    /// By the target's uid, what it gave this session.
    pub targets: BTreeMap<Box<str>, Binding>,
}

/// Who is calling: never the bytes of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Nobody in particular.
    Anonymous,
}

/// A session's tie to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// The target's own session.
    Open {
        /// Its id; none where the target keeps no sessions.
        id: Option<Box<str>>,
        /// The version negotiated with the target.
        version: Version,
        /// The URL that gave it. At another URL it means nothing.
        url: Box<str>,
    },
    /// The target forgot it; calls are refused until the client initialises again.
    Lost,
}

impl Record {
    /// Whether its absolute end has come.
    pub fn expired(&self, now: Timestamp) -> bool {
        now >= self.expires
    }

    /// Whether it used targets and every one of them lost its session.
    pub fn all_targets_lost(&self) -> bool {
        !self.targets.is_empty() && self.targets.values().all(|binding| *binding == Binding::Lost)
    }

    /// This record with one more target, unless that target has a binding already: the first one wins.
    #[must_use]
    pub fn bound(&self, uid: &str, binding: Binding) -> Option<Self> {
        if self.targets.contains_key(uid) {
            return None;
        }
        let mut next = self.clone();
        next.targets.insert(uid.into(), binding);
        Some(next)
    }

    /// This record after `uid` lost the session `lost`; none where it has another one by now.
    #[must_use]
    pub fn without(&self, uid: &str, lost: &Binding) -> Option<Self> {
        if self.targets.get(uid) != Some(lost) {
            return None;
        }
        let mut next = self.clone();
        next.targets.insert(uid.into(), Binding::Lost);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    fn open(id: &str) -> Binding {
        Binding::Open { id: Some(id.into()), version: Version::V2025_06_18, url: "http://a/mcp".into() }
    }

    #[test]
    fn the_first_target_session_wins_and_only_that_one_can_be_lost() {
        let bound = record().bound("a", open("1")).unwrap();
        assert_eq!(bound.bound("a", open("2")), None);
        assert_eq!(bound.without("a", &open("2")), None);
        assert!(!bound.all_targets_lost());
        let lost = bound.without("a", &open("1")).unwrap();
        assert!(lost.all_targets_lost());
        assert_eq!(lost.bound("a", open("3")), None, "a lost target stays lost in this session");
        assert!(!lost.bound("b", open("4")).unwrap().all_targets_lost());
    }

    #[test]
    fn a_session_without_targets_has_lost_none() {
        assert!(!record().all_targets_lost());
    }
}
