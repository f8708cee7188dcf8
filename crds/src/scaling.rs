//! Scaling by a HorizontalPodAutoscaler: what of autoscaling/v2 the kinds take over. Types only.

use k8s_openapi::api::autoscaling::v2::MetricSpec;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A HorizontalPodAutoscaler for the pods; the operator then leaves their number alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.minReplicas) || self.minReplicas <= self.maxReplicas")
    .message("minReplicas is above maxReplicas; write a minReplicas of at most maxReplicas"))]
pub struct Autoscaling {
    /// The fewest pods. 1 where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_replicas: Option<i32>,
    /// The most pods.
    #[schemars(range(min = 1))]
    pub max_replicas: i32,
    /// What to scale by, as in autoscaling/v2; CPU at 80 % of its request where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub metrics: Vec<MetricSpec>,
}
