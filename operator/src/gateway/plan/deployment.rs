//! The Deployment: how pods are replaced. What a pod is, `pod.rs` says. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{Parts, pod, selector};

/// Old ReplicaSets kept to look at.
const HISTORY: i32 = 3;

/// The uid of the ServiceAccount that a pod's token was made for. One that is made anew under the same name refuses the
/// tokens of the old one, so the pods must be made anew, too.
const SERVICE_ACCOUNT: &str = "mooring.dev/service-account";

pub(super) fn deployment(parts: &Parts<'_>, service_account: &str) -> Deployment {
    let template = parts.gateway.spec.pod_template.clone().unwrap_or_default();
    let mut labels: BTreeMap<_, _> = template.labels.clone();
    labels.extend(selector(parts.instance));
    let mut annotations = template.annotations.clone();
    annotations.insert(SERVICE_ACCOUNT.to_owned(), service_account.to_owned());
    Deployment {
        metadata: parts.meta(&parts.names.workload),
        spec: Some(DeploymentSpec {
            replicas: Some(parts.gateway.spec.replicas),
            revision_history_limit: Some(HISTORY),
            selector: parts.pods(),
            // The old pod ends before a new one begins: sessions of the Memory store live in one pod, and a Service in
            // front of two that are ready would send every other request of a session to the one without it.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(0)),
                    max_unavailable: Some(IntOrString::Int(1)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(annotations),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod::spec(parts, template)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
