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

pub(super) fn deployment(parts: &Parts<'_>) -> Deployment {
    let template = parts.gateway.spec.pod_template.clone().unwrap_or_default();
    let mut labels: BTreeMap<_, _> = template.labels.clone();
    labels.extend(selector(parts.instance));
    let annotations = (!template.annotations.is_empty()).then(|| template.annotations.clone());
    Deployment {
        metadata: parts.meta(&parts.names.workload),
        spec: Some(DeploymentSpec {
            replicas: Some(parts.gateway.spec.replicas),
            revision_history_limit: Some(HISTORY),
            selector: parts.pods(),
            // A new pod serves before an old one ends.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), annotations, ..ObjectMeta::default() }),
                spec: Some(pod::spec(parts, template)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
