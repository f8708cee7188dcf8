//! What is kept of anybody's Secrets, and whom a changed one concerns.

use serde_json::{Value, json};

use super::*;

fn decode<K: serde::de::DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

fn target(name: &str, gateway: &str, secret: &str) -> MCPTarget {
    decode(json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPTarget",
        "metadata": {"namespace": "team", "name": name, "uid": name},
        "spec": {
            "gatewayRefs": [{"name": gateway}],
            "server": {"type": "Service", "service": {"name": "a", "port": 80}},
            "credentials": {"type": "Headers", "headers": [
                {"name": "X-Key", "secretRef": {"name": secret, "key": "k"}},
            ]},
        },
    }))
}

fn secret(name: &str, value: &str) -> Secret {
    let data = std::collections::BTreeMap::from([("k".to_owned(), ByteString(value.into()))]);
    let meta = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("team".to_owned()),
        annotations: Some(
            [("kubectl.kubernetes.io/last-applied-configuration".to_owned(), value.to_owned())].into(),
        ),
        ..ObjectMeta::default()
    };
    Secret { metadata: meta, data: Some(data), ..Secret::default() }
}

#[test]
fn of_a_secret_that_nobody_refers_to_nothing_is_kept_but_that_it_is_there() {
    let all = Wanted::default();
    all.replace(wanted(&[], &[target("a", "tools", "used")]));
    let (mut used, mut unused) = (secret("used", "hunter2"), secret("unused", "hunter2"));
    trim(&mut used, &all);
    trim(&mut unused, &all);
    assert_eq!(used.value("k").as_deref(), Some(b"hunter2".as_ref()));
    assert!(used.metadata.annotations.is_none(), "kubectl keeps a copy there");
    assert_eq!((unused.value("k"), is_left_out(&unused.metadata)), (None, true));
    assert!(!format!("{unused:?}").contains("hunter2"));
}

#[test]
fn a_new_reference_is_told_once() {
    let all = Wanted::default();
    let changes = all.changes();
    all.replace(wanted(&[], &[target("a", "tools", "used")]));
    all.replace(wanted(&[], &[target("b", "tools", "used")]));
    assert_eq!(*changes.borrow(), 1);
}

/// Case 051: one Secret shared by some, and none of the others'.
#[test]
fn a_changed_value_concerns_those_who_refer_to_it_and_their_gateways() {
    let targets = [target("a", "tools", "shared"), target("b", "web", "shared"), target("c", "other", "own")];
    let woken =
        |old: &Secret, new: &Secret| concerns(&Change { old: Some(old), new: Some(new) }, &[], &targets);
    let wakes = woken(&secret("shared", "one"), &secret("shared", "two"));
    let keys = |names: [&str; 2]| names.map(|name| Key::new("team", name)).into();
    assert_eq!((wakes.targets, wakes.gateways), (keys(["a", "b"]), keys(["tools", "web"])));
    assert_eq!(woken(&secret("shared", "one"), &secret("shared", "one")), Wakes::default());
    assert_eq!(woken(&secret("nobodys", "one"), &secret("nobodys", "two")), Wakes::default());
}

#[test]
fn a_gateway_refers_to_its_own_certificate() {
    let gateway: MCPGateway = decode(json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPGateway",
        "metadata": {"namespace": "team", "name": "tools"},
        "spec": {"auth": {"anonymous": {}}, "tls": {"certificateRef": {"name": "cert"}}},
    }));
    let wakes = concerns(&Change { old: None, new: Some(&secret("cert", "x")) }, &[gateway], &[]);
    assert_eq!(wakes.gateways, [Key::new("team", "tools")].into());
}
