//! Which fields this version does not serve. Pure; every field of a served kind is named here, so that a new one does
//! not compile until it is decided.

use crate::auth::GatewayAuth;
use crate::gateway::{
    AllowedNamespaces, AllowedTargets, MCPGatewaySpec, NamespacesFrom, Streaming, ToolNames,
};
use crate::server::{ContainerServer, ContainerTransport, Server, ServerType};
use crate::serving::{Drain, Endpoint, Expose, Limits};
use crate::session::{GatewaySession, SessionMode};
use crate::store::{Store, StoreType};
use crate::target::{MCPTargetSpec, OnSessionLoss};
use crate::timeouts::Timeouts;

/// A field that is written and not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unserved {
    /// The field's path, such as `spec.auth.oidc`, with its value where only that value is not served.
    pub field: &'static str,
    /// What to do instead, such as `remove it`.
    pub instead: &'static str,
}

/// Collects what is written.
#[derive(Default)]
struct Found(Vec<Unserved>);

impl Found {
    fn note(&mut self, written: bool, field: &'static str) {
        self.instead(written, field, "remove it");
    }

    fn instead(&mut self, written: bool, field: &'static str, instead: &'static str) {
        if written {
            self.0.push(Unserved { field, instead });
        }
    }
}

/// The fields of a gateway that are written and not served.
pub fn gateway(spec: &MCPGatewaySpec) -> Vec<Unserved> {
    let MCPGatewaySpec {
        replicas: _,
        autoscaling,
        session,
        streaming,
        auth,
        access: _,
        store,
        tools: ToolNames { naming: _, separator: _ },
        allowed_targets: AllowedTargets { namespaces: AllowedNamespaces { from, selector } },
        drain: Drain { delay_seconds: _, deadline_seconds: _ },
        tls: _,
        endpoint: Endpoint { public_url: _, allowed_origins: _, allowed_hosts: _, trusted_proxies: _ },
        expose: Expose { service_type: _, http_route, ingress, port: _, path: _ },
        limits:
            Limits {
                request_bytes: _,
                streams_per_session: _,
                requests_in_flight_per_session: _,
                requests_in_flight: _,
            },
        pod_template: _,
    } = spec;
    let mut found = Found::default();
    found.instead(autoscaling.is_some(), "spec.autoscaling", "write replicas");
    gateway_session(session);
    match streaming {
        Streaming::Enabled | Streaming::Disabled => {}
    }
    gateway_auth(auth, &mut found);
    if let Some(store) = store {
        gateway_store(store, &mut found);
    }
    let selects = match from {
        NamespacesFrom::Same | NamespacesFrom::All => false,
        NamespacesFrom::Selector => true,
    };
    found.instead(
        selects || selector.is_some(),
        "spec.allowedTargets.namespaces.selector",
        "write from: Same or from: All",
    );
    found.instead(http_route.is_some(), "spec.expose.httpRoute", "write the HTTPRoute yourself");
    found.instead(ingress.is_some(), "spec.expose.ingress", "write the Ingress yourself");
    found.0
}

/// All of it is served; a field that is added does not compile until it is decided.
fn gateway_session(session: &GatewaySession) {
    let GatewaySession {
        mode,
        timeout_seconds: _,
        idle_timeout_seconds: _,
        max_per_principal: _,
        end_before: _,
    } = session;
    match mode {
        SessionMode::Stateful | SessionMode::Stateless => {}
    }
}

fn gateway_auth(auth: &GatewayAuth, found: &mut Found) {
    let GatewayAuth { oidc: _, service_account: _, anonymous: _, delegation, denied: _ } = auth;
    found.note(delegation.is_some(), "spec.auth.delegation");
}

fn gateway_store(store: &Store, found: &mut Found) {
    let Store { kind, config_map, redis, sidecar } = store;
    match kind {
        StoreType::Memory => {
            found.note(config_map.is_some(), "spec.store.configMap");
            found.note(redis.is_some(), "spec.store.redis");
            found.note(sidecar.is_some(), "spec.store.sidecar");
        }
        StoreType::ConfigMap => found.instead(true, "spec.store.type: ConfigMap", "write Memory"),
        StoreType::Redis => found.instead(true, "spec.store.type: Redis", "write Memory"),
        StoreType::Sidecar => found.instead(true, "spec.store.type: Sidecar", "write Memory"),
    }
}

/// The fields of a target that are written and not served. `processes` says whether a container's command runs as a
/// process of this machine.
pub fn target(spec: &MCPTargetSpec, processes: bool) -> Vec<Unserved> {
    let MCPTargetSpec {
        gateway_refs: _,
        server,
        protocol: _,
        listing: _,
        credentials: _,
        headers: _,
        tools: _,
        timeouts,
        on_session_loss,
        pod_template,
    } = spec;
    let mut found = Found::default();
    target_server(server, processes, &mut found);
    let Timeouts {
        connect_seconds: _,
        request_seconds: _,
        client_answer_seconds: _,
        maximum_seconds: _,
        overrides: _,
    } = timeouts;
    match on_session_loss {
        OnSessionLoss::Fail | OnSessionLoss::Reinitialize => {}
    }
    found.note(pod_template.is_some(), "spec.podTemplate");
    found.0
}

fn target_server(server: &Server, processes: bool, found: &mut Found) {
    // How a URL or a Service is reached is served whole.
    let Server { kind, url: _, service: _, container } = server;
    match kind {
        ServerType::URL | ServerType::Service => found.note(container.is_some(), "spec.server.container"),
        ServerType::Container if processes => {
            if let Some(container) = container {
                process(container, found);
            }
        }
        ServerType::Container => {
            found.instead(
                true,
                "spec.server.type: Container",
                "run it as a Deployment with a Service and write Service",
            );
        }
    }
}

/// Of a container whose command is a process of this machine.
fn process(container: &ContainerServer, found: &mut Found) {
    let ContainerServer {
        image: _,
        command: _,
        args: _,
        env,
        env_from,
        resources,
        transport,
        port: _,
        path: _,
        isolation: _,
        replicas,
    } = container;
    let here = "moored serve has no cluster to read it from: write name and value";
    found.instead(
        env.iter().any(|var| var.value_from.is_some()),
        "spec.server.container.env[].valueFrom",
        here,
    );
    found.instead(!env_from.is_empty(), "spec.server.container.envFrom", here);
    let unlimited = "moored serve starts processes without requests and limits: remove it";
    found.instead(resources.is_some(), "spec.server.container.resources", unlimited);
    match transport {
        None | Some(ContainerTransport::Stdio) => {}
        Some(ContainerTransport::StreamableHTTP) => found.instead(
            true,
            "spec.server.container.transport: StreamableHTTP",
            "start the server yourself and write server.type: URL",
        ),
    }
    found.note(replicas.is_some(), "spec.server.container.replicas");
}
