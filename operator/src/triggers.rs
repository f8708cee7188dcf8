//! Which objects must be reconciled when another changed: from what it was and what it is. Pure.
//!
//! Both are looked at: a reference that was removed, a stripped label or owner concerns whom it named before.

use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Resource, core::DynamicObject};
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget, names};

use crate::{key::Key, kind::Kind, stores::service_of, target::references};

/// What to reconcile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wakes {
    /// Gateways.
    pub gateways: BTreeSet<Key>,
    /// Targets.
    pub targets: BTreeSet<Key>,
    /// Agents.
    pub agents: BTreeSet<Key>,
}

/// An object before and after a change; either may be missing.
#[derive(Debug)]
pub struct Change<'a, K> {
    /// As it was; none where it is new, or could not be decoded.
    pub old: Option<&'a K>,
    /// As it is; none where it is gone, or cannot be decoded.
    pub new: Option<&'a K>,
}

impl<K: Resource> Change<'_, K> {
    fn both(&self) -> impl Iterator<Item = &K> {
        self.old.into_iter().chain(self.new)
    }

    /// Whether more changed than a status or labels: the spec, the object itself, or that it is being deleted.
    fn is_of_substance(&self) -> bool {
        let substance = |object: &K| {
            let meta = object.meta();
            (meta.uid.clone(), meta.generation, meta.deletion_timestamp.is_some())
        };
        self.old.map(substance) != self.new.map(substance)
    }
}

/// A gateway changed: its targets' status depends on its spec.
pub fn gateway(change: &Change<'_, MCPGateway>, targets: &[MCPTarget]) -> Wakes {
    let mut wakes = Wakes { gateways: change.both().map(Key::of).collect(), ..Wakes::default() };
    if change.is_of_substance() {
        let gateways = wakes.gateways.clone();
        wakes.targets = attached(&gateways, targets);
    }
    wakes
}

/// A target changed: its gateways' configuration depends on its spec, and its siblings' aliases on its.
pub fn target(change: &Change<'_, MCPTarget>, targets: &[MCPTarget]) -> Wakes {
    let mut wakes = Wakes { targets: change.both().map(Key::of).collect(), ..Wakes::default() };
    if change.is_of_substance() {
        wakes.gateways = change.both().flat_map(references).collect();
        wakes.targets.extend(attached(&wakes.gateways, targets));
    }
    wakes
}

/// An agent changed.
pub fn agent(change: &Change<'_, ACPAgent>) -> Wakes {
    Wakes { agents: change.both().map(Key::of).collect(), ..Wakes::default() }
}

/// A child, or something that looks like one, changed: its owner must look at it, and at a report its targets.
pub fn child(change: &Change<'_, DynamicObject>, targets: &[MCPTarget]) -> Wakes {
    let mut wakes = Wakes::default();
    for object in change.both() {
        for owner in object.metadata.owner_references.iter().flatten() {
            if owner.kind == MCPGateway::KIND && owner.api_version == MCPGateway::api_version(&()) {
                let gateway = Key::new(object.metadata.namespace.clone().unwrap_or_default(), &owner.name);
                if object.metadata.name.as_deref() == Some(names::gateway(&owner.name).report.as_str()) {
                    wakes.targets.extend(attached(&[gateway.clone()].into(), targets));
                }
                wakes.gateways.insert(gateway);
            }
        }
    }
    wakes
}

/// Any Service changed: targets that name it, besides what it is as a child.
pub fn service(change: &Change<'_, DynamicObject>, targets: &[MCPTarget]) -> Wakes {
    let mut wakes = child(change, targets);
    // Ports are what targets look at; a Service's status concerns nobody.
    let ports = |object: &DynamicObject| object.data.pointer("/spec/ports").cloned();
    if change.old.map(ports) != change.new.map(ports) {
        let services: BTreeSet<Key> = change.both().map(Key::of).collect();
        let named = targets.iter().filter(|target| {
            let service = target.spec.server.service.as_ref();
            service.is_some_and(|service| {
                let namespace = target.metadata.namespace.clone().unwrap_or_default();
                services.contains(&Key::new(namespace, &service.name))
            })
        });
        wakes.targets.extend(named.map(Key::of));
    }
    wakes
}

/// Endpoints of a Service changed. Of one of ours, which pods live decides whose reports count; of a target's, its
/// gateways' configuration holds them.
pub fn slice(change: &Change<'_, EndpointSlice>, gateways: &[MCPGateway], targets: &[MCPTarget]) -> Wakes {
    let services: BTreeSet<Key> = change.both().filter_map(service_of).collect();
    let owners = gateways.iter().map(Key::of).filter(|gateway| {
        services.contains(&Key::new(&gateway.namespace, names::gateway(&gateway.name).workload))
    });
    let mut gateways: BTreeSet<Key> = owners.collect();
    let attached = attached(&gateways, targets);
    let named =
        targets.iter().filter(|target| service_key(target).is_some_and(|key| services.contains(&key)));
    gateways.extend(named.flat_map(references));
    Wakes { targets: attached, gateways, ..Wakes::default() }
}

/// The Service that a target names.
pub fn service_key(target: &MCPTarget) -> Option<Key> {
    let service = target.spec.server.service.as_ref()?;
    Some(Key::new(target.metadata.namespace.clone().unwrap_or_default(), &service.name))
}

/// The targets that refer to any of these gateways.
fn attached(gateways: &BTreeSet<Key>, targets: &[MCPTarget]) -> BTreeSet<Key> {
    let refers = |target: &&MCPTarget| references(target).any(|gateway| gateways.contains(&gateway));
    targets.iter().filter(refers).map(Key::of).collect()
}

#[cfg(test)]
#[path = "triggers_tests.rs"]
mod tests;
