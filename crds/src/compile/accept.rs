//! Pure: whether a manifest can be served, and what to write where it cannot. An API server has checked most of this
//! already; `moored serve` has none, and an installed CRD may be older than the operator.

use kube::ResourceExt;

use super::{Platform, Refusal, accept_secrets, address, auth, bounds};
use crate::condition::reason;
use crate::gateway::Streaming;
use crate::served::{self, Unserved};
use crate::server::{ContainerServer, ContainerTransport, ServerType, ServiceServer};
use crate::serving::{Endpoint, Expose, Limits};
use crate::session::{GatewaySession, SessionMode};
use crate::target::{TargetGatewayReference, TargetProtocol};
use crate::{ACPAgent, MCPGateway, MCPTarget, rule};

/// Whether the gateway can be served.
pub fn accept_gateway(gateway: &MCPGateway, platform: &Platform) -> Result<(), Refusal> {
    let spec = &gateway.spec;
    all_served(&served::gateway(spec))?;
    auth::accept(&spec.auth, platform)?;
    auth::accept_access(&spec.access)?;
    replicas(spec.replicas)?;
    session(&spec.session, platform)?;
    ensure(is_separator(&spec.tools.separator), rule::SEPARATOR)?;
    limits(&spec.limits, &spec.session, spec.streaming)?;
    endpoint(&spec.endpoint)?;
    expose(&spec.expose)?;
    bounds::gateway(spec)?;
    let Some(pods) = &spec.pod_template else { return Ok(()) };
    let reserved = |key: &String| key.starts_with("app.kubernetes.io/") || key.starts_with("mooring.dev/");
    ensure(!pods.labels.keys().any(reserved), rule::POD_LABELS)?;
    ensure(!pods.annotations.keys().any(|key| key.starts_with("mooring.dev/")), rule::POD_ANNOTATIONS)
}

/// Whether the target can be served, whatever its gateways say.
pub fn accept_target(target: &MCPTarget, platform: &Platform) -> Result<(), Refusal> {
    let spec = &target.spec;
    all_served(&served::target(spec, platform.allow_processes))?;
    gateway_refs(&spec.gateway_refs, &target.namespace().unwrap_or_default())?;
    ensure(spec.timeouts.request_seconds <= spec.timeouts.maximum_seconds, rule::TIMEOUTS_ORDER)?;
    let server = &spec.server;
    ensure(server.url.is_some() == (server.kind == ServerType::URL), rule::SERVER_URL)?;
    ensure(server.service.is_some() == (server.kind == ServerType::Service), rule::SERVER_SERVICE)?;
    ensure(server.container.is_some() == (server.kind == ServerType::Container), rule::SERVER_CONTAINER)?;
    let is_sse = spec.protocol == TargetProtocol::SSE;
    ensure(!(is_sse && server.kind == ServerType::Container), rule::PROTOCOL_SSE)?;
    if let Some(container) = &server.container {
        ensure(!container.command.is_empty(), rule::COMMAND_NEEDED)?;
        container_port(container)?;
    }
    if let Some(url) = &server.url {
        address::check(&url.address, platform.allow_loopback)
            .map_err(|wrong| invalid(format!("spec.server.url.address {wrong}")))?;
    }
    server.service.as_ref().map_or(Ok(()), service)?;
    accept_secrets::accept(target, platform)?;
    // Last: what is said above says more of what is meant.
    bounds::target(spec)
}

/// Whether the agent can be served: by this version, none can.
pub fn accept_agent(_: &ACPAgent) -> Result<(), Refusal> {
    Err(Refusal {
        reason: reason::NOT_IMPLEMENTED,
        message:
            "this version does not serve kind ACPAgent: spec is stored and nothing runs; remove the object, \
                  or keep it for a version that serves it"
                .to_owned(),
    })
}

/// A refusal for a value that no version can serve.
pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    Refusal { reason: reason::INVALID, message: message.into() }
}

pub(super) fn ensure(holds: bool, message: &'static str) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(invalid(message)) }
}

fn all_served(unserved: &[Unserved]) -> Result<(), Refusal> {
    if unserved.is_empty() {
        return Ok(());
    }
    let fields: Vec<_> =
        unserved.iter().map(|Unserved { field, instead }| format!("{field} ({instead})")).collect();
    Err(Refusal {
        reason: reason::NOT_IMPLEMENTED,
        message: format!("this version does not serve {}", fields.join(", ")),
    })
}

fn replicas(replicas: i32) -> Result<(), Refusal> {
    match replicas {
        ..0 => Err(invalid("spec.replicas is negative; write 1, or 0 to stop serving")),
        0 | 1 => Ok(()),
        2.. => Err(Refusal {
            reason: reason::STORE_NEEDS_ONE_REPLICA,
            message: "spec.replicas is above 1, and sessions of the Memory store live in one pod; write replicas: 1"
                .to_owned(),
        }),
    }
}

fn session(session: &GatewaySession, platform: &Platform) -> Result<(), Refusal> {
    session_timeout(session.timeout_seconds, platform)?;
    let GatewaySession { mode, timeout_seconds, idle_timeout_seconds: idle, max_per_principal, end_before } =
        session;
    ensure(idle.is_none_or(|idle| idle <= *timeout_seconds), rule::IDLE_TIMEOUT)?;
    let of_sessions = idle.is_some() || max_per_principal.is_some() || end_before.is_some();
    ensure(*mode == SessionMode::Stateful || !of_sessions, rule::STATELESS_SESSION)
}

fn limits(limits: &Limits, session: &GatewaySession, streaming: Streaming) -> Result<(), Refusal> {
    let of_sessions = limits.streams_per_session.is_some() || limits.requests_in_flight_per_session.is_some();
    ensure(session.mode == SessionMode::Stateful || !of_sessions, rule::STATELESS_LIMITS)?;
    ensure(streaming == Streaming::Enabled || limits.streams_per_session.is_none(), rule::UNSTREAMED_LIMITS)
}

fn session_timeout(seconds: i32, platform: &Platform) -> Result<(), Refusal> {
    let allowed = &platform.session_timeout_seconds;
    if allowed.contains(&seconds) && seconds > 0 {
        return Ok(());
    }
    Err(Refusal {
        reason: reason::TIMEOUT_OUT_OF_RANGE,
        message: format!(
            "spec.session.timeoutSeconds is {seconds}, and this installation allows {} to {}; write a number of \
             seconds in between",
            allowed.start(),
            allowed.end()
        ),
    })
}

fn endpoint(endpoint: &Endpoint) -> Result<(), Refusal> {
    let public = endpoint.public_url.as_deref();
    ensure(public.is_none_or(address::is_public_url), rule::PUBLIC_URL)?;
    ensure(endpoint.allowed_origins.iter().all(|origin| address::is_origin(origin)), rule::ALLOWED_ORIGINS)?;
    ensure(endpoint.allowed_hosts.iter().all(|host| address::is_host_name(host)), rule::ALLOWED_HOSTS)?;
    ensure(endpoint.trusted_proxies.iter().all(|network| address::is_network(network)), rule::TRUSTED_PROXIES)
}

fn expose(expose: &Expose) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '-' | '/');
    ensure(expose.path.starts_with('/') && expose.path.chars().all(plain), rule::EXPOSE_PATH)
}

fn is_separator(separator: &str) -> bool {
    (1..=8).contains(&separator.len()) && separator.chars().all(|c| matches!(c, '.' | '_' | '-'))
}

fn gateway_refs(refs: &[TargetGatewayReference], own_namespace: &str) -> Result<(), Refusal> {
    ensure((1..=16).contains(&refs.len()), rule::GATEWAY_REFS)?;
    ensure(refs.iter().filter_map(|gateway| gateway.prefix.as_deref()).all(is_prefix), rule::PREFIX)?;
    let mut seen = Vec::new();
    for gateway in refs {
        let key = (namespace_of(gateway, own_namespace), gateway.name.as_str());
        if seen.contains(&key) {
            return Err(invalid(format!(
                "spec.gatewayRefs names the gateway {} twice, an empty namespace being the target's own; remove one",
                gateway.name
            )));
        }
        seen.push(key);
    }
    Ok(())
}

/// The namespace of the gateway referred to.
pub(super) fn namespace_of<'a>(gateway: &'a TargetGatewayReference, own_namespace: &'a str) -> &'a str {
    if gateway.namespace.is_empty() { own_namespace } else { &gateway.namespace }
}

fn is_prefix(prefix: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=63).contains(&prefix.len())
        && prefix.chars().all(plain)
        && prefix.starts_with(|c: char| c.is_ascii_alphanumeric())
        && prefix.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// `port` and `path` are the server's own, where it has any.
fn container_port(container: &ContainerServer) -> Result<(), Refusal> {
    let listens = container.transport == Some(ContainerTransport::StreamableHTTP);
    ensure(container.port.is_some() == listens, rule::CONTAINER_PORT)?;
    ensure(container.path.is_none() || listens, rule::CONTAINER_PATH)
}

fn service(service: &ServiceServer) -> Result<(), Refusal> {
    ensure(is_service_name(&service.name), rule::SERVICE_NAME)?;
    let path_is_plain = service.path.parse::<http::uri::PathAndQuery>().is_ok()
        && service.path.starts_with('/')
        && !service.path.contains(['#', '@', ' ']);
    ensure(path_is_plain, rule::SERVER_PATH)
}

fn is_service_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
