//! Who calls: verifies bearer tokens and names the principal behind each. Decides nothing about sessions or targets,
//! and a token never leaves it in a log, a metric or an error.

mod bearer;
mod claims;
mod fetch;
mod keys;
mod policy;
mod provider;
mod refresh;
pub mod resource;
mod seen;
mod token;

use std::{fmt, sync::Arc};

use http::HeaderMap;
use mooring_crds::config::AuthConfig;
use mooring_runtime::Timestamp;

pub use self::claims::Claims;
use self::{
    fetch::Source,
    policy::{Judged, Policy},
    provider::Provider,
    seen::{Entry, Seen},
};
use crate::{config::secrets::Secrets, fault::Fault, gateway::Shared, session::record::Principal};

/// Who sent a request.
#[derive(Clone)]
pub struct Caller {
    /// Whom its sessions belong to.
    pub principal: Principal,
    /// What the token says; empty where there is none.
    pub claims: Claims,
    /// The verified token, for a token exchange. It never goes to a target.
    pub token: Option<Arc<str>>,
}

impl fmt::Debug for Caller {
    /// Never the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.principal).finish_non_exhaustive()
    }
}

impl Caller {
    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self { principal: Principal::Anonymous, claims: Claims::default(), token: None }
    }

    /// The subject as tokens name it; none where it is nobody in particular.
    pub fn subject(&self) -> Option<&str> {
        match self.principal {
            Principal::Anonymous => None,
            Principal::Oidc { .. } | Principal::ServiceAccount { .. } => self.claims.text("sub"),
        }
    }
}

/// The cluster's API server, whose keys verify the tokens of ServiceAccounts.
#[derive(Clone)]
pub struct Cluster(pub kube::Client);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

/// How a gateway tells who calls.
#[derive(Debug, Clone)]
pub enum Authenticator {
    /// It does not: everybody is nobody in particular.
    Anonymous,
    /// By bearer tokens of these providers.
    Bearer(Vec<Arc<Verifier>>),
}

/// One provider, what its tokens must say, and those that did so lately.
#[derive(Debug)]
pub struct Verifier {
    policy: Policy,
    provider: Arc<Provider>,
    seen: Seen,
}

impl Authenticator {
    /// Starts what the configuration wants; what `older` has of the same goes on, keys and all.
    pub fn new(auth: &AuthConfig, secrets: &Secrets, older: Option<&Self>, shared: &Shared) -> Self {
        let AuthConfig { oidc, service_account, denied: _ } = auth;
        if oidc.is_none() && service_account.is_none() {
            return Self::Anonymous;
        }
        let older: &[Arc<Verifier>] = match older {
            Some(Self::Bearer(verifiers)) => verifiers,
            Some(Self::Anonymous) | None => &[],
        };
        let of_provider = oidc.as_ref().map(|oidc| {
            // A bundle that is named and not there is an empty one: nobody is trusted in its place.
            let ca = oidc.ca.as_deref().map(|key| secrets.get(key).unwrap_or_default());
            let source = Source::provider(&oidc.issuer, ca, &shared.connector);
            Verifier::new(Policy::Oidc(oidc.clone()), source, older, shared)
        });
        let of_cluster = service_account.as_ref().and_then(|accounts| {
            let Some(Cluster(client)) = shared.cluster.clone() else {
                tracing::error!(
                    "auth.serviceAccount needs a cluster, and there is none: its tokens are refused"
                );
                return None;
            };
            let policy = Policy::ServiceAccount(accounts.clone());
            Some(Verifier::new(policy, Source::Cluster(client), older, shared))
        });
        Self::Bearer(of_provider.into_iter().chain(of_cluster).collect())
    }

    /// Says who sent a request with `headers`.
    ///
    /// # Errors
    /// [`Fault::MissingToken`], [`Fault::MalformedAuthorization`], [`Fault::InvalidToken`],
    /// [`Fault::InsufficientScope`], [`Fault::CallerNotAllowed`]; [`Fault::KeysAway`] where a token cannot be verified
    /// for lack of keys.
    pub async fn authenticate(&self, headers: &HeaderMap, now: Timestamp) -> Result<Caller, Fault> {
        let verifiers = match self {
            Self::Anonymous => return Ok(Caller::anonymous()),
            Self::Bearer(verifiers) => verifiers,
        };
        let token = bearer::token(headers)?;
        let hash = seen::hash(token);
        let seen =
            |verifier: &Arc<Verifier>| verifier.seen.find(&hash, verifier.provider.held().as_ref(), now);
        if let Some(caller) = verifiers.iter().find_map(seen) {
            return Ok(caller);
        }
        let unverified = token::peek(token)?;
        let stranger = Fault::InvalidToken("is of another issuer");
        let verifier =
            verifiers.iter().find(|verifier| verifier.may_be_of(&unverified.issuer)).ok_or(stranger)?;
        // Boxed: nearly always a token was seen before.
        Box::pin(verifier.verify(token, &unverified, hash, now)).await
    }

    /// The issuer of the cluster's ServiceAccounts, once it is known.
    pub fn cluster_issuer(&self) -> Option<String> {
        let Self::Bearer(verifiers) = self else { return None };
        let of_cluster = |verifier: &&Arc<Verifier>| matches!(verifier.policy, Policy::ServiceAccount(_));
        Some(verifiers.iter().find(of_cluster)?.provider.held()?.issuer.clone())
    }
}

impl Verifier {
    fn new(policy: Policy, source: Source, older: &[Arc<Self>], shared: &Shared) -> Arc<Self> {
        let kept = older.iter().find(|verifier| verifier.provider.is_of(&source));
        if let Some(same) = kept.filter(|verifier| verifier.policy == policy) {
            return Arc::clone(same);
        }
        let provider = kept.map_or_else(
            || Provider::start(source, &shared.tasks),
            |verifier| Arc::clone(&verifier.provider),
        );
        Arc::new(Self { policy, provider, seen: Seen::default() })
    }

    /// Whether a token that names `issuer` may be one of this provider's. The cluster's issuer is known only once it was
    /// asked for.
    fn may_be_of(&self, issuer: &str) -> bool {
        match &self.policy {
            Policy::Oidc(config) => config.issuer == issuer,
            Policy::ServiceAccount(_) => self.provider.held().is_none_or(|keys| keys.issuer == issuer),
        }
    }

    async fn verify(
        &self,
        token: &str,
        unverified: &token::Unverified,
        hash: seen::Hash,
        now: Timestamp,
    ) -> Result<Caller, Fault> {
        let keys =
            self.provider.keys(|keys| token::has_key(keys, unverified)).await.ok_or(Fault::KeysAway)?;
        let claims = token::verify(token, unverified, &keys)?;
        let Judged { principal, until } = self.policy.judge(&claims, &keys.issuer, now)?;
        let caller = Caller { principal, claims, token: Some(token.into()) };
        self.seen.keep(hash, Entry { caller: caller.clone(), keys, until }, now);
        Ok(caller)
    }
}

#[cfg(test)]
#[path = "auth/tests.rs"]
mod tests;
