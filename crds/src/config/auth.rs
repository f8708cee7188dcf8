//! Who may call a gateway, as a daemon decides it. Types only; nothing here verifies a caller.

use serde::{Deserialize, Serialize};

/// How callers are told apart. With neither way of authentication every session belongs to the one anonymous principal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthConfig {
    /// Tokens of an OpenID Connect provider.
    pub oidc: Option<OidcConfig>,
    /// Tokens of the cluster's ServiceAccounts.
    pub service_account: Option<ServiceAccountConfig>,
    /// Callers whose sessions end and who begin no new ones.
    pub denied: Vec<Denied>,
}

/// Tokens of an OpenID Connect provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OidcConfig {
    /// As in the tokens' `iss`.
    pub issuer: String,
    /// A token must be for one of these.
    pub audiences: Vec<String>,
    /// Clients (`azp` or `client_id`) that may call; all where it is empty.
    pub allowed_clients: Vec<String>,
    /// Scopes that a token must have, each.
    pub required_scopes: Vec<String>,
    /// Claims that a token must have.
    pub required_claims: Vec<ClaimValues>,
    /// The key of the CA bundle, PEM, in the daemon's secrets; none where public roots are meant.
    pub ca: Option<String>,
}

/// Tokens of the cluster's ServiceAccounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceAccountConfig {
    /// A token must be for one of these.
    pub audiences: Vec<String>,
    /// `(namespace, name)` of those that may call; an empty name means all of the namespace. Never empty.
    pub allowed: Vec<(String, String)>,
}

/// A claim and the values that it may have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimValues {
    /// The claim.
    pub claim: String,
    /// One of these.
    pub values: Vec<String>,
}

/// A caller that is denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Denied {
    /// The token's issuer; empty means any.
    pub issuer: String,
    /// The token's subject.
    pub subject: String,
}

/// What some callers see and may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessRule {
    /// Subjects that it is for; all where it is empty.
    pub subjects: Vec<String>,
    /// Claims that a caller must have, each.
    pub claims: Vec<ClaimValues>,
    /// Aliases of targets; all where it is empty.
    pub targets: Vec<String>,
    /// Glob patterns on the targets' own names of tools; all where it is empty.
    pub tools: Vec<String>,
}
