//! One MCP endpoint as a daemon serves it. Types and their defaults only.

use serde::{Deserialize, Serialize};

use super::{AccessRule, AuthConfig, TargetConfig};

/// One MCP endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayConfig {
    /// The object's name.
    pub name: String,
    /// The object's namespace; empty in `moored serve`.
    pub namespace: String,
    /// The object's uid; empty in `moored serve`. Another uid is another gateway: its sessions are not ours.
    pub uid: String,
    /// The endpoint's path, such as `/mcp`.
    pub path: String,
    /// Who may call, and whom a session belongs to.
    pub auth: AuthConfig,
    /// What a caller sees and may call; where there is any rule, what none allows is hidden and refused.
    pub access: Vec<AccessRule>,
    /// Where session records live.
    pub store: StoreConfig,
    /// How sessions live and end.
    pub session: SessionConfig,
    /// Whether answers may be event streams.
    pub streaming: Streaming,
    /// How targets' tools are named to clients.
    pub naming: Naming,
    /// Host names accepted besides loopback and address literals; without port, lower case.
    pub hosts: Vec<String>,
    /// Origins accepted besides none and, on loopback, loopback; as browsers write them, lower case.
    pub origins: Vec<String>,
    /// The URL that clients use, where it is written.
    pub public_url: Option<String>,
    /// Networks whose `Forwarded` and `X-Forwarded-*` headers count, in CIDR notation.
    pub trusted_proxies: Vec<String>,
    /// Whether the endpoint speaks TLS: its certificate and key are in the daemon's secrets, as `tls.crt` and `tls.key`.
    pub tls: bool,
    /// What is refused for being too much.
    pub limits: LimitsConfig,
    /// The shutdown's budget.
    pub drain: DrainConfig,
    /// The targets, oldest object first: on a collision the older one wins.
    pub targets: Vec<TargetConfig>,
}

/// Where session records live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum StoreConfig {
    /// In the daemon: gone with it.
    #[default]
    Memory,
}

/// How sessions live and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionConfig {
    /// Whether there are sessions at all.
    pub mode: SessionMode,
    /// Seconds from `initialize` to the absolute end of a session.
    pub timeout_seconds: u32,
    /// Seconds without use after which a session ends; none where it never does for that.
    pub idle_timeout_seconds: Option<u32>,
    /// How many sessions one principal may have.
    pub max_per_principal: Option<u32>,
    /// Sessions that began before this time, in milliseconds since the epoch, end.
    pub end_before: Option<i64>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            mode: SessionMode::Stateful,
            timeout_seconds: 3600,
            idle_timeout_seconds: None,
            max_per_principal: None,
            end_before: None,
        }
    }
}

/// Whether there are sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionMode {
    /// `initialize` gives an id, and a record is stored.
    #[default]
    Stateful,
    /// No id is issued and nothing is stored; a target session lives for one request.
    Stateless,
}

/// Whether answers may be event streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Streaming {
    /// They may.
    #[default]
    Enabled,
    /// JSON only; GET is 405, and no target is offered elicitation and sampling.
    Disabled,
}

/// How a target's tool `t` is shown to clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Naming {
    /// As `alias`, `separator`, `t`.
    Prefixed {
        /// Between the alias and the tool's own name.
        separator: String,
    },
    /// As `t`; of equal names the older target's is shown.
    Plain,
}

impl Default for Naming {
    fn default() -> Self {
        Self::Prefixed { separator: "___".to_owned() }
    }
}

/// What is refused for being too much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitsConfig {
    /// The largest request body, in bytes; a larger one is answered 413.
    pub request_bytes: u64,
    /// Event streams open at once in one session.
    pub streams_per_session: u32,
    /// Requests in flight in one session.
    pub requests_in_flight_per_session: u32,
    /// Requests in flight in one daemon.
    pub requests_in_flight: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            request_bytes: 4 << 20,
            streams_per_session: 16,
            requests_in_flight_per_session: 64,
            requests_in_flight: 4096,
        }
    }
}

/// The shutdown's budget; see DESIGN §7 and `mooring_runtime::drain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainConfig {
    /// Seconds between unreadiness and the end of accepting, for endpoints to spread.
    pub delay_seconds: u32,
    /// Seconds that requests in flight then get.
    pub deadline_seconds: u32,
}

impl Default for DrainConfig {
    fn default() -> Self {
        Self { delay_seconds: 5, deadline_seconds: 30 }
    }
}
