//! Manifests that no API server has seen.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use mooring_crds::manifest::{Unreadable, read};
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget};
use serde_json::Value;

fn yaml(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

const HEAD: &str = "apiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {name: tools}\n";

#[test]
fn every_unknown_field_is_named_by_its_path() {
    let given = yaml(
        "apiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {name: tools, label: {}}\nextra: {}\n\
         spec: {auth: {anonymous: {colour: red}}, session: {timeout: 900}, sesion: {}, \
         access: [{subjects: [a]}, {subject: a}], podTemplate: {labels: {any: key}, tolerations: [{keys: a}]}}",
    );
    let Err(Unreadable::UnknownFields(mut unknown)) = read::<MCPGateway>(&given) else {
        panic!("it was read")
    };
    unknown.sort();
    assert_eq!(
        unknown,
        [
            "extra",
            "metadata.label",
            "spec.access[1].subject",
            "spec.auth.anonymous.colour",
            "spec.podTemplate.tolerations[0].keys",
            "spec.sesion",
            "spec.session.timeout",
        ]
    );
}

#[test]
fn what_the_kinds_have_is_known() {
    let gateway = yaml(&format!(
        "{HEAD}spec: {{auth: {{anonymous: {{}}}}, podTemplate: {{labels: {{any: key}}, resources: \
         {{requests: {{cpu: 1, memory: 1Gi}}}}, affinity: {{nodeAffinity: {{}}}}}}, access: [], endpoint: {{}}}}"
    ));
    assert!(read::<MCPGateway>(&gateway).is_ok());
    let target = yaml(
        "{apiVersion: mooring.dev/v1alpha1, kind: MCPTarget, \
         metadata: {name: t, labels: {a: b}, annotations: {c: d}, creationTimestamp: '2026-01-01T00:00:00Z'}, \
         spec: {gatewayRefs: [{name: tools}], server: {type: Container, container: {image: x, \
         env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}}}, status: {conditions: []}}",
    );
    assert!(read::<MCPTarget>(&target).is_ok());
    let agent = yaml(
        "{apiVersion: mooring.dev/v1alpha1, kind: ACPAgent, metadata: {name: a}, \
         spec: {auth: {anonymous: {}}, container: {image: x, command: [x]}, network: {allow: [{cidr: 10.0.0.0/8, ports: [443]}]}}}",
    );
    assert!(read::<ACPAgent>(&agent).is_ok());
}

#[test]
fn null_is_as_good_as_absent() {
    let given = yaml(&format!("{HEAD}spec:\n  auth:\n    anonymous:\n  session:\n"));
    let gateway: MCPGateway = read(&given).unwrap();
    assert_eq!((gateway.spec.auth.anonymous, gateway.spec.session.timeout_seconds), (None, 3600));
}

#[test]
fn a_value_of_another_type_is_said_to_be_so() {
    let given = yaml(&format!("{HEAD}spec: {{auth: {{anonymous: {{}}}}, replicas: many}}"));
    let Err(Unreadable::Malformed(message)) = read::<MCPGateway>(&given) else { panic!("it was read") };
    assert!(message.contains("many"), "{message}");
}
