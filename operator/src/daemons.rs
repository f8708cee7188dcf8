//! What the daemons of one gateway say, and which of them still exist. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DynamicObject;
use mooring_crds::config::{Report, TargetReport, TargetState};

/// The daemons of one gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Daemons {
    /// The reports of the pods that live, by pod; of one that has not reported yet an empty one.
    pub live: BTreeMap<String, Report>,
    /// Keys of the report whose pods are gone.
    pub dead: Vec<String>,
    /// The version of the report ConfigMap.
    pub version: Option<String>,
}

impl Daemons {
    /// Reads the report ConfigMap beside the endpoints of the gateway's Service.
    pub fn read(report: Option<&DynamicObject>, slices: &[Arc<EndpointSlice>]) -> Self {
        let mut present = BTreeSet::new();
        let mut live = BTreeMap::new();
        let data = report.and_then(|report| report.data.get("data")).and_then(serde_json::Value::as_object);
        for endpoint in slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()) {
            let Some(pod) = endpoint.target_ref.as_ref().and_then(|target| target.name.clone()) else {
                continue;
            };
            let conditions = endpoint.conditions.as_ref();
            // A pod that is ending takes up nothing new, and nobody waits for it.
            if conditions.and_then(|conditions| conditions.terminating) != Some(true) {
                let text = data.and_then(|data| data.get(&pod)).and_then(serde_json::Value::as_str);
                // What cannot be read is a report that confirms nothing.
                let report = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
                live.insert(pod.clone(), report);
            }
            present.insert(pod);
        }
        let dead = data.into_iter().flat_map(serde_json::Map::keys).filter(|pod| !present.contains(*pod));
        Self {
            live,
            dead: dead.cloned().collect(),
            version: report.and_then(|report| report.metadata.resource_version.clone()),
        }
    }

    /// Whether there is a pod, and every one works by the configuration of this digest.
    pub fn all_work_by(&self, digest: &str) -> bool {
        !self.live.is_empty() && self.live.values().all(|report| report.config == digest)
    }

    /// What they say of one target, put together: the worst state counts. None where one of them says nothing.
    pub fn target(&self, uid: &str) -> Option<TargetReport> {
        let said = self.live.values().map(|report| report.targets.iter().find(|target| target.uid == uid));
        let said: Vec<&TargetReport> = said.collect::<Option<_>>()?;
        let worst = said.iter().copied().max_by_key(|report| badness(report.state))?;
        let mut together = worst.clone();
        // What one daemon knows of a target is true of it, though another cannot reach it now.
        if let Some(ready) = said.iter().find(|report| report.state == TargetState::Ready) {
            together.protocol_version.clone_from(&ready.protocol_version);
            together.tools = ready.tools;
        }
        Some(together)
    }
}

fn badness(state: TargetState) -> u8 {
    match state {
        TargetState::Ready => 0,
        TargetState::Pending => 1,
        TargetState::Unreachable => 2,
        TargetState::Failed => 3,
        TargetState::UnsupportedVersion => 4,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(pods: &[(&str, bool)]) -> [Arc<EndpointSlice>; 1] {
        let endpoints: Vec<_> = pods
            .iter()
            .map(|(pod, terminating)| {
                json!({
                    "addresses": ["10.0.0.1"],
                    "conditions": {"ready": !terminating, "terminating": terminating},
                    "targetRef": {"kind": "Pod", "name": pod},
                })
            })
            .collect();
        [Arc::new(
            serde_json::from_value(json!({"metadata": {}, "addressType": "IPv4", "endpoints": endpoints}))
                .unwrap(),
        )]
    }

    fn report(entries: &[(&str, &serde_json::Value)]) -> DynamicObject {
        let data: serde_json::Map<_, _> =
            entries.iter().map(|(pod, report)| ((*pod).to_owned(), json!(report.to_string()))).collect();
        let object = json!({"metadata": {"name": "r", "resourceVersion": "9"}, "data": data});
        serde_json::from_value(object).unwrap()
    }

    fn saying(state: &str, tools: i32) -> serde_json::Value {
        json!({"config": "d", "targets": [{"uid": "t", "state": state, "tools": tools, "protocolVersion": "2025-11-25"}]})
    }

    #[test]
    fn reports_of_pods_that_are_gone_are_ignored_and_named() {
        let (ready, old) = (saying("Ready", 3), json!({"config": "old"}));
        let daemons = Daemons::read(Some(&report(&[("a", &ready), ("gone", &old)])), &slice(&[("a", false)]));
        assert!(daemons.all_work_by("d"));
        assert_eq!(daemons.dead, ["gone"]);
        assert_eq!(daemons.version.as_deref(), Some("9"));
    }

    #[test]
    fn a_pod_that_is_ending_is_not_waited_for_nor_forgotten() {
        let (ready, old) = (saying("Ready", 3), json!({"config": "old"}));
        let slices = slice(&[("a", false), ("ending", true)]);
        let daemons = Daemons::read(Some(&report(&[("a", &ready), ("ending", &old)])), &slices);
        assert!(daemons.all_work_by("d"));
        assert!(daemons.dead.is_empty());
    }

    #[test]
    fn a_pod_without_a_report_or_with_one_that_cannot_be_read_confirms_nothing() {
        let ready = saying("Ready", 3);
        let silent = Daemons::read(Some(&report(&[("a", &ready)])), &slice(&[("a", false), ("b", false)]));
        assert!(!silent.all_work_by("d"));
        assert_eq!(silent.target("t"), None);
        let garbled = Daemons::read(Some(&report(&[("a", &json!([1]))])), &slice(&[("a", false)]));
        assert!(!garbled.all_work_by("d"));
    }

    #[test]
    fn without_pods_nothing_is_confirmed() {
        let daemons = Daemons::read(None, &[]);
        assert!(!daemons.all_work_by("d"));
        assert_eq!(daemons.target("t"), None);
    }

    #[test]
    fn the_worst_word_on_a_target_counts_and_what_is_known_of_it_stays() {
        let (ready, unreachable) = (saying("Ready", 3), saying("Unreachable", 0));
        let data = report(&[("a", &ready), ("b", &unreachable)]);
        let daemons = Daemons::read(Some(&data), &slice(&[("a", false), ("b", false)]));
        let target = daemons.target("t").unwrap();
        assert_eq!(target.state, TargetState::Unreachable);
        assert_eq!(target.tools, 3);
    }
}
