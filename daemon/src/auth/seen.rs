//! Tokens that were verified lately, by their SHA-256, so that each is verified once a minute and not once a request.
//! Bounded in number; an entry ends with its token, with its key, or after a minute.

use std::{collections::HashMap, sync::Arc, time::Duration};

use mooring_runtime::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::{Caller, keys::Keys};

/// How long a verified token need not be verified again.
const LONGEST: Duration = Duration::from_secs(60);
/// How many are kept at most: twice this.
const HALF: usize = 4096;

/// The hash of a token.
pub(super) type Hash = [u8; 32];

/// The hash of `token`: what it is kept under.
pub(super) fn hash(token: &str) -> Hash {
    Sha256::digest(token).into()
}

/// What was verified lately. Two halves: when the younger is full it becomes the older, and the older is forgotten.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<[HashMap<Hash, Entry>; 2]>);

/// A token that was verified.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Whose it is.
    pub caller: Caller,
    /// The keys that verified it.
    pub keys: Arc<Keys>,
    /// When it ends.
    pub until: Timestamp,
}

impl Seen {
    /// Whose token this is, where it was verified lately with the keys that are still the provider's.
    pub(super) fn find(&self, hash: &Hash, keys: Option<&Arc<Keys>>, now: Timestamp) -> Option<Caller> {
        let halves = self.0.lock();
        let entry = halves.iter().find_map(|half| half.get(hash))?;
        let holds = now < entry.until && keys.is_some_and(|keys| Arc::ptr_eq(keys, &entry.keys));
        holds.then(|| entry.caller.clone())
    }

    /// Keeps a token that was verified just now.
    pub(super) fn keep(&self, hash: Hash, entry: Entry, now: Timestamp) {
        let entry = Entry { until: entry.until.min(now.plus(LONGEST)), ..entry };
        let [young, old] = &mut *self.0.lock();
        if young.len() >= HALF {
            *old = std::mem::take(young);
        }
        young.insert(hash, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(issuer: &str) -> Arc<Keys> {
        Arc::new(Keys::parse(issuer, br#"{"keys":[]}"#).unwrap())
    }

    fn keep(seen: &Seen, token: &str, keys: &Arc<Keys>, until: Timestamp) {
        let entry = Entry { caller: Caller::anonymous(), keys: Arc::clone(keys), until };
        seen.keep(hash(token), entry, NOW);
    }

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn a_verified_token_is_known_for_a_minute_or_until_it_or_its_key_ends() {
        let (seen, first, next) = (Seen::default(), keys("a"), keys("a"));
        let after = |seconds| NOW.plus(Duration::from_secs(seconds));
        keep(&seen, "long", &first, after(3600));
        keep(&seen, "short", &first, after(10));
        let known = |token, keys: &Arc<Keys>, at| seen.find(&hash(token), Some(keys), at).is_some();
        assert!(known("long", &first, after(59)) && known("short", &first, after(9)));
        assert!(!known("long", &first, after(60)) && !known("short", &first, after(10)));
        assert!(!known("long", &next, NOW), "its keys are the provider's no more");
        assert!(!known("other", &first, NOW));
        assert!(seen.find(&hash("long"), None, NOW).is_none());
    }

    #[test]
    fn however_many_tokens_come_few_are_kept_and_the_latest_are_known() {
        let (seen, keys) = (Seen::default(), keys("a"));
        let until = NOW.plus(LONGEST);
        for number in 0..5 * HALF {
            keep(&seen, &number.to_string(), &keys, until);
        }
        assert!(seen.0.lock().iter().map(HashMap::len).sum::<usize>() <= 2 * HALF);
        let latest = (4 * HALF + 1..5 * HALF)
            .all(|number| seen.find(&hash(&number.to_string()), Some(&keys), NOW).is_some());
        assert!(latest);
    }
}
