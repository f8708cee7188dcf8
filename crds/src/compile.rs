//! Pure: from manifests to the daemon's configuration. The operator and `moored serve` both call it, so a manifest
//! means the same with and without a cluster.

mod accept;
mod accept_secrets;
mod address;
mod attach;
mod auth;
mod bounds;
mod consent;
mod process;
mod secrets;

use std::ops::RangeInclusive;

use kube::ResourceExt;

pub use accept::{accept_agent, accept_gateway, accept_target};
pub use address::{Wrong, check as requests_may_go_to};
pub use secrets::{sources_of_gateway, sources_of_target};

use crate::config::{
    DrainConfig, GatewayConfig, LimitsConfig, Naming, SessionConfig, SessionMode, StoreConfig, Streaming,
};
use crate::gateway::{ToolNames, ToolNaming};
use crate::secrets::SecretSource;
use crate::serving::{Endpoint, Limits};
use crate::{MCPGateway, MCPTarget, names};

/// What the installation decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The absolute timeouts that sessions may have, in seconds.
    pub session_timeout_seconds: RangeInclusive<i32>,
    /// Whether targets may be on this machine, in plain HTTP: `moored serve`.
    pub allow_loopback: bool,
    /// Whether container targets run as processes of this machine: `moored serve`.
    pub allow_processes: bool,
    /// Whether there is a cluster, whose keys verify the tokens of ServiceAccounts.
    pub has_cluster: bool,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            session_timeout_seconds: 900..=28_800,
            allow_loopback: false,
            allow_processes: false,
            has_cluster: true,
        }
    }
}

/// Why a manifest is not served. The message names the field and says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// One of [`crate::condition::reason`].
    pub reason: &'static str,
    /// A sentence for whoever wrote the manifest.
    pub message: String,
}

/// A gateway's configuration, and what became of the targets that refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// What its daemons serve.
    pub config: GatewayConfig,
    /// The targets that refer to it, oldest first.
    pub attachments: Vec<Attachment>,
    /// Where the values come from that the configuration names by key.
    pub secrets: Vec<SecretSource>,
}

/// What became of a target at a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The target's namespace.
    pub namespace: String,
    /// The target's name.
    pub name: String,
    /// The target's uid, as in the configuration.
    pub uid: String,
    /// Its alias, or why it is not attached.
    pub outcome: Result<String, Refusal>,
}

/// What the gateway's daemons serve. `targets` are all that exist, of any namespace; those that refer to this gateway
/// become attachments, oldest first.
pub fn compile(
    gateway: &MCPGateway,
    targets: &[MCPTarget],
    platform: &Platform,
) -> Result<Compiled, Refusal> {
    accept_gateway(gateway, platform)?;
    let spec = &gateway.spec;
    let attach::Attached { configs: targets, attachments, secrets: of_targets } =
        attach::attach(gateway, targets, platform);
    let secrets = sources_of_gateway(gateway).into_iter().chain(of_targets).collect();
    let config = GatewayConfig {
        name: gateway.name_any(),
        namespace: gateway.namespace().unwrap_or_default(),
        uid: gateway.uid().unwrap_or_default(),
        path: spec.expose.path.clone(),
        auth: auth::auth(gateway),
        access: auth::access(&spec.access),
        store: StoreConfig::Memory,
        session: SessionConfig {
            mode: match spec.session.mode {
                crate::session::SessionMode::Stateful => SessionMode::Stateful,
                crate::session::SessionMode::Stateless => SessionMode::Stateless,
            },
            timeout_seconds: spec.session.timeout_seconds.unsigned_abs(),
            idle_timeout_seconds: spec.session.idle_timeout_seconds.map(i32::unsigned_abs),
            max_per_principal: spec.session.max_per_principal.map(i32::unsigned_abs),
            end_before: spec.session.end_before.as_ref().map(|time| time.0.as_millisecond()),
        },
        streaming: match spec.streaming {
            crate::gateway::Streaming::Enabled => Streaming::Enabled,
            crate::gateway::Streaming::Disabled => Streaming::Disabled,
        },
        naming: naming(&spec.tools),
        hosts: hosts(gateway),
        origins: origins(&spec.endpoint),
        public_url: spec.endpoint.public_url.clone(),
        trusted_proxies: spec.endpoint.trusted_proxies.clone(),
        tls: spec.tls.is_some(),
        limits: limits(&spec.limits),
        drain: DrainConfig {
            delay_seconds: spec.drain.delay_seconds.unsigned_abs(),
            deadline_seconds: spec.drain.deadline_seconds.unsigned_abs(),
        },
        targets,
    };
    Ok(Compiled { config, attachments, secrets })
}

fn limits(limits: &Limits) -> LimitsConfig {
    let Limits { request_bytes, streams_per_session, requests_in_flight_per_session, requests_in_flight } =
        limits;
    let default = LimitsConfig::default();
    let or = |written: &Option<i32>, default| written.map_or(default, i32::unsigned_abs);
    LimitsConfig {
        request_bytes: u64::from(request_bytes.unsigned_abs()),
        streams_per_session: or(streams_per_session, default.streams_per_session),
        requests_in_flight_per_session: or(
            requests_in_flight_per_session,
            default.requests_in_flight_per_session,
        ),
        requests_in_flight: or(requests_in_flight, default.requests_in_flight),
    }
}

fn naming(tools: &ToolNames) -> Naming {
    match tools.naming {
        ToolNaming::Prefixed => Naming::Prefixed { separator: tools.separator.clone() },
        ToolNaming::Plain => Naming::Plain,
    }
}

/// The names of the gateway's Service. Without a namespace there is none.
fn service_hosts(gateway: &MCPGateway) -> Vec<String> {
    let Some(namespace) = gateway.namespace().filter(|namespace| !namespace.is_empty()) else {
        return Vec::new();
    };
    let workload = names::gateway(&gateway.name_any()).workload;
    let qualified = ["", ".svc", ".svc.cluster.local"].map(|end| format!("{workload}.{namespace}{end}"));
    std::iter::once(workload).chain(qualified).collect()
}

/// The Service's names, the public URL's host and those that are written.
fn hosts(gateway: &MCPGateway) -> Vec<String> {
    let endpoint = &gateway.spec.endpoint;
    let public = endpoint.public_url.as_deref().and_then(address::host);
    let all = service_hosts(gateway).into_iter().chain(public).chain(endpoint.allowed_hosts.iter().cloned());
    distinct(all.map(|host| host.to_ascii_lowercase()))
}

fn origins(endpoint: &Endpoint) -> Vec<String> {
    let written = endpoint.allowed_origins.iter().map(String::as_str);
    distinct(endpoint.public_url.as_deref().into_iter().chain(written).filter_map(address::origin))
}

/// Each once, in the order of their first appearance.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}
