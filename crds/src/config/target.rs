//! One MCP server behind a gateway, as a daemon reaches it. Types and their defaults only: holds no secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One MCP server behind a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetConfig {
    /// Unique in the gateway: the prefix of its tools, and its name in logs, metrics and errors.
    pub alias: String,
    /// The object's name.
    pub name: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's uid, or in `moored serve` something as unique. The key of target sessions in a record.
    pub uid: String,
    /// Where it is: an absolute http or https URL. Empty where `command` is there.
    pub url: String,
    /// The ready addresses behind a Service, `address:port`, sorted. Empty where they are not known.
    pub endpoints: Vec<String>,
    /// A local process that speaks MCP on stdio: `moored serve` only.
    pub command: Option<CommandConfig>,
    /// The transport.
    pub protocol: Protocol,
    /// Where lists come from.
    pub listing: Listing,
    /// How it is trusted, and we to it.
    pub tls: TlsConfig,
    /// What we authenticate with.
    pub credentials: Option<CredentialsConfig>,
    /// A client's headers that are handed on, lower case.
    pub request_headers: Vec<String>,
    /// The target's headers that are handed on, lower case.
    pub response_headers: Vec<String>,
    /// A client's query parameters that are handed on.
    pub query_parameters: Vec<String>,
    /// Which of its tools are there at all.
    pub tools: ToolFilter,
    /// How long it may take.
    pub timeouts: TimeoutsConfig,
    /// What happens when it forgets a session.
    pub on_session_loss: OnSessionLoss,
}

impl TargetConfig {
    /// The keys of the secrets that it names.
    pub fn secret_keys(&self) -> Vec<&str> {
        let TlsConfig { ca, client_certificate } = &self.tls;
        let tls = [ca, client_certificate].into_iter().flatten().map(String::as_str);
        let credentials: Vec<&str> = match &self.credentials {
            None | Some(CredentialsConfig::ServiceAccountToken { .. }) => Vec::new(),
            Some(CredentialsConfig::Headers { headers }) => headers.values().map(String::as_str).collect(),
            Some(CredentialsConfig::ClientCredentials(client) | CredentialsConfig::TokenExchange(client)) => {
                vec![client.client_id.as_str(), client.client_secret.as_str()]
            }
        };
        tls.chain(credentials).collect()
    }
}

/// A local process that speaks MCP on stdio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommandConfig {
    /// The program and its arguments. Never empty.
    pub command: Vec<String>,
    /// Variables besides those that every process gets.
    pub env: BTreeMap<String, String>,
    /// Whose process it is.
    pub isolation: Isolation,
}

/// Whose process a stdio target is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// One for each session.
    #[default]
    PerSession,
    /// One for all.
    Shared,
}

/// The transport towards a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// Streamable HTTP, or HTTP+SSE where that is not what it answers to.
    #[default]
    Auto,
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE, the two-endpoint transport of 2024-11-05.
    Sse,
}

/// Where a target's lists come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listing {
    /// The gateway's own session.
    #[default]
    Catalog,
    /// The client session's own target session.
    PerSession,
}

/// How a target is trusted, and we to it: keys in the daemon's secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsConfig {
    /// The CA bundle, PEM; none where public roots are meant.
    pub ca: Option<String>,
    /// Our certificate and its key, PEM, in one; none where we have none.
    pub client_certificate: Option<String>,
}

/// What we authenticate with at a target: keys in the daemon's secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum CredentialsConfig {
    /// Static headers: name, and the key of its value.
    Headers {
        /// By name, lower case.
        headers: BTreeMap<String, String>,
    },
    /// OAuth 2.0 client credentials (RFC 6749 §4.4).
    ClientCredentials(TokenClient),
    /// Token exchange (RFC 8693); the subject is the caller.
    TokenExchange(TokenClient),
    /// A token of the gateway's own ServiceAccount, by TokenRequest.
    ServiceAccountToken {
        /// Whom it is for.
        audience: String,
        /// How long it lives, in seconds.
        expiration_seconds: u32,
    },
}

/// A client of a token endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenClient {
    /// The token endpoint.
    pub token_url: String,
    /// The key of the client's id.
    pub client_id: String,
    /// The key of the client's secret.
    pub client_secret: String,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
    /// The audience to ask for.
    pub audience: Option<String>,
}

/// Which of a target's tools are there: glob patterns on its own names; deny wins, and no allow allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolFilter {
    /// Patterns of those that are there; all where it is empty.
    pub allow: Vec<String>,
    /// Patterns of those that are not.
    pub deny: Vec<String>,
}

/// How long a target may take, in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeoutsConfig {
    /// To connect and to be answered `initialize`.
    pub connect_seconds: u32,
    /// A request may be silent; progress restarts it.
    pub request_seconds: u32,
    /// A client may take to answer a request of the target's.
    pub client_answer_seconds: u32,
    /// A request may take in all.
    pub maximum_seconds: u32,
    /// Others for some tools; the first that matches counts.
    pub overrides: Vec<TimeoutOverride>,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        Self {
            connect_seconds: 5,
            request_seconds: 300,
            client_answer_seconds: 600,
            maximum_seconds: 3600,
            overrides: Vec::new(),
        }
    }
}

/// Other times for some tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeoutOverride {
    /// Glob patterns on the target's own names.
    pub tools: Vec<String>,
    /// See [`TimeoutsConfig::request_seconds`].
    pub request_seconds: Option<u32>,
    /// See [`TimeoutsConfig::maximum_seconds`].
    pub maximum_seconds: Option<u32>,
}

/// What happens when a target forgets a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnSessionLoss {
    /// Calls to it in the session fail until the client initialises again.
    #[default]
    Fail,
    /// A new one is made, once, and a call that was refused before execution is repeated.
    Reinitialize,
}
