//! Pure: the keys that a provider signs with (RFC 7517), and which of them a token may be verified with.

use std::collections::BTreeSet;

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;

/// The most keys that are read of one provider.
const MOST_KEYS: usize = 64;

/// The keys of one provider at one time. Equal where the provider publishes the same, in whatever order.
#[derive(Debug)]
pub(super) struct Keys {
    /// The provider's issuer.
    pub issuer: String,
    usable: Vec<Key>,
    published: BTreeSet<String>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: &'static [Algorithm],
    /// Where the provider says which one it is for.
    only: Option<String>,
    decoding: DecodingKey,
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        (&self.issuer, &self.published) == (&other.issuer, &other.published)
    }
}

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Whether tokens may be signed by `algorithm` at all: never with a shared secret, and never not.
pub(super) fn allowed(algorithm: Algorithm) -> bool {
    RSA.contains(&algorithm) || [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA].contains(&algorithm)
}

impl Keys {
    /// Reads a JWK set. A key that we cannot use is passed over: providers publish some for other purposes.
    ///
    /// # Errors
    /// Where it is no JWK set.
    pub(super) fn parse(issuer: &str, json: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let Set { keys } = serde_json::from_slice(json)?;
        let usable = keys.into_iter().filter_map(|raw| Some((Key::read(&raw)?, raw.to_string())));
        let (usable, published) = usable.take(MOST_KEYS).unzip();
        Ok(Self { issuer: issuer.to_owned(), usable, published })
    }

    /// Those that a token of this header may be verified with.
    pub(super) fn fitting<'k>(
        &'k self,
        id: Option<&'k str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'k DecodingKey> {
        let fits = move |key: &&Key| {
            // A provider that names neither has one key, or wants all of them tried.
            id.is_none_or(|id| key.id.as_deref().is_none_or(|own| own == id))
                && key.algorithms.contains(&algorithm)
                && key.only.as_ref().is_none_or(|only| *only == format!("{algorithm:?}"))
        };
        self.usable.iter().filter(fits).map(|key| &key.decoding)
    }
}

impl Key {
    fn read(raw: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(raw.clone()).ok()?;
        let common = &jwk.common;
        let signs = common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        let algorithms: &'static [Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                &[Algorithm::ES256]
            }
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => {
                &[Algorithm::ES384]
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                &[Algorithm::EdDSA]
            }
            AlgorithmParameters::EllipticCurve(_)
            | AlgorithmParameters::OctetKeyPair(_)
            | AlgorithmParameters::OctetKey(_)
            | AlgorithmParameters::Other(_)
            | _ => return None,
        };
        let only = raw.get("alg").and_then(Value::as_str).map(str::to_owned);
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        signs.then(|| Self { id: common.key_id.clone(), algorithms, only, decoding })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ed(id: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    fn read(keys: &[Value]) -> Keys {
        Keys::parse("https://id.example", json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn only_keys_that_verify_signatures_by_an_algorithm_of_ours_are_taken() {
        let with = |name: &str, value: Value| {
            let mut key = ed("a");
            key[name] = value;
            key
        };
        let keys = [
            with("use", json!("enc")),
            with("key_ops", json!(["encrypt"])),
            with("crv", json!("Ed448")),
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a"}),
            json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "a"}),
            json!({"kty": "new", "kid": "a"}),
            json!("no key"),
        ];
        assert_eq!(read(&keys).usable.len(), 0);
        assert_eq!(read(&[with("use", json!("sig")), with("key_ops", json!(["verify"]))]).usable.len(), 2);
        assert!(Keys::parse("i", br#"{"keys":{}}"#).is_err());
    }

    #[test]
    fn a_key_fits_by_its_id_and_only_for_its_own_algorithm() {
        let mut bound = ed("b");
        bound["alg"] = json!("ES256");
        let keys = read(&[ed("a"), bound]);
        let fitting = |id, algorithm| keys.fitting(id, algorithm).count();
        assert_eq!(fitting(Some("a"), Algorithm::EdDSA), 1);
        assert_eq!(fitting(None, Algorithm::EdDSA), 1);
        assert_eq!(fitting(Some("b"), Algorithm::EdDSA), 0, "the provider says it is for another algorithm");
        assert_eq!(fitting(Some("c"), Algorithm::EdDSA), 0);
        for other in [Algorithm::RS256, Algorithm::ES256, Algorithm::HS256] {
            assert_eq!(fitting(Some("a"), other), 0, "{other:?}");
        }
    }

    #[test]
    fn sets_are_equal_in_any_order_and_not_after_a_key_was_removed() {
        assert_eq!(read(&[ed("a"), ed("b")]), read(&[ed("b"), ed("a")]));
        assert_ne!(read(&[ed("a"), ed("b")]), read(&[ed("b")]));
    }

    #[test]
    fn no_token_is_signed_with_a_shared_secret() {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            assert!(!allowed(algorithm), "{algorithm:?}");
        }
        assert!(allowed(Algorithm::RS256) && allowed(Algorithm::EdDSA));
    }
}
