//! The values that a gateway's configuration names by key, as its one Secret is to hold them. Pure.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use mooring_crds::secrets::{Lacking, Resolved, SecretSource, Unresolved};

/// The most bytes of one value.
const MOST_OF_ONE: usize = 128 * 1024;

/// The most bytes of all values and their keys: a Secret holds 1 MiB, and one that is over it could not be written,
/// whatever changed.
const MOST_IN_ALL: usize = 768 * 1024;

/// The values that a configuration names by key, and those of them that are not to be had now.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// By key. What is not to be had now is as it last was: sessions that work go on.
    pub values: BTreeMap<String, Vec<u8>>,
    /// What leads to nothing.
    pub unresolved: Vec<Unresolved>,
    /// Whether values may be missing above that the Secret has: it stays as it is until they are known.
    pub partial: bool,
}

/// Shows keys, never values.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, unresolved, partial } = self;
        f.debug_struct("Credentials")
            .field("keys", &values.keys())
            .field("unresolved", unresolved)
            .field("partial", partial)
            .finish()
    }
}

/// What is known of the Secret as it was last written.
#[derive(Debug, Clone, Copy)]
pub enum Last<'a> {
    /// This.
    Written(&'a Secret),
    /// There is none.
    Absent,
    /// The Secrets that the operator made have not been listed yet.
    Unlisted,
}

impl Credentials {
    /// What was found of `sources`, the oldest target's first, and what `last` has of those that were not.
    pub fn new(sources: &[SecretSource], resolved: Resolved, last: Last<'_>) -> Self {
        let Resolved { values: mut found, mut unresolved, unread } = resolved;
        let (data, partial) = match last {
            Last::Written(secret) => (secret.data.as_ref(), false),
            // It may be there and have lost its label; a pod starts without it.
            Last::Absent => (None, !unread.is_empty()),
            Last::Unlisted => (None, !(unread.is_empty() && unresolved.is_empty())),
        };
        let kept = |key| data.and_then(|data| data.get(key)).map(|ByteString(kept)| kept.clone());
        let (mut values, mut room) = (BTreeMap::new(), MOST_IN_ALL);
        for source in sources {
            let mut lacks = |lacking| unresolved.push(Unresolved { source: source.clone(), lacking });
            let value = match found.remove(&source.key) {
                Some(value) if value.len() <= MOST_OF_ONE => Some(value),
                Some(_) => {
                    lacks(Lacking::Smaller(MOST_OF_ONE));
                    kept(&source.key)
                }
                None => kept(&source.key),
            };
            let Some(value) = value else { continue };
            match room.checked_sub(source.key.len().saturating_add(value.len())) {
                Some(rest) => {
                    room = rest;
                    values.insert(source.key.clone(), value);
                }
                None => lacks(Lacking::Room(MOST_IN_ALL)),
            }
        }
        Self { values, unresolved, partial }
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
