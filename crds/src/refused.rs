//! Tests of the CEL rules without an API server: what each refuses, and that operator and `moored serve` refuse it too.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::{Value, json};

use crate::{
    ACPAgent, MCPGateway, MCPTarget, Platform, Refusal, accept_agent, accept_gateway, accept_target,
};

/// What the rules say of `object`, and whether operator and `moored serve` take it.
fn judged(object: &Value) -> (String, Result<(), Refusal>) {
    let said = |result: Result<(), kube::core::cel::ValidationErrors>| {
        result.map_or_else(|errors| errors.to_string(), |()| String::new())
    };
    let platform = Platform::default();
    match object["kind"].as_str().unwrap() {
        "MCPGateway" => {
            let gateway: MCPGateway = serde_json::from_value(object.clone()).unwrap();
            (said(gateway.validate_cel()), accept_gateway(&gateway, &platform))
        }
        "MCPTarget" => {
            let target: MCPTarget = serde_json::from_value(object.clone()).unwrap();
            (said(target.validate_cel()), accept_target(&target, &platform))
        }
        "ACPAgent" => {
            let agent: ACPAgent = serde_json::from_value(object.clone()).unwrap();
            (said(agent.validate_cel()), accept_agent(&agent))
        }
        other => panic!("{other}"),
    }
}

/// An object, what is said of it, and whether it is taken.
type Judged = (Value, String, Result<(), Refusal>);

/// Every object of the list, what is said of it, and whether it is taken. Judged once: a rule is slow to compile.
static REFUSED: LazyLock<Vec<Judged>> = LazyLock::new(|| {
    let objects: Vec<Value> = serde_saphyr::from_multiple(include_str!("../testdata/refused.yaml")).unwrap();
    let judged = objects.into_iter().map(|object| {
        let (said, accepted) = judged(&object);
        (object, said, accepted)
    });
    judged.collect()
});

#[test]
fn each_refused_object_is_told_what_to_write_instead() {
    for (object, said, _) in REFUSED.iter() {
        let says = object["metadata"]["annotations"]["says"].as_str().unwrap();
        assert!(said.contains(says), "{}: {said}", object["spec"]);
    }
}

#[test]
fn what_the_rules_refuse_is_refused_without_an_api_server_too() {
    for (object, _, accepted) in REFUSED.iter() {
        assert!(accepted.is_err(), "{}", object["spec"]);
    }
}

#[test]
fn each_rule_refuses_something() {
    for definition in crate::definitions() {
        let kind = &definition.spec.names.kind;
        let of_kind = REFUSED.iter().filter(|(object, ..)| object["kind"] == **kind);
        let said: String = of_kind.map(|(_, said, _)| said.as_str()).collect();
        let schema = definition.spec.versions[0].schema.as_ref().unwrap();
        for (message, rule) in rules(schema.open_api_v3_schema.as_ref().unwrap()) {
            // Rules about a change are tried below.
            assert!(
                rule.contains("oldSelf") || said.contains(&message),
                "{kind}: nothing is refused by {rule}"
            );
        }
    }
}

/// Messages and rules of `schema` and all below it.
fn rules(schema: &JSONSchemaProps) -> BTreeSet<(String, String)> {
    let own = schema.x_kubernetes_validations.iter().flatten();
    let mut all: BTreeSet<_> = own
        .map(|rule| (rule.message.clone().expect("every rule has a message"), rule.rule.clone()))
        .collect();
    all.extend(schema.properties.iter().flatten().flat_map(|(_, property)| rules(property)));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        all.extend(rules(items));
    }
    all
}

fn agent(workspace: &Value, store: &Value) -> ACPAgent {
    serde_json::from_value(json!({
        "apiVersion": "mooring.dev/v1alpha1", "kind": "ACPAgent", "metadata": {"name": "coder"},
        "spec": {
            "auth": {"anonymous": {}}, "container": {"image": "agent", "command": ["agent"]},
            "workspace": workspace, "store": store,
        },
    }))
    .unwrap()
}

#[test]
fn a_workspace_keeps_its_class_and_only_grows() {
    let store = json!({"type": "Memory"});
    let old = agent(&json!({"storage": "10Gi", "storageClassName": "fast"}), &store);
    let change = |workspace: Value| {
        agent(&workspace, &store).validate_cel_update(&old).map_err(|errors| errors.to_string())
    };
    assert_eq!(change(json!({"storage": "11Gi", "storageClassName": "fast"})), Ok(()));
    assert_eq!(change(json!({"storage": "10240Mi", "storageClassName": "fast"})), Ok(()));
    for smaller in
        [json!({"storage": "9Gi", "storageClassName": "fast"}), json!({"storageClassName": "fast"})]
    {
        assert!(change(smaller).unwrap_err().contains("storage only grows"));
    }
    for other in [json!({"storage": "10Gi", "storageClassName": "slow"}), json!({"storage": "10Gi"})] {
        assert!(change(other).unwrap_err().contains("storageClassName cannot change"));
    }
}

#[test]
fn shards_never_change() {
    let of = |shards: Value| agent(&json!({}), &json!({"type": "ConfigMap", "configMap": shards}));
    let old = of(json!({"shards": 4}));
    assert!(of(json!({"shards": 4})).validate_cel_update(&old).is_ok());
    for changed in [json!({"shards": 5}), json!({})] {
        let said = of(changed).validate_cel_update(&old).unwrap_err().to_string();
        assert!(said.contains("write the old number"), "{said}");
    }
    assert!(old.validate_cel_update(&of(json!({}))).is_err());
}

#[test]
fn no_target_gets_a_token_that_the_api_server_takes() {
    let of = |audience: &str| {
        let (said, accepted) = judged(&json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": "MCPTarget", "metadata": {"name": "vault"},
            "spec": {
                "gatewayRefs": [{"name": "tools"}],
                "server": {"type": "Service", "service": {"name": "vault", "port": 8000}},
                "credentials": {"type": "ServiceAccountToken", "serviceAccountToken": {"audience": audience}},
            },
        }));
        assert_eq!(said.is_empty(), accepted.is_ok(), "{audience}: {said}");
        accepted.is_ok()
    };
    for api in [
        "kubernetes",
        "Kubernetes.default",
        "kubernetes.default.svc:443",
        "https://kubernetes",
        "HTTPS://kubernetes.default.svc.cluster.local/",
        "http://kubernetes.example.org:6443",
        "k3s",
    ] {
        assert!(!of(api), "{api}");
    }
    for fine in ["vault", "https://mcp.example.org", "kubernetes-tools", "https://mcp.team.svc"] {
        assert!(of(fine), "{fine}");
    }
}
