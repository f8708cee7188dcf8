//! Seals what clients carry for us and must neither read nor change. The key is this process's own.

/// What a seal is longer than what it seals, in bytes, beside its nonce.
pub use aws_lc_rs::aead::MAX_TAG_LEN as TAG_LEN;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Why there is no seal.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no randomness, or the cryptographic library refuses its own algorithm")]
pub struct NoSeal;

/// Seals and opens.
pub struct Seal(RandomizedNonceKey);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// One with a new key.
    ///
    /// # Errors
    /// [`NoSeal`].
    pub fn new() -> Result<Self, NoSeal> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| NoSeal)?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).map(Self).map_err(|_| NoSeal)
    }

    /// `plain` as text of visible ASCII, bound to `context`: it opens only with the same one.
    ///
    /// # Errors
    /// [`NoSeal`].
    pub fn seal(&self, context: &[u8], plain: Vec<u8>) -> Result<String, NoSeal> {
        let mut sealed = plain;
        let nonce = self.0.seal_in_place_append_tag(Aad::from(context), &mut sealed).map_err(|_| NoSeal)?;
        let mut text = String::with_capacity((NONCE_LEN + sealed.len()).div_ceil(3) * 4);
        // A nonce is 12 bytes: its text ends where a byte does, and reads as one with what follows.
        URL_SAFE_NO_PAD.encode_string(nonce.as_ref(), &mut text);
        URL_SAFE_NO_PAD.encode_string(&sealed, &mut text);
        Ok(text)
    }

    /// What was sealed; none where it was not sealed by us, or not for `context`.
    pub fn open(&self, context: &[u8], text: &str) -> Option<Vec<u8>> {
        let mut all = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = all.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, Aad::from(context), sealed).ok()?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_only_in_its_own_context_and_unchanged() {
        let seal = Seal::new().unwrap();
        let text = seal.seal(b"session", b"secret".to_vec()).unwrap();
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains('.'));
        assert_eq!(seal.open(b"session", &text).as_deref(), Some(b"secret".as_ref()));
        assert_eq!(seal.open(b"another", &text), None);
        assert_eq!(Seal::new().unwrap().open(b"session", &text), None);
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(seal.open(b"session", &String::from_utf8(forged).unwrap()), None, "byte {at}");
        }
        assert_eq!(seal.open(b"session", ""), None);
    }
}
