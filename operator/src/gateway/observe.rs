//! What is known of one gateway: its configuration, its daemons' reports and its pods. Reads stores only.

use mooring_crds::{
    MCPGateway,
    compile::{Compiled, Refusal, compile},
    config::{CONFIG_FORMAT, DaemonConfig},
    names::{self, GatewayNames},
};

use crate::{
    child::ChildKind, context::Settings, daemons::Daemons, key::Key, rollout::Rollout, stores::Stores,
    target::references,
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

/// Reads everything around a gateway.
pub fn observe(gateway: &MCPGateway, stores: &Stores, settings: &Settings) -> View {
    let key = Key::of(gateway);
    let names = names::gateway(&key.name);
    let targets = stores.targets(|target| references(target).any(|reference| reference == key));
    let child = |kind, name: &str| stores.child(kind, &Key::new(&key.namespace, name));
    let slices = stores.slices(&Key::new(&key.namespace, &names.workload));
    let service_account = child(ChildKind::ServiceAccount, &names.workload);
    let report = child(ChildKind::ConfigMap, &names.report);
    View {
        configured: compile(gateway, &targets, &settings.platform).map(Configured::from),
        daemons: Daemons::read(report.as_deref(), &slices),
        service_account: service_account.and_then(|account| account.metadata.uid.clone()),
        rollout: Rollout::of(child(ChildKind::Deployment, &names.workload).as_deref()),
        instance: names::instance(&key.name),
        names,
    }
}
