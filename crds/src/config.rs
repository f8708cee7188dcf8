//! The daemon's configuration and its report: what the operator writes the daemon reads, and back. Cannot do IO.
//!
//! Both are JSON in a ConfigMap. Operator and daemon may be one version apart, so unknown fields are tolerated
//! and fields added later have defaults.

use serde::{Deserialize, Serialize};

/// The key of the configuration in its ConfigMap, and the file name of the mounted copy.
pub const CONFIG_KEY: &str = "config.json";

/// The format that this version writes. A daemon refuses a higher one and keeps what it has.
pub const CONFIG_FORMAT: i32 = 1;

/// Everything one daemon serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonConfig {
    /// See [`CONFIG_FORMAT`].
    pub format: i32,
    /// One in a pod; any number in `moored serve`.
    pub gateways: Vec<GatewayConfig>,
}

/// One MCP endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    pub principals: Principals,
    /// Where session records live.
    pub store: StoreConfig,
    /// Seconds from `initialize` to the absolute end of a session.
    pub session_timeout_seconds: u32,
    /// How targets' tools are named to clients.
    pub naming: Naming,
    /// Host names accepted besides loopback and address literals; without port, lower case.
    pub hosts: Vec<String>,
    /// Origins accepted besides none and, on loopback, loopback; as browsers write them, lower case.
    pub origins: Vec<String>,
    /// The largest request body, in bytes; a larger one is answered 413.
    pub request_bytes: u64,
    /// The shutdown's budget.
    pub drain: DrainConfig,
    /// The targets, oldest object first: on a collision the older one wins.
    pub targets: Vec<TargetConfig>,
}

/// How callers are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Principals {
    /// Nobody is told apart: every session belongs to the one anonymous principal.
    Anonymous,
}

/// Where session records live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum StoreConfig {
    /// In the daemon: gone with it.
    Memory,
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

/// The shutdown's budget; see DESIGN §7 and `mooring_runtime::drain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainConfig {
    /// Seconds between unreadiness and the end of accepting, for endpoints to spread.
    pub delay_seconds: u32,
    /// Seconds that requests in flight then get.
    pub deadline_seconds: u32,
}

/// One MCP server behind a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetConfig {
    /// Unique in the gateway: the prefix of its tools, and its name in logs, metrics and errors.
    pub alias: String,
    /// The object's name.
    pub name: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's uid, or in `moored serve` something as unique. The key of target sessions in a record.
    pub uid: String,
    /// Where it is: an absolute http or https URL.
    pub url: String,
    /// Seconds to connect and to be answered `initialize`.
    pub connect_seconds: u32,
    /// Seconds a request may be silent; progress restarts it.
    pub request_seconds: u32,
    /// Seconds a request may take in all.
    pub maximum_seconds: u32,
}

/// What one daemon says of itself, under its pod's name in the report ConfigMap. Written only when it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// [`DaemonConfig::digest`] of the configuration in force.
    pub config: String,
    /// One entry for each configured target, in the configuration's order.
    pub targets: Vec<TargetReport>,
}

/// What a daemon's catalogue knows of one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetReport {
    /// See [`TargetConfig::uid`].
    pub uid: String,
    /// What its last contact came to.
    pub state: TargetState,
    /// The version it negotiated, where it is reachable.
    pub protocol_version: Option<String>,
    /// How many tools it lists.
    pub tools: i32,
    /// What went wrong, in a sentence without addresses, times or counts; empty where nothing did.
    pub message: String,
    /// Exposed tool names over 64 characters; some clients refuse them. At most five.
    pub long_names: Vec<String>,
    /// Tools hidden because an older target has one of that name. At most five.
    pub collisions: Vec<String>,
}

/// What a target's last contact came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetState {
    /// Not heard of yet.
    #[default]
    Pending,
    /// It answered `initialize` and its lists.
    Ready,
    /// No connection, or no answer in time.
    Unreachable,
    /// It answered a protocol version that Mooring does not speak.
    UnsupportedVersion,
    /// It answered something that is not MCP, or an error.
    Failed,
}

impl DaemonConfig {
    /// A short fingerprint of this configuration, equal for equal configurations of one version (FNV-1a of the JSON).
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        let hash = json.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}
