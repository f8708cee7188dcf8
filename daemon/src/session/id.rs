//! Pure but for the system's randomness: the wire id of a session, and the key under which everything keeps it.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use sha2::{Digest, Sha256};

/// What the client holds: 128 random bits as 32 hexadecimal digits (MCP: visible ASCII, not to be guessed).
#[derive(Clone, PartialEq, Eq)]
pub struct SessionId(u128);

/// A hash of the id: what stores, tables and logs know. It does not lead back to the id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl SessionId {
    /// A new id.
    ///
    /// # Errors
    /// Where the system has no randomness to give.
    pub fn mint() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// Reads exactly what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let strict = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if strict { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }

    /// The key that belongs to this id.
    pub fn key(&self) -> Key {
        let mut key = [0; 16];
        for (to, from) in key.iter_mut().zip(Sha256::digest(self.0.to_be_bytes())) {
            *to = from;
        }
        Key(key)
    }
}

/// Hashes a [`Key`], which is a hash already, by taking its last eight bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks_exact(8) {
            self.0 = chunk.try_into().map_or(self.0, u64::from_le_bytes);
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    /// Never the id: whoever reads a log must not be able to use the session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.key())
    }
}

impl fmt::Display for Key {
    /// The first half is enough for a person to tell sessions apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Key {
    /// Its bytes.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_reads() {
        let id = SessionId::mint().unwrap();
        let text = id.to_string();
        assert_eq!(SessionId::parse(&text).unwrap().key(), id.key());
        let (_, short) = text.split_at(1);
        for other in [short, &"A".repeat(32), "", " ", &format!("{text}0"), &format!("+{short}")] {
            assert!(SessionId::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn neither_key_nor_log_gives_the_id_away() {
        let id = SessionId::mint().unwrap();
        let text = id.to_string();
        let (start, _) = text.split_at(8);
        assert!(!format!("{id:?} {} {:?}", id.key(), id.key()).contains(start));
    }

    #[test]
    fn no_two_of_many_ids_are_equal() {
        let ids: std::collections::HashSet<String> =
            (0..10_000).map(|_| SessionId::mint().unwrap().to_string()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
