//! Pure: what a store keeps of a session. Everything another replica needs to serve it stands here.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use mooring_runtime::Timestamp;

use crate::{capabilities::ClientCapabilities, fault::EndReason, version::Version};

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whom it belongs to.
    pub principal: Principal,
    /// When `initialize` was answered.
    pub created: Timestamp,
    /// Its absolute end. Fixed at the start: neither a restart nor a changed spec moves it.
    pub expires: Timestamp,
    /// How long it may go unused; for ever where none. Fixed at the start, too.
    pub idle: Option<Duration>,
    /// Its last use as far as it was written down: at most a quarter of `idle` before the last one, where it has that.
    pub used: Timestamp,
    /// The version negotiated with the client.
    pub version: Version,
    /// The client's `clientInfo`, raw JSON.
    pub client_info: Box<str>,
    /// What the client announced.
    pub capabilities: ClientCapabilities,
    /// The level of `logging/setLevel`, once the client has set one.
    pub log_level: Option<Box<str>>,
    /// By the target's uid, what it gave this session.
    pub targets: BTreeMap<Box<str>, Binding>,
}

/// Who is calling: never the bytes of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Nobody in particular.
    Anonymous,
    /// Whom an OpenID Connect provider vouches for.
    Oidc {
        /// The token's `iss`.
        issuer: Box<str>,
        /// The token's `sub`.
        subject: Box<str>,
    },
    /// A ServiceAccount of the cluster.
    ServiceAccount {
        /// Its namespace.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// Its uid: another account of that name is another principal.
        uid: Box<str>,
    },
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
        /// The address behind the Service that gave it, where that is known.
        endpoint: Option<SocketAddr>,
    },
    /// The target forgot it; calls are refused until the client initialises again, unless the target's policy is to begin a
    /// new one.
    Lost,
}

/// What a session takes in memory besides its texts: the record, the table's and the store's entries, its timer.
/// Estimated, and rounded up.
const SESSION_BYTES: usize = 1024;
/// The same for each tie to a target.
const BINDING_BYTES: usize = 512;

impl Record {
    /// About what the session takes in the memory of a replica that holds it.
    pub fn bytes(&self) -> usize {
        let tie = |(uid, binding): (&str, &Binding)| {
            let text = match binding {
                Binding::Open { id, url, .. } => id.as_ref().map_or(0, |id| id.len()) + url.len(),
                Binding::Lost => 0,
            };
            BINDING_BYTES + uid.len() + text
        };
        let texts = self.client_info.len() + self.capabilities.as_str().len();
        SESSION_BYTES + texts + self.ties().map(tie).sum::<usize>()
    }

    fn ties(&self) -> impl Iterator<Item = (&str, &Binding)> {
        self.targets.iter().map(|(uid, binding)| (&**uid, binding))
    }

    /// Whether it is over by what stands here: its absolute end has come, or it went unused for its idle timeout and
    /// for the quarter that a use may go without being written down.
    pub fn expired(&self, now: Timestamp) -> bool {
        self.end_reason(now).is_some()
    }

    /// As [`Self::expired`], and which of the two.
    pub fn end_reason(&self, now: Timestamp) -> Option<EndReason> {
        let unused = self.idle.map(|idle| self.used.plus(idle + idle / 4));
        if now >= self.expires {
            Some(EndReason::Expired)
        } else if unused.is_some_and(|end| now >= end) {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// This record after a use; none where it has that or a later one.
    #[must_use]
    pub fn used_at(&self, used: Timestamp) -> Option<Self> {
        (used > self.used).then(|| Self { used, ..self.clone() })
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

    /// This newer record and what `older` knew and could not be stored: ties that it lacks, and what is lost stays lost.
    /// None where that is nothing. Of an `older` that was stored whole, what is missing here was removed.
    #[must_use]
    pub fn with_unstored(&self, older: &Self) -> Option<Self> {
        let unstored = |(uid, binding): &(&str, &Binding)| {
            self.targets.get(*uid).is_none_or(|stored| **binding == Binding::Lost && *stored != Binding::Lost)
        };
        let mut unstored = older.ties().filter(unstored).peekable();
        unstored.peek()?;
        let mut next = self.clone();
        next.targets.extend(unstored.map(|(uid, binding)| (uid.into(), binding.clone())));
        Some(next)
    }

    /// This record without its tie to `uid`, so that the next use begins a new one; none where it has another one by now.
    #[must_use]
    pub fn untied(&self, uid: &str, gone: &Binding) -> Option<Self> {
        if self.targets.get(uid) != Some(gone) {
            return None;
        }
        let mut next = self.clone();
        next.targets.remove(uid);
        Some(next)
    }

    /// This record after `uid` lost the session `lost`; none where it has another one by now. One that never reached
    /// the record is lost all the same.
    #[must_use]
    pub fn without(&self, uid: &str, lost: &Binding) -> Option<Self> {
        if self.targets.get(uid).is_some_and(|binding| binding != lost) {
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
        Binding::Open {
            id: Some(id.into()),
            version: Version::V2025_06_18,
            url: "http://a/mcp".into(),
            endpoint: None,
        }
    }

    #[test]
    fn the_first_target_session_wins_and_only_that_one_can_be_lost() {
        let bound = record().bound("a", open("1")).unwrap();
        assert_eq!(bound.bound("a", open("2")), None);
        assert_eq!(bound.without("a", &open("2")), None);
        assert_eq!(record().without("a", &open("1")), bound.without("a", &open("1")));
        assert!(!bound.all_targets_lost());
        let lost = bound.without("a", &open("1")).unwrap();
        assert!(lost.all_targets_lost());
        assert_eq!(lost.bound("a", open("3")), None, "a lost target stays lost in this session");
        assert!(!lost.bound("b", open("4")).unwrap().all_targets_lost());
    }

    #[test]
    fn what_could_not_be_stored_holds_over_a_newer_record() {
        let (stored, unstored) =
            (record().bound("a", open("1")).unwrap(), record().bound("b", open("2")).unwrap());
        let both = stored.with_unstored(&unstored).unwrap();
        assert_eq!(both.targets.keys().map(|uid| &**uid).collect::<Vec<_>>(), ["a", "b"]);
        let lost = stored.without("a", &open("1")).unwrap();
        assert_eq!(stored.with_unstored(&lost).unwrap(), lost);
        assert_eq!(lost.with_unstored(&stored), None, "what is lost stays lost");
        assert_eq!(stored.with_unstored(&record()), None);
    }

    #[test]
    fn a_session_is_counted_with_no_fewer_bytes_than_its_parts_have() {
        // Twice the entries, since a map that has just grown is half empty.
        let entries = 2 * (size_of::<crate::store::Stored>() + 2 * size_of::<crate::session::id::Key>() + 8);
        let parts =
            size_of::<crate::session::Session>() + size_of::<Record>() + entries + record().client_info.len();
        let empty = record().bytes();
        assert!((parts..4 * parts).contains(&empty), "{parts} and {empty}");
        let tied = record().bound("a", open("1")).unwrap().bytes() - empty;
        let least = size_of::<crate::session::targets::TargetSession>() + size_of::<Binding>();
        assert!(tied > least, "{tied} and {least}");
    }

    #[test]
    fn a_stored_session_is_over_once_its_last_use_is_long_past_however_late_that_was_written() {
        let idle = Record { idle: Some(Duration::from_secs(100)), used: Timestamp(10_000), ..record() };
        assert_eq!(idle.end_reason(Timestamp(134_999)), None);
        assert_eq!(idle.end_reason(Timestamp(135_000)), Some(EndReason::Idle));
        assert_eq!(idle.end_reason(Timestamp(3_600_000)), Some(EndReason::Expired));
        let later = idle.used_at(Timestamp(20_000)).unwrap();
        assert_eq!(later.end_reason(Timestamp(135_000)), None);
        assert_eq!(later.used_at(Timestamp(20_000)), None);
        assert_eq!(record().end_reason(Timestamp(3_599_999)), None, "without a timeout it is never idle");
    }

    #[test]
    fn a_session_without_targets_has_lost_none() {
        assert!(!record().all_targets_lost());
    }
}
