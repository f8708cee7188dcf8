//! What is known of one gateway: its configuration, its daemons' reports and its pods. Reads stores only.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use mooring_crds::{
    MCPGateway, MCPTarget,
    compile::{Compiled, Refusal, compile},
    config::{CONFIG_FORMAT, DaemonConfig},
    names::{self, GatewayNames},
    secrets::{Resolved, Unresolved, resolve},
};

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

/// The values that a configuration names by key, and those of them that are not to be had now.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// By key. What is not to be had now is as it last was: sessions that work go on.
    pub values: BTreeMap<String, Vec<u8>>,
    /// What leads to nothing.
    pub unresolved: Vec<Unresolved>,
}

/// Shows keys, never values.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, unresolved } = self;
        f.debug_struct("Credentials").field("keys", &values.keys()).field("unresolved", unresolved).finish()
    }
}

impl Credentials {
    /// What was found, and beside it what `last` has of the keys that were not.
    pub fn new(resolved: Resolved, last: Option<&Secret>) -> Self {
        let Resolved { mut values, unresolved, unread } = resolved;
        let data = last.and_then(|last| last.data.as_ref());
        for key in unresolved.iter().map(|missing| &missing.source.key).chain(&unread) {
            if let Some(ByteString(kept)) = data.and_then(|data| data.get(key)) {
                values.insert(key.clone(), kept.clone());
            }
        }
        Self { values, unresolved }
    }
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
    for config in &mut compiled.config.targets {
        let of = |target: &&MCPTarget| {
            target.metadata.name.as_ref() == Some(&config.name)
                && target.metadata.namespace.as_ref() == Some(&config.namespace)
        };
        let Some(target) = targets.iter().find(of) else { continue };
        let (Some(key), Some(service)) = (service_key(target), &target.spec.server.service) else { continue };
        if let Some(found) = stores.child(ChildKind::Service, &key) {
            config.endpoints = endpoints::ready(&found, service.port, &stores.slices(&key));
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
    let last = last.and_then(|last| serde_json::from_value(last.data.clone()).ok());
    View {
        credentials: Credentials::new(
            resolve(sources, |source, entry| stores.value(source, entry)),
            last.as_ref(),
        ),
        configured,
        daemons: Daemons::read(report.as_deref(), &slices),
        service_account: service_account.and_then(|account| account.metadata.uid.clone()),
        rollout: Rollout::of(child(ChildKind::Deployment, &names.workload).as_deref()),
        instance: names::instance(&key.name),
        names,
    }
}
