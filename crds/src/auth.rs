//! Who may call: authentication, delegation, denial, access rules. Types only; nothing here verifies a caller.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::CaReference;
use crate::rule;

/// Nothing but its presence: anybody who reaches the endpoint is served, and sessions are bound to nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::empty_structs_with_brackets,
    reason = "it is written as {}; without brackets it would be null"
)]
pub struct Anonymous {}

/// Who may call a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.oidc) || has(self.serviceAccount) || has(self.anonymous)")
    .message(rule::AUTH_NEEDED))]
#[x_kube(validation = Rule::new("!has(self.anonymous) || (!has(self.oidc) && !has(self.serviceAccount))")
    .message(rule::ANONYMOUS_ALONE))]
#[x_kube(validation = Rule::new("!has(self.anonymous) || !has(self.denied) || size(self.denied) == 0")
    .message(rule::DENIED_NOBODY))]
pub struct GatewayAuth {
    /// Bearer tokens of an OpenID Connect issuer. The caller is issuer and subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// Tokens of ServiceAccounts of this cluster. The caller is the ServiceAccount and its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountAuth>,
    /// Written as {}: anybody who reaches the endpoint is served, and sessions are bound to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Anonymous>,
    /// Agents that may act for a session's owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// Callers whose sessions end and who begin no new ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["issuer".into(), "subject".into()]))]
    pub denied: Vec<DeniedCaller>,
}

/// Who may call an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.oidc) || has(self.serviceAccount) || has(self.anonymous)")
    .message("auth says nobody may call; write oidc, serviceAccount, or, to serve whoever may port-forward, anonymous: {}"))]
#[x_kube(validation = Rule::new("!has(self.anonymous) || (!has(self.oidc) && !has(self.serviceAccount))")
    .message(rule::ANONYMOUS_ALONE))]
#[x_kube(validation = Rule::new("!has(self.anonymous) || !has(self.denied) || size(self.denied) == 0")
    .message(rule::DENIED_NOBODY))]
pub struct AgentAuth {
    /// Bearer tokens of an OpenID Connect issuer. The caller is issuer and subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// Tokens of ServiceAccounts of this cluster. The caller is the ServiceAccount and its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountAuth>,
    /// Written as {}: the front listens on loopback only, for kubectl port-forward; sessions are bound to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Anonymous>,
    /// Callers whose sessions end and who begin no new ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["issuer".into(), "subject".into()]))]
    pub denied: Vec<DeniedCaller>,
}

/// An OpenID Connect issuer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Oidc {
    /// The issuer, exactly as in the tokens' iss.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[^?#@ ]+$')")
        .message(rule::ISSUER))]
    pub issuer: String,
    /// Audiences; a token must carry one of them.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub audiences: Vec<String>,
    /// Clients (azp or client_id) whose tokens are taken; any where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_clients: Vec<String>,
    /// Scopes a token must carry, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub required_scopes: Vec<String>,
    /// Claims a token must carry, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["claim".into()]))]
    pub required_claims: Vec<ClaimValues>,
    /// Whom to trust when asking the issuer for its keys; the public authorities where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<CaReference>,
}

/// A claim and the values it may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimValues {
    /// The claim's name, such as groups.
    #[schemars(length(min = 1, max = 256))]
    pub claim: String,
    /// The claim, or one element of it where it is a list, is one of these.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub values: Vec<String>,
}

/// Tokens of ServiceAccounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountAuth {
    /// Audiences; a token must carry one of them.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub audiences: Vec<String>,
    /// The ServiceAccounts; those of the object's own namespace where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub allowed: Vec<AllowedServiceAccount>,
}

/// One ServiceAccount, or all of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedServiceAccount {
    /// The namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The ServiceAccount's name; empty is every one of the namespace.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
}

/// Agents that may act for a session's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// The agents.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into(), "namespace".into()]))]
    pub agents: Vec<DelegatedAgent>,
}

/// One agent, and for whom it may act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DelegatedAgent {
    /// The ACPAgent's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; empty is the gateway's own.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Owners it may act for; all where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub subjects: Vec<String>,
}

/// A caller that is no longer served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeniedCaller {
    /// The issuer; empty is every issuer, and the cluster's for ServiceAccounts.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub issuer: String,
    /// The subject, exactly as in the tokens' sub.
    #[schemars(length(min = 1, max = 512))]
    pub subject: String,
}

/// What some callers see and may call at a gateway. Where there is any rule, what none allows is hidden and refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayAccessRule {
    /// Callers by subject; any where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub subjects: Vec<String>,
    /// Callers by claims, all of them; any where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["claim".into()]))]
    pub claims: Vec<ClaimValues>,
    /// Targets by alias; all where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub targets: Vec<String>,
    /// Tools by their target's own names, * standing for any characters; all where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub tools: Vec<String>,
}

/// Which callers an agent serves. Where there is any rule, whom none allows is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentAccessRule {
    /// Callers by subject; any where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub subjects: Vec<String>,
    /// Callers by claims, all of them; any where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["claim".into()]))]
    pub claims: Vec<ClaimValues>,
}
