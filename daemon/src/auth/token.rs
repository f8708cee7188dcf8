//! Pure: reads a JSON Web Token and verifies its signature (RFC 7515, RFC 7519). What it says is judged elsewhere.

use jsonwebtoken::{Algorithm, Validation, dangerous::insecure_decode_claims, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    claims::Claims,
    keys::{Keys, allowed},
};
use crate::fault::Fault;

/// What a token says of itself before anything of it is believed: enough to choose whose keys to ask, and no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unverified {
    /// How it says it is signed: one of those that are allowed.
    pub algorithm: Algorithm,
    /// Which key it names.
    pub key_id: Option<String>,
    /// Who it says issued it.
    pub issuer: String,
}

/// Reads what a token says of itself.
///
/// # Errors
/// [`Fault::InvalidToken`], where it is none, or names an algorithm that is not allowed.
pub(super) fn peek(token: &str) -> Result<Unverified, Fault> {
    #[derive(Deserialize)]
    struct Issued {
        iss: String,
    }
    let header = decode_header(token).map_err(|_| Fault::InvalidToken("is no signed JSON Web Token"))?;
    if !allowed(header.alg) {
        return Err(Fault::InvalidToken("is signed by an algorithm that is not accepted"));
    }
    let Issued { iss } = insecure_decode_claims(token).map_err(|_| Fault::InvalidToken("names no issuer"))?;
    Ok(Unverified { algorithm: header.alg, key_id: header.kid, issuer: iss })
}

/// Whether `keys` has any that the token may have been signed with.
pub(super) fn has_key(keys: &Keys, unverified: &Unverified) -> bool {
    keys.fitting(unverified.key_id.as_deref(), unverified.algorithm).next().is_some()
}

/// The claims of a token that one of `keys` signed. Times, issuer and audience are judged by whoever knows what is wanted.
///
/// # Errors
/// [`Fault::InvalidToken`].
pub(super) fn verify(token: &str, unverified: &Unverified, keys: &Keys) -> Result<Claims, Fault> {
    let mut signature_alone = Validation::new(unverified.algorithm);
    signature_alone.required_spec_claims.clear();
    signature_alone.validate_exp = false;
    signature_alone.validate_aud = false;
    let verified = keys
        .fitting(unverified.key_id.as_deref(), unverified.algorithm)
        .find_map(|key| decode::<Map<String, Value>>(token, key, &signature_alone).ok());
    verified
        .map(|verified| Claims::from(verified.claims))
        .ok_or(Fault::InvalidToken("was not signed by a key of its issuer"))
}
