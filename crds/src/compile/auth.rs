//! Pure: who may call a gateway and what each sees, as its daemons decide it; and what of it cannot be served.

use kube::ResourceExt;

use super::{
    Platform, Refusal,
    accept::{ensure, invalid},
    address,
};
use crate::auth::{
    AllowedServiceAccount, DeniedCaller, GatewayAccessRule, GatewayAuth, Oidc, ServiceAccountAuth,
};
use crate::config::{AccessRule, AuthConfig, ClaimValues, Denied, OidcConfig, ServiceAccountConfig};
use crate::{MCPGateway, auth, rule, secrets};

/// Whether callers can be told apart as it is written.
pub(super) fn accept(auth: &GatewayAuth, platform: &Platform) -> Result<(), Refusal> {
    let GatewayAuth { oidc, service_account, anonymous, delegation: _, denied } = auth;
    let told_apart = oidc.is_some() || service_account.is_some();
    ensure(told_apart || anonymous.is_some(), rule::AUTH_NEEDED)?;
    ensure(!told_apart || anonymous.is_none(), rule::ANONYMOUS_ALONE)?;
    ensure(anonymous.is_none() || denied.is_empty(), rule::DENIED_NOBODY)?;
    if let Some(oidc) = oidc {
        accept_oidc(oidc, platform)?;
    }
    if let Some(ServiceAccountAuth { audiences, allowed }) = service_account {
        ensure(platform.has_cluster, rule::NO_CLUSTER)?;
        accept_audiences(audiences)?;
        ensure(allowed.iter().all(|account| !account.namespace.is_empty()), rule::ALLOWED_ACCOUNTS)?;
    }
    ensure(denied.iter().all(|caller| !caller.subject.is_empty()), rule::DENIED)
}

/// Whether the access rules can be decided.
pub(super) fn accept_access(rules: &[GatewayAccessRule]) -> Result<(), Refusal> {
    rules.iter().try_for_each(|rule| accept_claims(&rule.claims))
}

fn accept_oidc(oidc: &Oidc, platform: &Platform) -> Result<(), Refusal> {
    ensure(address::is_public_url(&oidc.issuer), rule::ISSUER)?;
    address::check(&oidc.issuer, platform.allow_loopback)
        .map_err(|wrong| invalid(format!("spec.auth.oidc.issuer {wrong}")))?;
    accept_audiences(&oidc.audiences)?;
    // RFC 6749 §3.3. They are written into a header between quotes.
    let is_scope = |scope: &String| {
        !scope.is_empty()
            && scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
    };
    ensure(oidc.required_scopes.iter().all(is_scope), rule::SCOPES)?;
    accept_claims(&oidc.required_claims)
}

fn accept_audiences(audiences: &[String]) -> Result<(), Refusal> {
    ensure(!audiences.is_empty() && audiences.iter().all(|audience| !audience.is_empty()), rule::AUDIENCES)
}

fn accept_claims(claims: &[auth::ClaimValues]) -> Result<(), Refusal> {
    let decidable = |wanted: &auth::ClaimValues| !wanted.claim.is_empty() && !wanted.values.is_empty();
    ensure(claims.iter().all(decidable), rule::CLAIMS)
}

/// How the gateway's daemons tell callers apart.
pub(super) fn auth(gateway: &MCPGateway) -> AuthConfig {
    let GatewayAuth { oidc, service_account, anonymous: _, delegation: _, denied } = &gateway.spec.auth;
    let own = gateway.namespace().unwrap_or_default();
    let denied = denied
        .iter()
        .map(|DeniedCaller { issuer, subject }| Denied { issuer: issuer.clone(), subject: subject.clone() });
    AuthConfig {
        oidc: oidc.as_ref().map(oidc_config),
        service_account: service_account.as_ref().map(|accounts| account_config(accounts, own)),
        denied: denied.collect(),
    }
}

fn oidc_config(oidc: &Oidc) -> OidcConfig {
    let Oidc { issuer, audiences, allowed_clients, required_scopes, required_claims, ca_ref } = oidc;
    OidcConfig {
        issuer: issuer.clone(),
        audiences: audiences.clone(),
        allowed_clients: allowed_clients.clone(),
        required_scopes: required_scopes.clone(),
        required_claims: claims(required_claims),
        ca: ca_ref.as_ref().map(|_| secrets::OIDC_CA.to_owned()),
    }
}

/// Where nothing is written, the accounts of the gateway's own namespace are meant.
fn account_config(accounts: &ServiceAccountAuth, own_namespace: String) -> ServiceAccountConfig {
    let ServiceAccountAuth { audiences, allowed } = accounts;
    let named =
        |AllowedServiceAccount { namespace, name }: &AllowedServiceAccount| (namespace.clone(), name.clone());
    let allowed = if allowed.is_empty() {
        vec![(own_namespace, String::new())]
    } else {
        allowed.iter().map(named).collect()
    };
    ServiceAccountConfig { audiences: audiences.clone(), allowed }
}

/// What callers see and may call.
pub(super) fn access(rules: &[GatewayAccessRule]) -> Vec<AccessRule> {
    let rule =
        |GatewayAccessRule { subjects, claims: wanted, targets, tools }: &GatewayAccessRule| AccessRule {
            subjects: subjects.clone(),
            claims: claims(wanted),
            targets: targets.clone(),
            tools: tools.clone(),
        };
    rules.iter().map(rule).collect()
}

fn claims(wanted: &[auth::ClaimValues]) -> Vec<ClaimValues> {
    let one = |auth::ClaimValues { claim, values }: &auth::ClaimValues| ClaimValues {
        claim: claim.clone(),
        values: values.clone(),
    };
    wanted.iter().map(one).collect()
}
