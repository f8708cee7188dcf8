//! Pure: which verified tokens are taken, and whom each stands for. Takes the time as an argument.

use std::time::Duration;

use mooring_crds::config::{OidcConfig, ServiceAccountConfig};
use mooring_runtime::Timestamp;

use super::claims::Claims;
use crate::{fault::Fault, session::record::Principal};

/// How far clocks may be apart.
const LEEWAY: Duration = Duration::from_secs(30);

/// What a token must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Policy {
    /// A token of an OpenID Connect provider.
    Oidc(OidcConfig),
    /// A token of one of the cluster's ServiceAccounts.
    ServiceAccount(ServiceAccountConfig),
}

/// Whom a token stands for, and until when it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// The caller.
    pub principal: Principal,
    /// When the token is not taken any more.
    pub until: Timestamp,
}

impl Policy {
    /// Judges the claims of a token that a key of `issuer` signed.
    ///
    /// # Errors
    /// [`Fault::InvalidToken`] where it is not for us, or not for now; [`Fault::InsufficientScope`] and
    /// [`Fault::CallerNotAllowed`] where it is, and its bearer may not call all the same.
    pub(super) fn judge(&self, claims: &Claims, issuer: &str, now: Timestamp) -> Result<Judged, Fault> {
        if claims.text("iss") != Some(issuer) {
            return Err(Fault::InvalidToken("is of another issuer"));
        }
        let audiences = match self {
            Self::Oidc(config) => &config.audiences,
            Self::ServiceAccount(config) => &config.audiences,
        };
        if !claims.texts("aud").any(|audience| audiences.iter().any(|own| own == audience)) {
            return Err(Fault::InvalidToken("is for another audience"));
        }
        let until = times(claims, now)?;
        let principal = match self {
            Self::Oidc(config) => oidc(config, claims, issuer)?,
            Self::ServiceAccount(config) => service_account(config, claims)?,
        };
        Ok(Judged { principal, until })
    }
}

/// Checks `exp`, which must be there, and `nbf`, which may be (RFC 7519 §4.1.4, §4.1.5). Returns when it is too old.
fn times(claims: &Claims, now: Timestamp) -> Result<Timestamp, Fault> {
    let unreadable = |_| Fault::InvalidToken("has a time that is none");
    let expires = claims.time("exp").ok_or(Fault::InvalidToken("never expires"))?.map_err(unreadable)?;
    let until = Timestamp(expires).plus(LEEWAY);
    if now >= until {
        return Err(Fault::InvalidToken("has expired"));
    }
    if let Some(begins) = claims.time("nbf")
        && now.plus(LEEWAY) < Timestamp(begins.map_err(unreadable)?)
    {
        return Err(Fault::InvalidToken("is not valid yet"));
    }
    Ok(until)
}

fn oidc(config: &OidcConfig, claims: &Claims, issuer: &str) -> Result<Principal, Fault> {
    let OidcConfig { issuer: _, audiences: _, allowed_clients, required_scopes, required_claims, ca: _ } =
        config;
    let subject = claims.text("sub").ok_or(Fault::InvalidToken("names no subject"))?;
    let known = |client: &str| allowed_clients.iter().any(|allowed| allowed == client);
    if !allowed_clients.is_empty() && !claims.client().is_some_and(known) {
        return Err(Fault::CallerNotAllowed("this client may not call; see auth.oidc.allowedClients"));
    }
    let scopes: Vec<_> = claims.scopes().collect();
    if !required_scopes.iter().all(|required| scopes.contains(&required.as_str())) {
        return Err(Fault::InsufficientScope);
    }
    if !required_claims.iter().all(|required| claims.has(required)) {
        return Err(Fault::CallerNotAllowed(
            "a claim that callers must have is missing; see auth.oidc.requiredClaims",
        ));
    }
    Ok(Principal::Oidc { issuer: issuer.into(), subject: subject.into() })
}

/// The claims that the API server puts into the tokens of ServiceAccounts; an old kind of token, without them, is
/// not bound to an account's uid and not taken.
fn service_account(config: &ServiceAccountConfig, claims: &Claims) -> Result<Principal, Fault> {
    let of_account = |path: &[&str]| {
        let path: Vec<_> = std::iter::once("kubernetes.io").chain(path.iter().copied()).collect();
        claims.text_at(&path).ok_or(Fault::InvalidToken("is of no ServiceAccount"))
    };
    let namespace = of_account(&["namespace"])?;
    let (name, uid) = (of_account(&["serviceaccount", "name"])?, of_account(&["serviceaccount", "uid"])?);
    let ServiceAccountConfig { audiences: _, allowed } = config;
    let is_it = |(of, account): &(String, String)| of == namespace && (account.is_empty() || account == name);
    if !allowed.iter().any(is_it) {
        return Err(Fault::CallerNotAllowed(
            "this ServiceAccount may not call; see auth.serviceAccount.allowed",
        ));
    }
    Ok(Principal::ServiceAccount { namespace: namespace.into(), name: name.into(), uid: uid.into() })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
