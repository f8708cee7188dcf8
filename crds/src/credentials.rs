//! What a gateway authenticates with at a target. Types and rules of the schema only: holds no secret.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{SecretKeyReference, SecretReference};
use crate::rule;

/// What a gateway authenticates with at a server: type, and the member of that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(has(self.headers) && size(self.headers) > 0) == (self.type == 'Headers')")
    .message(rule::CREDENTIALS_HEADERS))]
#[x_kube(validation = Rule::new("has(self.clientCredentials) == (self.type == 'ClientCredentials')")
    .message(rule::CREDENTIALS_CLIENT))]
#[x_kube(validation = Rule::new("has(self.tokenExchange) == (self.type == 'TokenExchange')")
    .message(rule::CREDENTIALS_EXCHANGE))]
#[x_kube(validation = Rule::new("has(self.serviceAccountToken) == (self.type == 'ServiceAccountToken')")
    .message(rule::CREDENTIALS_ACCOUNT))]
pub struct Credentials {
    /// Headers, ClientCredentials, TokenExchange or ServiceAccountToken.
    #[serde(rename = "type")]
    pub kind: CredentialsType,
    /// Headers with values from Secrets, with type Headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub headers: Vec<SecretHeader>,
    /// A token by OAuth's client credentials, with type ClientCredentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_credentials: Option<ClientCredentials>,
    /// The caller's token exchanged for another (RFC 8693), with type TokenExchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_exchange: Option<TokenExchange>,
    /// A token of the gateway's own ServiceAccount, with type ServiceAccountToken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_token: Option<ServiceAccountToken>,
}

/// How a gateway authenticates at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CredentialsType {
    /// Headers from Secrets.
    Headers,
    /// OAuth client credentials.
    ClientCredentials,
    /// OAuth token exchange, the caller as subject.
    TokenExchange,
    /// A token of the gateway's ServiceAccount.
    ServiceAccountToken,
}

/// A header whose value is in a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretHeader {
    /// The header's name, such as Authorization.
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9-]+$')")
        .message(rule::HEADER_NAME))]
    #[x_kube(validation = Rule::new("self.lowerAscii() != 'mcp-session-id'")
        .message(rule::SESSION_ID_HEADER))]
    #[x_kube(validation = Rule::new("self.lowerAscii() == 'mcp-session-id' || !(self.lowerAscii().startsWith('mcp-') || self.lowerAscii().startsWith('x-forwarded-') || self.lowerAscii() in ['host', 'forwarded', 'last-event-id', 'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'content-length', 'content-type', 'accept'])")
        .message(rule::ROUTING_HEADER))]
    pub name: String,
    /// Where its value is.
    pub secret_ref: SecretKeyReference,
}

/// A token by OAuth's client credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCredentials {
    /// The token endpoint: https, or http to a name inside the cluster.
    #[serde(rename = "tokenURL")]
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[^/?#@ ]+([/?][^#@ ]*)?$')")
        .message(rule::TOKEN_URL))]
    pub token_url: String,
    /// A Secret with the keys client_id and client_secret; both are needed.
    pub client_secret_ref: SecretReference,
    /// Scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub scopes: Vec<String>,
    /// The audience to ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub audience: Option<String>,
}

/// The caller's token exchanged for another (RFC 8693).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The token endpoint: https, or http to a name inside the cluster.
    #[serde(rename = "tokenURL")]
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[^/?#@ ]+([/?][^#@ ]*)?$')")
        .message(rule::TOKEN_URL))]
    pub token_url: String,
    /// A Secret with the keys client_id and client_secret; both are needed.
    pub client_secret_ref: SecretReference,
    /// The audience to ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub audience: Option<String>,
    /// Scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub scopes: Vec<String>,
}

/// A token of the gateway's own ServiceAccount, by TokenRequest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountToken {
    /// The token's audience. The API server's own, such as kubernetes and https://kubernetes.default.svc, is refused.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("!self.lowerAscii().matches('^(https?://kubernetes.*|kubernetes([.:/].*)?|k3s)$')")
        .message(rule::TOKEN_AUDIENCE))]
    pub audience: String,
    /// Seconds the token is valid, at least 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 600))]
    pub expiration_seconds: Option<i32>,
}
