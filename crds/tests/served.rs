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
    let server = json!({"type": "Service", "service": {"name": "weather", "port": 8000}});
    let spec = merged(&json!({"gatewayRefs": [{"name": "tools"}], "server": server}), over);
    let target: MCPTarget = serde_json::from_value(object("MCPTarget", &spec)).unwrap();
    accept_target(&target, &Platform::default())
}

#[test]
fn each_unserved_field_of_a_gateway_is_refused_by_its_name() {
    for (yaml, field) in [
        ("autoscaling: {maxReplicas: 3}", "spec.autoscaling"),
        ("session: {mode: Stateless}", "spec.session.mode: Stateless"),
        ("session: {idleTimeoutSeconds: 60}", "spec.session.idleTimeoutSeconds"),
        ("session: {maxPerPrincipal: 5}", "spec.session.maxPerPrincipal"),
        ("session: {endBefore: '2026-01-01T00:00:00Z'}", "spec.session.endBefore"),
        ("streaming: Disabled", "spec.streaming: Disabled"),
        ("auth: {oidc: {issuer: 'https://id.example.org', audiences: [a]}}", "spec.auth.oidc"),
        ("auth: {serviceAccount: {audiences: [a]}}", "spec.auth.serviceAccount"),
        ("auth: {delegation: {agents: [{name: coder}]}}", "spec.auth.delegation"),
        ("auth: {denied: [{subject: mallory}]}", "spec.auth.denied"),
        ("access: [{subjects: [alice]}]", "spec.access"),
        ("store: {type: ConfigMap}", "spec.store.type: ConfigMap"),
        ("store: {type: Redis, redis: {address: 'redis://valkey:6379'}}", "spec.store.type: Redis"),
        ("store: {type: Sidecar}", "spec.store.type: Sidecar"),
        (
            "allowedTargets: {namespaces: {from: Selector, selector: {}}}",
            "spec.allowedTargets.namespaces.selector",
        ),
        ("tls: {certificateRef: {name: cert}}", "spec.tls"),
        ("endpoint: {trustedProxies: [10.0.0.0/8]}", "spec.endpoint.trustedProxies"),
        ("expose: {httpRoute: {parentRefs: [{name: public}]}}", "spec.expose.httpRoute"),
        ("expose: {ingress: {host: tools.example.org}}", "spec.expose.ingress"),
        ("limits: {streamsPerSession: 16}", "spec.limits.streamsPerSession"),
        ("limits: {requestsInFlightPerSession: 64}", "spec.limits.requestsInFlightPerSession"),
        ("limits: {requestsInFlight: 4096}", "spec.limits.requestsInFlight"),
    ] {
        assert_refused(yaml, field, gateway);
    }
    assert_eq!(gateway(&json!({})), Ok(()));
}

#[test]
fn each_unserved_field_of_a_target_is_refused_by_its_name() {
    for (yaml, field) in [
        ("server: {type: Container, container: {image: x}}", "spec.server.type: Container"),
        ("protocol: SSE", "spec.protocol: SSE"),
        ("listing: PerSession", "spec.listing: PerSession"),
        ("tools: {deny: ['delete_*']}", "spec.tools"),
        ("timeouts: {clientAnswerSeconds: 600}", "spec.timeouts.clientAnswerSeconds"),
        ("timeouts: {overrides: [{name: slow, tools: [x]}]}", "spec.timeouts.overrides"),
        ("onSessionLoss: Reinitialize", "spec.onSessionLoss: Reinitialize"),
        ("podTemplate: {}", "spec.podTemplate"),
    ] {
        assert_refused(yaml, field, target);
    }
    assert_eq!(target(&json!({"protocol": "StreamableHTTP"})), Ok(()));
}

#[test]
fn all_unserved_fields_are_named_at_once() {
    let over = json!({"streaming": "Disabled", "tls": {"certificateRef": {"name": "c"}}});
    assert_eq!(
        gateway(&over).unwrap_err().message,
        "this version does not serve spec.streaming: Disabled (write Enabled), spec.tls (remove it)"
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
