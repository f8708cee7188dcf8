//! How far a Deployment has come. Pure.

use kube::core::DynamicObject;
use serde_json::Value;

/// What a Deployment's status says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Pods wanted.
    pub wanted: i64,
    /// Pods there are, old ones too.
    pub replicas: i64,
    /// Of these, of the newest template.
    pub updated: i64,
    /// Of these, serving.
    pub available: i64,
    /// Whether the status speaks of the newest spec.
    pub current: bool,
    /// Whether pods cannot be made at all, such as for a quota.
    pub refused: bool,
    /// Whether new pods have not come up for so long that the Deployment gave up waiting.
    pub stuck: bool,
}

impl Rollout {
    /// Reads a Deployment; all zero where there is none.
    pub fn of(deployment: Option<&DynamicObject>) -> Self {
        let Some(deployment) = deployment else { return Self::default() };
        let number = |path: &str| deployment.data.pointer(path).and_then(Value::as_i64).unwrap_or(0);
        let conditions = deployment.data.pointer("/status/conditions").and_then(Value::as_array);
        let says = |kind: &str, status: &str| {
            conditions.into_iter().flatten().any(|condition| {
                condition.get("type").and_then(Value::as_str) == Some(kind)
                    && condition.get("status").and_then(Value::as_str) == Some(status)
            })
        };
        Self {
            wanted: number("/spec/replicas"),
            replicas: number("/status/replicas"),
            updated: number("/status/updatedReplicas"),
            available: number("/status/availableReplicas"),
            current: number("/status/observedGeneration") >= deployment.metadata.generation.unwrap_or(0),
            refused: says("ReplicaFailure", "True"),
            stuck: says("Progressing", "False"),
        }
    }

    /// Whether enough pods serve, whatever their template.
    pub fn serves(&self) -> bool {
        self.current && self.wanted > 0 && self.available >= self.wanted
    }

    /// Whether the newest template's pods are all there are, and all serve.
    pub fn settled(&self) -> bool {
        self.current
            && [self.replicas, self.updated, self.available].iter().all(|count| *count == self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rollout(status: &Value) -> Rollout {
        let object =
            json!({"metadata": {"name": "d", "generation": 2}, "spec": {"replicas": 1}, "status": status});
        Rollout::of(Some(&serde_json::from_value(object).unwrap()))
    }

    #[test]
    fn a_status_of_an_older_spec_proves_nothing() {
        let counts =
            json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(!rollout(&counts).serves());
        assert!(!rollout(&counts).settled());
    }

    #[test]
    fn an_old_pod_beside_a_new_one_serves_and_is_not_settled() {
        let counts =
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(rollout(&counts).serves());
        assert!(!rollout(&counts).settled());
    }

    #[test]
    fn new_pods_alone_are_settled() {
        let counts =
            json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(rollout(&counts).settled());
    }

    #[test]
    fn without_a_deployment_nothing_serves() {
        assert!(!Rollout::of(None).serves());
    }

    #[test]
    fn a_deployment_that_gave_up_says_so() {
        let conditions = json!({"conditions": [{"type": "Progressing", "status": "False"}]});
        assert!(rollout(&conditions).stuck);
    }
}
