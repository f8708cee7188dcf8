//! What is known of one gateway: its configuration, its daemons' reports and its pods. Reads stores only.

use k8s_openapi::api::core::v1::Secret;
use mooring_crds::{
    MCPGateway, MCPTarget,
    compile::{Compiled, Refusal, compile},
    config::{CONFIG_FORMAT, DaemonConfig},
    names::{self, GatewayNames},
    secrets::resolve,
};

use super::credentials::{Credentials, Last};
use crate::{
    child::ChildKind, context::Settings, daemons::Daemons, endpoints, key::Key, rollout::Rollout,
    stores::Stores, target::references, triggers::service_key,
};

/// A gateway and what surrounds it. Targets look at their gateways through it, too.
#[derive(Debug, Clone)]
pub struct View {
    /// Names of its children.
    pub names: GatewayNames,
    /// What sets its pods apart: the label's value.
    pub instance: String,
    /// What its daemons are to serve, or why it is refused.
    pub configured: Result<Configured, Refusal>,
    /// What its daemons say.
    pub daemons: Daemons,
    /// The uid of its daemons' ServiceAccount, once that has been seen.
    pub service_account: Option<String>,
    /// How far its pods have come.
    pub rollout: Rollout,
    /// The values that its configuration names by key.
    pub credentials: Credentials,
}

/// A configuration and its fingerprint.
#[derive(Debug, Clone)]
pub struct Configured {
    /// With what became of each target.
    pub compiled: Compiled,
    /// As the daemons get it.
    pub config: DaemonConfig,
    /// As the daemons repeat it.
    pub digest: String,
}

impl From<Compiled> for Configured {
    fn from(compiled: Compiled) -> Self {
        let config = DaemonConfig { format: CONFIG_FORMAT, gateways: vec![compiled.config.clone()] };
        Self { digest: config.digest(), config, compiled }
    }
}

/// Notes where each target's Service leads to now.
fn with_endpoints(mut compiled: Compiled, targets: &[MCPTarget], stores: &Stores) -> Compiled {
    let mut room = endpoints::Room::default();
    for config in &mut compiled.config.targets {
        let of = |target: &&MCPTarget| {
            target.metadata.name.as_ref() == Some(&config.name)
                && target.metadata.namespace.as_ref() == Some(&config.namespace)
        };
        let Some(target) = targets.iter().find(of) else { continue };
        let (Some(key), Some(service)) = (service_key(target), &target.spec.server.service) else { continue };
        if let Some(found) = stores.child(ChildKind::Service, &key) {
            config.endpoints = room.take(endpoints::ready(&found, service.port, &stores.slices(&key)));
        }
    }
    compiled
}

/// Reads everything around a gateway.
pub fn observe(gateway: &MCPGateway, stores: &Stores, settings: &Settings) -> View {
    let key = Key::of(gateway);
    let names = names::gateway(&key.name);
    let targets = stores.targets(|target| references(target).any(|reference| reference == key));
    let child = |kind, name: &str| stores.child(kind, &Key::new(&key.namespace, name));
    let slices = stores.slices(&Key::new(&key.namespace, &names.workload));
    let service_account = child(ChildKind::ServiceAccount, &names.workload);
    let report = child(ChildKind::ConfigMap, &names.report);
    let compiled = compile(gateway, &targets, &settings.platform);
    let configured = compiled.map(|compiled| Configured::from(with_endpoints(compiled, &targets, stores)));
    let sources = configured.as_ref().map_or(&[][..], |configured| &configured.compiled.secrets);
    let last = child(ChildKind::Secret, &names.credentials);
    let last = last.and_then(|last| serde_json::from_value::<Secret>(last.data.clone()).ok());
    let last = match &last {
        Some(last) => Last::Written(last),
        None if stores.listed(ChildKind::Secret, &key.namespace) => Last::Absent,
        None => Last::Unlisted,
    };
    let resolved = resolve(sources, |source, entry| stores.value(source, entry));
    View {
        credentials: Credentials::new(sources, resolved, last),
        configured,
        daemons: Daemons::read(report.as_deref(), &slices),
        service_account: service_account.and_then(|account| account.metadata.uid.clone()),
        rollout: Rollout::of(child(ChildKind::Deployment, &names.workload).as_deref()),
        instance: names::instance(&key.name),
        names,
    }
}
