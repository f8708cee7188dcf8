//! Nothing is accepted and ignored: each field that is not served is refused by its name.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use mooring_crds::condition::reason;
use mooring_crds::{
    ACPAgent, MCPGateway, MCPTarget, Platform, Refusal, accept_agent, accept_gateway, accept_target,
    definitions,
};
use serde_json::{Value, json};

fn merged(base: &Value, over: &Value) -> Value {
    let (Value::Object(fields), Value::Object(over)) = (base, over) else { return over.clone() };
    let mut all = fields.clone();
    for (key, value) in over {
        let value = fields.get(key).map_or_else(|| value.clone(), |below| merged(below, value));
        all.insert(key.clone(), value);
    }
    Value::Object(all)
}

fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "mooring.dev/v1alpha1", "kind": kind,
        "metadata": {"name": "x", "namespace": "ai"}, "spec": spec,
    })
}

fn assert_refused(yaml: &str, field: &str, accept: impl Fn(&Value) -> Result<(), Refusal>) {
    let refusal = accept(&serde_saphyr::from_str(yaml).unwrap()).unwrap_err();
    assert_eq!(refusal.reason, reason::NOT_IMPLEMENTED, "{yaml}");
    assert!(refusal.message.contains(&format!(" {field} (")), "{yaml}: {refusal}");
}

fn gateway(over: &Value) -> Result<(), Refusal> {
    let spec = merged(&json!({"auth": {"anonymous": {}}}), over);
    let gateway: MCPGateway = serde_json::from_value(object("MCPGateway", &spec)).unwrap();
    accept_gateway(&gateway, &Platform::default())
}

fn target(over: &Value) -> Result<(), Refusal> {
    target_at(over, &Platform::default())
}

fn target_at(over: &Value, platform: &Platform) -> Result<(), Refusal> {
    let server = json!({"type": "Service", "service": {"name": "weather", "port": 8000}});
    let spec = merged(&json!({"gatewayRefs": [{"name": "tools"}], "server": server}), over);
    let target: MCPTarget = serde_json::from_value(object("MCPTarget", &spec)).unwrap();
    accept_target(&target, platform)
}

#[test]
fn each_unserved_field_of_a_gateway_is_refused_by_its_name() {
    for (yaml, field) in [
        ("autoscaling: {maxReplicas: 3}", "spec.autoscaling"),
        ("auth: {delegation: {agents: [{name: coder}]}}", "spec.auth.delegation"),
        ("store: {type: ConfigMap}", "spec.store.type: ConfigMap"),
        ("store: {type: Redis, redis: {address: 'redis://valkey:6379'}}", "spec.store.type: Redis"),
        ("store: {type: Sidecar}", "spec.store.type: Sidecar"),
        (
            "allowedTargets: {namespaces: {from: Selector, selector: {}}}",
            "spec.allowedTargets.namespaces.selector",
        ),
        ("expose: {httpRoute: {parentRefs: [{name: public}]}}", "spec.expose.httpRoute"),
        ("expose: {ingress: {host: tools.example.org}}", "spec.expose.ingress"),
    ] {
        assert_refused(yaml, field, gateway);
    }
    assert_eq!(gateway(&json!({})), Ok(()));
}

#[test]
fn each_unserved_field_of_a_target_is_refused_by_its_name() {
    for (yaml, field) in [
        ("server: {type: Container, container: {image: x}}", "spec.server.type: Container"),
        ("podTemplate: {}", "spec.podTemplate"),
    ] {
        assert_refused(yaml, field, target);
    }
    for protocol in ["Auto", "StreamableHTTP", "SSE"] {
        assert_eq!(target(&json!({"protocol": protocol})), Ok(()));
    }
}

#[test]
fn a_container_runs_as_a_process_where_there_is_no_cluster_and_what_that_cannot_have_is_refused() {
    let here = Platform { allow_processes: true, ..Platform::default() };
    let container = |more: &str| {
        let server = "{type: Container, service: null, container: {image: i, command: [server]";
        serde_saphyr::from_str::<Value>(&format!("server: {server}{more}}}}}")).unwrap()
    };
    assert_eq!(
        target_at(&container(", args: [a], env: [{name: A, value: b}], isolation: Shared"), &here),
        Ok(())
    );
    for (more, field) in [
        (
            ", env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
            "spec.server.container.env[].valueFrom",
        ),
        (", envFrom: [{secretRef: {name: s}}]", "spec.server.container.envFrom"),
        (", resources: {limits: {memory: 1Gi}}", "spec.server.container.resources"),
        (", transport: StreamableHTTP, port: 1", "spec.server.container.transport: StreamableHTTP"),
        (", replicas: 2", "spec.server.container.replicas"),
    ] {
        let refusal = target_at(&container(more), &here).unwrap_err();
        assert_eq!(refusal.reason, reason::NOT_IMPLEMENTED, "{more}");
        assert!(refusal.message.contains(&format!(" {field} (")), "{more}: {refusal}");
    }
    for over in [container(""), container(", isolation: Shared")] {
        let refusal = target(&over).unwrap_err();
        assert!(refusal.message.contains("spec.server.type: Container"), "{refusal}");
    }
    let without = merged(&container(""), &json!({"server": {"container": {"command": []}}}));
    let refusal = target_at(&without, &here).unwrap_err();
    assert_eq!(refusal.reason, reason::INVALID);
    assert!(refusal.message.contains("write the command"), "{refusal}");
    let sse = merged(&container(""), &json!({"protocol": "SSE"}));
    assert!(target_at(&sse, &here).unwrap_err().message.contains("protocol SSE goes with"));
}

#[test]
fn all_unserved_fields_are_named_at_once() {
    let over = json!({"autoscaling": {"maxReplicas": 3}, "expose": {"ingress": {"host": "a.example"}}});
    assert_eq!(
        gateway(&over).unwrap_err().message,
        "this version does not serve spec.autoscaling (write replicas), spec.expose.ingress (write the Ingress yourself)"
    );
}

#[test]
fn no_agent_is_served() {
    let spec = json!({"auth": {"anonymous": {}}, "container": {"image": "agent", "command": ["agent"]}});
    let agent: ACPAgent = serde_json::from_value(object("ACPAgent", &spec)).unwrap();
    let refusal = accept_agent(&agent).unwrap_err();
    assert_eq!(refusal.reason, reason::NOT_IMPLEMENTED);
    assert!(refusal.message.contains("ACPAgent"), "{refusal}");
}

/// What the API server would fill in for `schema`, as it fills in: from the outside in.
fn filled(schema: &Value) -> Option<Value> {
    let default = schema.get("default")?;
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(written) = default.as_object() else { return Some(default.clone()) };
    let below = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some((name.clone(), filled(property)?)));
    let below: Value = below.collect();
    Some(merged(&below, &Value::Object(written.clone())))
}

#[test]
fn what_the_schema_fills_in_is_served() {
    let [gateways, targets, agents] =
        definitions().map(|definition| serde_json::to_value(definition).unwrap());
    let defaults = |definition: &Value| -> Value {
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let properties = spec["properties"].as_object().unwrap();
        properties.iter().filter_map(|(name, property)| Some((name.clone(), filled(property)?))).collect()
    };
    assert_eq!(defaults(&gateways)["session"]["timeoutSeconds"], 3600);
    assert_eq!(gateway(&defaults(&gateways)), Ok(()));
    assert_eq!(defaults(&targets)["timeouts"]["maximumSeconds"], 3600);
    assert_eq!(target(&defaults(&targets)), Ok(()));
    assert_eq!(defaults(&agents), json!({}));
}

#[test]
fn the_schemas_defaults_are_those_without_an_api_server() {
    let [gateways, targets, _] = definitions().map(|definition| serde_json::to_value(definition).unwrap());
    let spec_of = |definition: &Value| {
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            .clone()
    };
    let bare: MCPGateway =
        serde_json::from_value(object("MCPGateway", &json!({"auth": {"anonymous": {}}}))).unwrap();
    let server = json!({"type": "URL", "url": {"address": "https://a.example"}});
    let bare_target: MCPTarget = serde_json::from_value(object(
        "MCPTarget",
        &json!({"gatewayRefs": [{"name": "t"}], "server": server}),
    ))
    .unwrap();
    for (schema, bare) in [
        (spec_of(&gateways), serde_json::to_value(&bare.spec).unwrap()),
        (spec_of(&targets), serde_json::to_value(&bare_target.spec).unwrap()),
    ] {
        for (name, property) in schema.as_object().unwrap() {
            if let Some(default) = filled(property) {
                assert_eq!(bare[name], default, "{name}");
            }
        }
    }
}

#[test]
fn what_is_counted_is_refused_below_one_and_a_proxy_is_a_network() {
    let refused = |yaml: &str| gateway(&serde_saphyr::from_str(yaml).unwrap()).unwrap_err();
    for (yaml, says) in [
        ("session: {idleTimeoutSeconds: 0}", "idleTimeoutSeconds is below 1"),
        ("session: {idleTimeoutSeconds: 3601}", "of at most timeoutSeconds"),
        ("session: {maxPerPrincipal: 0}", "maxPerPrincipal is below 1"),
        ("limits: {streamsPerSession: 0}", "streamsPerSession is below 1"),
        ("limits: {requestsInFlightPerSession: -1}", "requestsInFlightPerSession is below 1"),
        ("limits: {requestsInFlight: 0}", "spec.limits.requestsInFlight is below 1; write 1 or more"),
        ("endpoint: {trustedProxies: ['10.0.0.0/33']}", "trustedProxies"),
        ("endpoint: {trustedProxies: ['10.0.0/8']}", "trustedProxies"),
        ("endpoint: {trustedProxies: ['10.0.0.0/+8']}", "trustedProxies"),
    ] {
        let refusal = refused(yaml);
        assert_eq!(refusal.reason, reason::INVALID, "{yaml}");
        assert!(refusal.message.contains(says), "{yaml}: {refusal}");
    }
    let taken = json!({
        "session": {"idleTimeoutSeconds": 3600, "maxPerPrincipal": 1},
        "endpoint": {"trustedProxies": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32"]},
    });
    assert_eq!(gateway(&taken), Ok(()));
}

#[test]
fn what_is_of_sessions_is_refused_where_there_are_none_and_what_is_not_is_served() {
    let gateway = |yaml: &str| gateway(&serde_saphyr::from_str(yaml).unwrap());
    let stateless = |yaml: &str| gateway(&format!("{{session: {{mode: Stateless}}, {yaml}}}"));
    for refused in [
        gateway("session: {mode: Stateless, idleTimeoutSeconds: 900}"),
        gateway("session: {mode: Stateless, maxPerPrincipal: 1}"),
        gateway("session: {mode: Stateless, endBefore: '2026-01-01T00:00:00Z'}"),
        stateless("limits: {requestsInFlightPerSession: 1}"),
        stateless("limits: {streamsPerSession: 1}"),
    ] {
        let refusal = refused.unwrap_err();
        assert_eq!(refusal.reason, reason::INVALID);
        assert!(refusal.message.contains("Stateless there are none; remove them"), "{refusal}");
    }
    assert_eq!(stateless("limits: {requestsInFlight: 1, requestBytes: 1024}"), Ok(()));
    // It has a default, so that nobody can tell whether it was written.
    assert_eq!(gateway("session: {mode: Stateless, timeoutSeconds: 900}"), Ok(()));
    let refusal = gateway("{streaming: Disabled, limits: {streamsPerSession: 1}}").unwrap_err();
    assert!(refusal.message.contains("with streaming: Disabled there are none"), "{refusal}");
}

#[test]
fn nobody_can_be_denied_where_nobody_is_told_apart() {
    let refusal = gateway(&json!({"auth": {"denied": [{"subject": "mallory"}]}})).unwrap_err();
    assert_eq!(refusal.reason, reason::INVALID);
    assert!(refusal.message.contains("remove denied, or write oidc"), "{refusal}");
    let auth =
        json!({"anonymous": null, "serviceAccount": {"audiences": ["a"]}, "denied": [{"subject": "x"}]});
    assert_eq!(gateway(&json!({"auth": auth})), Ok(()));
}
