//! The daemon's configuration and its report: what the operator writes the daemon reads, and back. Cannot do IO.
//!
//! Both are JSON in a ConfigMap. Operator and daemon may be one version apart, so unknown fields are tolerated
//! and fields added later have defaults.

mod auth;
mod gateway;
mod target;

use serde::{Deserialize, Serialize};

pub use auth::{AccessRule, AuthConfig, ClaimValues, Denied, OidcConfig, ServiceAccountConfig};
pub use gateway::{
    DrainConfig, GatewayConfig, LimitsConfig, Naming, SessionConfig, SessionMode, StoreConfig, Streaming,
};
pub use target::{
    CommandConfig, CredentialsConfig, Isolation, Listing, OnSessionLoss, Protocol, TargetConfig,
    TimeoutOverride, TimeoutsConfig, TlsConfig, TokenClient, ToolFilter,
};

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
    /// What went wrong, in a sentence without addresses, times or counts; empty where nothing did. Of a target that
    /// is ready, the lists that it does not give.
    pub message: String,
    /// Exposed names over 64 characters; some clients refuse them. At most five; those of prompts say so.
    pub long_names: Vec<String>,
    /// Tools, prompts and resources hidden because an older target has one of that name or URI. At most five.
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
    ///
    /// Endpoints are left out: they come and go without anybody's doing, and nobody waits for them to be taken up.
    pub fn digest(&self) -> String {
        let mut lasting = self.clone();
        for target in lasting.gateways.iter_mut().flat_map(|gateway| &mut gateway.targets) {
            target.endpoints.clear();
        }
        let json = serde_json::to_vec(&lasting).unwrap_or_default();
        let hash = json.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}
