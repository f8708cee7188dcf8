//! How many pods a drain of nodes may take at once: one, so that a gateway of one pod blocks no drain. Pure.

use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::Parts;

pub(super) fn budget(parts: &Parts<'_>) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: parts.meta(&parts.names.workload),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(parts.pods()),
            // A pod that does not serve protects nobody.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}
