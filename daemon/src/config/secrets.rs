//! What a daemon must not show: the values of the Secrets that its configuration names by key. Never logged.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// Values by key. The keys stand in the configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Arc<BTreeMap<String, Vec<u8>>>);

impl Secrets {
    /// These values.
    pub fn new(values: BTreeMap<String, Vec<u8>>) -> Self {
        Self(Arc::new(values))
    }

    /// Those of these keys that are there.
    pub fn only(&self, keys: &[&str]) -> Self {
        let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), self.0.get(*key)?.clone())));
        Self::new(kept.collect())
    }

    /// The value of `key`, where it is there.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_never_shows_in_what_is_logged() {
        let secrets = Secrets::new(BTreeMap::from([("a.token".to_owned(), b"hunter2".to_vec())]));
        let shown = format!("{secrets:?}");
        assert!(shown.contains("a.token") && !shown.contains("hunter2"), "{shown}");
        assert_eq!(secrets.get("a.token"), Some(b"hunter2".as_ref()));
    }
}
