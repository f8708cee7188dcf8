//! Tests of tokens that are really signed, by keys made here: which are believed, and which are not.

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        RsaKeyPair,
    },
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};

use super::{keys::Keys, *};

#[path = "issuers_tests.rs"]
mod issuers;

const ISSUER: &str = "https://id.example";

/// A key of a provider, to sign with and to publish.
struct Signer {
    key: EncodingKey,
    algorithm: Algorithm,
    id: &'static str,
}

fn signer(algorithm: Algorithm, id: &'static str) -> Signer {
    let random = SystemRandom::new();
    let pkcs8 = |algorithm| EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let elliptic = |algorithm| EncodingKey::from_ec_der(pkcs8(algorithm).as_ref());
    let key = if algorithm == Algorithm::ES256 {
        elliptic(&ECDSA_P256_SHA256_FIXED_SIGNING)
    } else if algorithm == Algorithm::ES384 {
        elliptic(&ECDSA_P384_SHA384_FIXED_SIGNING)
    } else if algorithm == Algorithm::EdDSA {
        EncodingKey::from_ed_der(Ed25519KeyPair::generate_pkcs8v1(&random).unwrap().as_ref())
    } else {
        let der: Pkcs8V1Der<'_> = RsaKeyPair::generate(KeySize::Rsa2048).unwrap().as_der().unwrap();
        // The key itself (PKCS#1), behind what PKCS#8 says of a key of this size.
        EncodingKey::from_rsa_der(der.as_ref().get(26..).unwrap())
    };
    Signer { key, algorithm, id }
}

impl Signer {
    fn jwk(&self) -> Value {
        let mut jwk =
            serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(self.id);
        // An RSA key serves all of its family, unless its provider says otherwise.
        jwk.as_object_mut().unwrap().remove("alg");
        jwk
    }

    fn sign(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).unwrap()
    }

    fn header(&self, algorithm: Algorithm) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(algorithm) }
    }

    fn token(&self, claims: &Value) -> String {
        self.sign(&self.header(self.algorithm), claims)
    }
}

fn published(signers: &[&Signer]) -> Keys {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
    Keys::parse(ISSUER, json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn verified(token: &str, keys: &Keys) -> Result<Claims, Fault> {
    token::verify(token, &token::peek(token)?, keys)
}

fn claims() -> Value {
    json!({"iss": ISSUER, "sub": "alice"})
}

#[test]
fn a_token_is_verified_by_every_algorithm_that_is_allowed() {
    for algorithm in [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA] {
        let signer = signer(algorithm, "a");
        let said = verified(&signer.token(&claims()), &published(&[&signer]));
        assert_eq!(said.unwrap().text("sub"), Some("alice"), "{algorithm:?}");
    }
    let rsa = signer(Algorithm::RS256, "a");
    for algorithm in [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ] {
        let token = rsa.sign(&rsa.header(algorithm), &claims());
        assert!(verified(&token, &published(&[&rsa])).is_ok(), "{algorithm:?}");
    }
}

#[test]
fn a_token_of_another_key_or_changed_on_its_way_is_not_believed() {
    let (ours, theirs) = (signer(Algorithm::EdDSA, "a"), signer(Algorithm::EdDSA, "a"));
    let keys = published(&[&ours]);
    let token = ours.token(&claims());
    assert!(verified(&token, &keys).is_ok());
    let (head, signature) = token.rsplit_once('.').unwrap();
    let other = theirs.token(&json!({"iss": ISSUER, "sub": "root"}));
    let (other_head, _) = other.rsplit_once('.').unwrap();
    let changed = [
        other.clone(),
        format!("{other_head}.{signature}"),
        format!("{head}."),
        format!("{head}.{}", signature.replace(signature.chars().next().unwrap(), "")),
        format!("{token}A"),
    ];
    for token in changed {
        assert!(matches!(verified(&token, &keys), Err(Fault::InvalidToken(_))), "{token}");
    }
}

#[test]
fn the_key_id_chooses_and_a_token_without_one_is_tried_with_all() {
    let (a, b) = (signer(Algorithm::EdDSA, "a"), signer(Algorithm::EdDSA, "b"));
    let both = published(&[&a, &b]);
    assert!(verified(&b.token(&claims()), &both).is_ok());
    assert!(verified(&b.sign(&Header::new(Algorithm::EdDSA), &claims()), &both).is_ok());
    let named_a = Header { kid: Some("a".to_owned()), ..Header::new(Algorithm::EdDSA) };
    assert!(verified(&b.sign(&named_a, &claims()), &both).is_err());
    assert!(
        verified(&b.token(&claims()), &published(&[&a])).is_err(),
        "a key that was removed verifies nothing"
    );
}

#[test]
fn neither_a_shared_secret_nor_no_signature_nor_an_algorithm_of_another_key_is_taken() {
    let rsa = signer(Algorithm::RS256, "a");
    let keys = published(&[&rsa]);
    // The old trick: the public key, used as the secret of an HMAC.
    let secret = EncodingKey::from_secret(rsa.jwk()["n"].as_str().unwrap().as_bytes()).unwrap();
    let header = Header { kid: Some("a".to_owned()), ..Header::new(Algorithm::HS256) };
    let hmac = encode(&header, &claims(), &secret).unwrap();
    // {"alg":"none"} and {"iss":"https://id.example","sub":"alice"}, without a signature.
    let (_, payload) = hmac.rsplit_once('.').unwrap().0.rsplit_once('.').unwrap();
    let none = format!("eyJhbGciOiJub25lIn0.{payload}.");
    let edwards = signer(Algorithm::EdDSA, "a").token(&claims());
    for token in [hmac.as_str(), &none, &edwards, "", "a", "a.b", "a.b.c", "a.b.c.d"] {
        assert!(matches!(verified(token, &keys), Err(Fault::InvalidToken(_))), "{token}");
    }
}

#[test]
fn a_token_that_demands_what_we_do_not_understand_is_not_taken() {
    let key = signer(Algorithm::EdDSA, "a");
    let header = Header { crit: Some(vec!["exp2".to_owned()]), ..key.header(Algorithm::EdDSA) };
    assert!(verified(&key.sign(&header, &claims()), &published(&[&key])).is_err());
}

#[test]
fn a_token_never_shows_in_what_is_logged() {
    let token = signer(Algorithm::EdDSA, "a").token(&claims());
    let caller = Caller { token: Some(token.as_str().into()), ..Caller::anonymous() };
    assert!(!format!("{caller:?}").contains(&token));
}
