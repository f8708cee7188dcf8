//! Whom a change concerns, one rule a test.

use serde_json::{Value, json};

use super::*;

fn decode<K: serde::de::DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

fn a_gateway(namespace: &str, name: &str, generation: i64) -> MCPGateway {
    decode(json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPGateway",
        "metadata": {"namespace": namespace, "name": name, "uid": name, "generation": generation},
        "spec": {"auth": {"anonymous": {}}},
    }))
}

fn a_target(name: &str, gateways: &[&str], generation: i64) -> MCPTarget {
    let references: Vec<_> = gateways
        .iter()
        .map(|gateway| match gateway.split_once('/') {
            Some((namespace, name)) => json!({"namespace": namespace, "name": name}),
            None => json!({"name": gateway}),
        })
        .collect();
    decode(json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPTarget",
        "metadata": {"namespace": "team", "name": name, "uid": name, "generation": generation},
        "spec": {
            "gatewayRefs": references,
            "server": {"type": "Service", "service": {"name": format!("{name}-svc"), "port": 80}},
        },
    }))
}

fn a_child(name: &str, owner: Option<&str>) -> DynamicObject {
    let owners: Vec<_> = owner
        .iter()
        .map(|name| json!({"apiVersion": "mooring.dev/v1alpha1", "kind": "MCPGateway", "name": name, "uid": "u"}))
        .collect();
    decode(json!({"metadata": {"namespace": "team", "name": name, "ownerReferences": owners}}))
}

fn keys(namespace: &str, names: &[&str]) -> BTreeSet<Key> {
    names.iter().map(|name| Key::new(namespace, *name)).collect()
}

#[test]
fn a_changed_spec_of_a_gateway_concerns_its_targets_and_a_changed_status_does_not() {
    let targets = [a_target("a", &["tools"], 1), a_target("b", &["other"], 1)];
    let (old, new) = (a_gateway("team", "tools", 1), a_gateway("team", "tools", 2));
    let spec = gateway(&Change { old: Some(&old), new: Some(&new) }, &targets);
    assert_eq!(spec.gateways, keys("team", &["tools"]));
    assert_eq!(spec.targets, keys("team", &["a"]));
    let status = gateway(&Change { old: Some(&old), new: Some(&old) }, &targets);
    assert_eq!(status.gateways, keys("team", &["tools"]));
    assert!(status.targets.is_empty());
}

#[test]
fn a_gateway_that_comes_or_goes_concerns_its_targets() {
    let targets = [a_target("a", &["tools"], 1)];
    let object = a_gateway("team", "tools", 1);
    assert_eq!(gateway(&Change { old: None, new: Some(&object) }, &targets).targets, keys("team", &["a"]));
    assert_eq!(gateway(&Change { old: Some(&object), new: None }, &targets).targets, keys("team", &["a"]));
}

#[test]
fn a_reference_that_was_removed_concerns_the_gateway_it_named() {
    let (old, new) = (a_target("a", &["tools", "apps/web"], 1), a_target("a", &["tools"], 2));
    let wakes = target(&Change { old: Some(&old), new: Some(&new) }, &[]);
    assert_eq!(wakes.gateways, [Key::new("apps", "web"), Key::new("team", "tools")].into());
    assert_eq!(wakes.targets, keys("team", &["a"]));
}

#[test]
fn a_target_that_goes_concerns_its_siblings_whose_alias_it_may_have_held() {
    let siblings = [a_target("b", &["tools"], 1), a_target("c", &["other"], 1)];
    let gone = a_target("a", &["tools"], 1);
    let wakes = target(&Change { old: Some(&gone), new: None }, &siblings);
    assert_eq!(wakes.targets, keys("team", &["a", "b"]));
}

#[test]
fn a_status_of_a_target_concerns_the_target_alone() {
    let siblings = [a_target("b", &["tools"], 1)];
    let same = a_target("a", &["tools"], 1);
    let wakes = target(&Change { old: Some(&same), new: Some(&same) }, &siblings);
    assert_eq!(wakes, Wakes { targets: keys("team", &["a"]), ..Wakes::default() });
}

#[test]
fn a_child_whose_owner_was_stripped_concerns_the_owner_it_had() {
    let (old, new) = (a_child("tools-mcp", Some("tools")), a_child("tools-mcp", None));
    let wakes = child(&Change { old: Some(&old), new: Some(&new) }, &[]);
    assert_eq!(wakes.gateways, keys("team", &["tools"]));
}

#[test]
fn a_report_concerns_the_targets_too_and_the_configuration_does_not() {
    let targets = [a_target("a", &["tools"], 1)];
    let report = a_child("tools-mcp-report", Some("tools"));
    assert_eq!(child(&Change { old: None, new: Some(&report) }, &targets).targets, keys("team", &["a"]));
    let config = a_child("tools-mcp-config", Some("tools"));
    assert!(child(&Change { old: None, new: Some(&config) }, &targets).targets.is_empty());
}

#[test]
fn a_child_of_another_kind_concerns_nobody() {
    let foreign: DynamicObject = decode(json!({
        "metadata": {"namespace": "team", "name": "x", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "tools", "uid": "u"},
            {"apiVersion": "example.org/v1", "kind": "MCPGateway", "name": "tools", "uid": "u"},
        ]}
    }));
    assert_eq!(child(&Change { old: None, new: Some(&foreign) }, &[]), Wakes::default());
}

#[test]
fn a_service_concerns_targets_that_name_it_when_it_comes_goes_or_changes_ports() {
    let targets = [a_target("a", &["tools"], 1), a_target("b", &["tools"], 1)];
    let with = |port: i32, annotation: &str| -> DynamicObject {
        decode(json!({
            "metadata": {"namespace": "team", "name": "a-svc", "annotations": {"x": annotation}},
            "spec": {"ports": [{"port": port}]},
        }))
    };
    let (first, touched, moved) = (with(80, "1"), with(80, "2"), with(81, "1"));
    let woken = |old, new| service(&Change { old, new }, &targets).targets;
    assert_eq!(woken(None, Some(&first)), keys("team", &["a"]));
    assert_eq!(woken(Some(&first), None), keys("team", &["a"]));
    assert_eq!(woken(Some(&first), Some(&moved)), keys("team", &["a"]));
    assert!(woken(Some(&first), Some(&touched)).is_empty());
}

#[test]
fn a_service_of_the_same_name_elsewhere_concerns_nobody() {
    let targets = [a_target("a", &["tools"], 1)];
    let elsewhere: DynamicObject = decode(json!({
        "metadata": {"namespace": "apps", "name": "a-svc"}, "spec": {"ports": [{"port": 80}]},
    }));
    assert_eq!(service(&Change { old: None, new: Some(&elsewhere) }, &targets), Wakes::default());
}

#[test]
fn endpoints_of_a_targets_service_concern_its_gateways() {
    let targets = [a_target("a", &["tools"], 1), a_target("b", &["web"], 1)];
    let endpoints: EndpointSlice = decode(json!({
        "metadata": {"namespace": "team", "name": "x", "labels": {"kubernetes.io/service-name": "b-svc"}},
        "addressType": "IPv4",
        "endpoints": [],
    }));
    let wakes = slice(&Change { old: None, new: Some(&endpoints) }, &[], &targets);
    assert_eq!(wakes, Wakes { gateways: keys("team", &["web"]), ..Wakes::default() });
}

#[test]
fn endpoints_concern_the_gateway_of_their_service_and_its_targets() {
    let gateways = [a_gateway("team", "tools", 1), a_gateway("apps", "tools", 1)];
    let targets = [a_target("a", &["tools"], 1)];
    let endpoints: EndpointSlice = decode(json!({
        "metadata": {"namespace": "team", "name": "x", "labels": {"kubernetes.io/service-name": "tools-mcp"}},
        "addressType": "IPv4",
        "endpoints": [],
    }));
    let wakes = slice(&Change { old: None, new: Some(&endpoints) }, &gateways, &targets);
    assert_eq!(wakes.gateways, keys("team", &["tools"]));
    assert_eq!(wakes.targets, keys("team", &["a"]));
}
