//! What is known of one target: its Service, and its place at each gateway. Reads stores only.

use mooring_crds::{
    Attachment, MCPTarget,
    compile::{Refusal, sources_of_target},
    config::TargetReport,
    secrets::{Unresolved, resolve},
};

use super::references;
use crate::{child::ChildKind, context::Settings, gateway, key::Key, stores::Stores};

/// A target's surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// What is missing of the Service that it names.
    pub service: Option<Missing>,
    /// What its references to Secrets and ConfigMaps lead to, where that is nothing.
    pub unresolved: Option<Unresolved>,
    /// Its gateways, in the order of the manifest.
    pub gateways: Vec<AtGateway>,
}

/// What a Service lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// There is none of this name.
    Service(String),
    /// It has not this port.
    Port(String, i32),
}

/// A target at one gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtGateway {
    /// The gateway.
    pub gateway: Key,
    /// What the gateway makes of it.
    pub place: Place,
}

/// What a gateway makes of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There is no such gateway.
    NoGateway,
    /// The operator does not watch the gateway's namespace.
    NotWatched,
    /// The gateway itself is refused.
    GatewayRefused(Refusal),
    /// The gateway refuses the target.
    Refused(Refusal),
    /// It is in the gateway's configuration.
    Attached(Taken),
}

/// How far the pods of a gateway have taken a target up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Whether any pod of the gateway lives.
    pub pods: bool,
    /// Whether every pod works by the newest configuration.
    pub current: bool,
    /// What the pods say of it; none where one of them has not heard of it.
    pub said: Option<TargetReport>,
}

/// Reads everything around a target.
pub fn observe(target: &MCPTarget, stores: &Stores, settings: &Settings) -> View {
    let own = Key::of(target);
    let resolved = resolve(&sources_of_target(target), |source, entry| stores.value(source, entry));
    let mut unresolved = resolved.unresolved;
    let gateways = references(target).map(|gateway| {
        let (place, too_large) = place(&own, &gateway, stores, settings);
        unresolved.extend(too_large);
        AtGateway { gateway, place }
    });
    let gateways = gateways.collect();
    View { service: missing(target, stores), unresolved: unresolved.into_iter().next(), gateways }
}

/// What a gateway makes of the target, and of its values.
fn place(own: &Key, key: &Key, stores: &Stores, settings: &Settings) -> (Place, Option<Unresolved>) {
    if !stores.watches(&key.namespace) {
        return (Place::NotWatched, None);
    }
    let Some(gateway) = stores.gateway(key) else { return (Place::NoGateway, None) };
    let view = gateway::observe::observe(&gateway, stores, settings);
    let configured = match view.configured {
        Ok(configured) => configured,
        Err(refusal) => return (Place::GatewayRefused(refusal), None),
    };
    let ours =
        |attachment: &&Attachment| attachment.namespace == own.namespace && attachment.name == own.name;
    let pods = !view.daemons.live.is_empty();
    let Some(attachment) = configured.compiled.attachments.iter().find(ours) else {
        // The stores are read one after the other: a target that is new may be missing for a moment.
        return (Place::Attached(Taken { pods, current: false, said: None }), None);
    };
    if let Err(refusal) = &attachment.outcome {
        return (Place::Refused(refusal.clone()), None);
    }
    let taken = Taken {
        pods,
        current: view.daemons.all_work_by(&configured.digest),
        said: view.daemons.target(&attachment.uid),
    };
    let of_it = |lacks: &Unresolved| lacks.source.target.as_ref() == Some(&attachment.uid);
    (Place::Attached(taken), view.credentials.unresolved.into_iter().find(of_it))
}

fn missing(target: &MCPTarget, stores: &Stores) -> Option<Missing> {
    let service = target.spec.server.service.as_ref()?;
    let namespace = target.metadata.namespace.clone().unwrap_or_default();
    let Some(found) = stores.child(ChildKind::Service, &Key::new(namespace, &service.name)) else {
        return Some(Missing::Service(service.name.clone()));
    };
    // A Service that is an alias of a DNS name serves whatever port that name does.
    if found.data.pointer("/spec/type").and_then(serde_json::Value::as_str) == Some("ExternalName") {
        return None;
    }
    let ports = found.data.pointer("/spec/ports").and_then(serde_json::Value::as_array);
    let numbers = |port: &serde_json::Value| port.get("port").and_then(serde_json::Value::as_i64);
    let has = ports.into_iter().flatten().filter_map(numbers).any(|port| port == i64::from(service.port));
    (!has).then(|| Missing::Port(service.name.clone(), service.port))
}
