//! Which fields this version does not serve. Pure; every field of a served kind is named here, so that a new one does
//! not compile until it is decided.

use crate::auth::GatewayAuth;
use crate::gateway::{
    AllowedNamespaces, AllowedTargets, MCPGatewaySpec, NamespacesFrom, Streaming, ToolNames,
};
use crate::server::{Server, ServerType};
use crate::serving::{Drain, Endpoint, Expose, Limits};
use crate::session::{GatewaySession, SessionMode};
use crate::store::{Store, StoreType};
use crate::target::{Listing, MCPTargetSpec, OnSessionLoss, TargetProtocol};
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
        access,
        store,
        tools: ToolNames { naming: _, separator: _ },
        allowed_targets: AllowedTargets { namespaces: AllowedNamespaces { from, selector } },
        drain: Drain { delay_seconds: _, deadline_seconds: _ },
        tls,
        endpoint: Endpoint { public_url: _, allowed_origins: _, allowed_hosts: _, trusted_proxies },
        expose: Expose { service_type: _, http_route, ingress, port: _, path: _ },
        limits,
        pod_template: _,
    } = spec;
    let mut found = Found::default();
    found.instead(autoscaling.is_some(), "spec.autoscaling", "write replicas");
    gateway_session(session, &mut found);
    match streaming {
        Streaming::Enabled => {}
        Streaming::Disabled => found.instead(true, "spec.streaming: Disabled", "write Enabled"),
    }
    gateway_auth(auth, &mut found);
    found.note(!access.is_empty(), "spec.access");
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
    found.note(tls.is_some(), "spec.tls");
    found.note(!trusted_proxies.is_empty(), "spec.endpoint.trustedProxies");
    found.instead(http_route.is_some(), "spec.expose.httpRoute", "write the HTTPRoute yourself");
    found.instead(ingress.is_some(), "spec.expose.ingress", "write the Ingress yourself");
    gateway_limits(limits, &mut found);
    found.0
}

fn gateway_session(session: &GatewaySession, found: &mut Found) {
    let GatewaySession { mode, timeout_seconds: _, idle_timeout_seconds, max_per_principal, end_before } =
        session;
    match mode {
        SessionMode::Stateful => {}
        SessionMode::Stateless => found.instead(true, "spec.session.mode: Stateless", "write Stateful"),
    }
    found.note(idle_timeout_seconds.is_some(), "spec.session.idleTimeoutSeconds");
    found.note(max_per_principal.is_some(), "spec.session.maxPerPrincipal");
    found.note(end_before.is_some(), "spec.session.endBefore");
}

fn gateway_auth(auth: &GatewayAuth, found: &mut Found) {
    let GatewayAuth { oidc, service_account, anonymous: _, delegation, denied } = auth;
    found.instead(oidc.is_some(), "spec.auth.oidc", "write anonymous: {}");
    found.instead(service_account.is_some(), "spec.auth.serviceAccount", "write anonymous: {}");
    found.note(delegation.is_some(), "spec.auth.delegation");
    found.note(!denied.is_empty(), "spec.auth.denied");
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

fn gateway_limits(limits: &Limits, found: &mut Found) {
    let Limits { request_bytes: _, streams_per_session, requests_in_flight_per_session, requests_in_flight } =
        limits;
    found.note(streams_per_session.is_some(), "spec.limits.streamsPerSession");
    found.note(requests_in_flight_per_session.is_some(), "spec.limits.requestsInFlightPerSession");
    found.note(requests_in_flight.is_some(), "spec.limits.requestsInFlight");
}

/// The fields of a target that are written and not served.
pub fn target(spec: &MCPTargetSpec) -> Vec<Unserved> {
    let MCPTargetSpec {
        gateway_refs: _,
        server,
        protocol,
        listing,
        credentials: _,
        headers: _,
        tools,
        timeouts,
        on_session_loss,
        pod_template,
    } = spec;
    let mut found = Found::default();
    target_server(server, &mut found);
    match protocol {
        TargetProtocol::Auto | TargetProtocol::StreamableHTTP => {}
        TargetProtocol::SSE => found.instead(true, "spec.protocol: SSE", "write Auto or StreamableHTTP"),
    }
    match listing {
        Listing::Catalog => {}
        Listing::PerSession => found.instead(true, "spec.listing: PerSession", "write Catalog"),
    }
    found.note(tools.is_some(), "spec.tools");
    let Timeouts {
        connect_seconds: _,
        request_seconds: _,
        client_answer_seconds,
        maximum_seconds: _,
        overrides,
    } = timeouts;
    found.note(client_answer_seconds.is_some(), "spec.timeouts.clientAnswerSeconds");
    found.note(!overrides.is_empty(), "spec.timeouts.overrides");
    match on_session_loss {
        OnSessionLoss::Fail => {}
        OnSessionLoss::Reinitialize => found.instead(true, "spec.onSessionLoss: Reinitialize", "write Fail"),
    }
    found.note(pod_template.is_some(), "spec.podTemplate");
    found.0
}

fn target_server(server: &Server, found: &mut Found) {
    // How a URL or a Service is reached is served whole.
    let Server { kind, url: _, service: _, container } = server;
    match kind {
        ServerType::URL | ServerType::Service => found.note(container.is_some(), "spec.server.container"),
        ServerType::Container => {
            found.instead(
                true,
                "spec.server.type: Container",
                "run it as a Deployment with a Service and write Service",
            );
        }
    }
}
