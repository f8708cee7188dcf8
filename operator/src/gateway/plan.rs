//! Everything that must exist for one gateway, in the order in which it is applied. Pure.

mod access;
mod config;
mod credentials;
mod deployment;
mod disruption;
mod pod;
mod service;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use mooring_crds::{MCPGateway, config::DaemonConfig, names::GatewayNames};

use super::observe::View;
use crate::{
    child::{Child, ChildKind, MANAGED_BY},
    context::Settings,
    kind::{Kind, NoPlan, Plan, Prune},
};

/// What each object is made from.
struct Parts<'a> {
    gateway: &'a MCPGateway,
    names: &'a GatewayNames,
    instance: &'a str,
    config: &'a DaemonConfig,
    values: &'a BTreeMap<String, Vec<u8>>,
    settings: &'a Settings,
}

/// What must exist for a gateway whose spec is accepted.
pub fn plan(gateway: &MCPGateway, view: &View, settings: &Settings) -> Result<Plan, NoPlan> {
    let configured = view.configured.as_ref().map_err(Clone::clone)?;
    let parts = Parts {
        gateway,
        names: &view.names,
        instance: &view.instance,
        config: &configured.config,
        values: &view.credentials.values,
        settings,
    };
    let mut children = vec![
        Child::new(ChildKind::ServiceAccount, &access::service_account(&parts))?,
        Child::new(ChildKind::Role, &access::role(&parts))?,
        Child::new(ChildKind::RoleBinding, &access::role_binding(&parts))?,
    ];
    // An apply without a value would take it from sessions that work with it.
    if !view.credentials.partial {
        children.push(Child::new(ChildKind::Secret, &credentials::credentials(&parts))?);
    }
    children.extend([
        Child::new(ChildKind::ConfigMap, &config::configuration(&parts)?)?,
        Child::new(ChildKind::ConfigMap, &config::report(&parts))?,
        Child::new(ChildKind::Service, &service::service(&parts))?,
        Child::new(ChildKind::PodDisruptionBudget, &disruption::budget(&parts))?,
    ]);
    // Made one pass later than the rest: the watch's word of the ServiceAccount wakes the gateway at once. A Deployment
    // that is there stays as it is until then.
    if let Some(uid) = &view.service_account {
        children.push(Child::new(ChildKind::Deployment, &deployment::deployment(&parts, uid))?);
    }
    Ok(Plan { children, prune: prune(view) })
}

/// The labels that pick a gateway's pods. They never change: a Deployment's selector cannot.
pub fn selector(instance: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "moored".to_owned()),
        ("app.kubernetes.io/component".to_owned(), "mcp-gateway".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), instance.to_owned()),
    ])
}

/// Removes what pods that are gone have reported, once their successors are all up: while pods come and go, one
/// may have reported before its endpoint is known.
fn prune(view: &View) -> Option<Prune> {
    let daemons = &view.daemons;
    let all_known = view.rollout.settled() && i64::try_from(daemons.live.len()) == Ok(view.rollout.wanted);
    let version = daemons.version.clone().filter(|_| all_known && !daemons.dead.is_empty())?;
    Some(Prune { config_map: view.names.report.clone(), version, keys: daemons.dead.clone() })
}

impl Parts<'_> {
    fn meta(&self, name: &str) -> ObjectMeta {
        let mut labels = selector(self.instance);
        labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
        labels.insert("app.kubernetes.io/part-of".to_owned(), "mooring".to_owned());
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: self.gateway.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![self.owner()]),
            ..ObjectMeta::default()
        }
    }

    /// Without `blockOwnerDeletion`: that would need a right on the owner's finalizers.
    fn owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: MCPGateway::api_version(&()).into_owned(),
            kind: MCPGateway::KIND.to_owned(),
            name: self.gateway.name_any(),
            uid: self.gateway.uid().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }

    fn pods(&self) -> LabelSelector {
        LabelSelector { match_labels: Some(selector(self.instance)), match_expressions: None }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
