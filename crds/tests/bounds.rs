//! What the schema bounds is bounded without an API server too, and the message says what to write.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeSet;

use mooring_crds::condition::reason;
use mooring_crds::{MCPGateway, MCPTarget, Platform, Refusal, accept_gateway, accept_target, definitions};
use serde_json::{Value, json};

const SERVICE: &str = "server: {type: Service, service: {name: weather, port: 8000}}";

fn gateway(spec: &str) -> Result<(), Refusal> {
    let yaml = format!("{{metadata: {{name: tools}}, spec: {{auth: {{anonymous: {{}}}}, {spec}}}}}");
    let gateway: MCPGateway = serde_saphyr::from_str(&yaml).unwrap();
    accept_gateway(&gateway, &Platform::default())
}

fn target(spec: &str) -> Result<(), Refusal> {
    let yaml = format!("{{metadata: {{name: weather}}, spec: {spec}}}");
    let target: MCPTarget = serde_saphyr::from_str(&yaml).unwrap();
    accept_target(&target, &Platform::default())
}

fn assert_invalid(outcome: Result<(), Refusal>, spec: &str, says: &str) {
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.reason, reason::INVALID, "{spec}: {refusal}");
    assert!(refusal.message.contains(says), "{spec}: {refusal}");
}

#[test]
fn a_gateways_bounds_are_said() {
    for (spec, says) in [
        ("drain: {delaySeconds: -1}", "write 0 or more"),
        ("drain: {deadlineSeconds: 0}", "write 1 or more"),
        ("limits: {requestBytes: 1023}", "1024 to 268435456"),
        ("limits: {requestBytes: 268435457}", "1024 to 268435456"),
        ("expose: {port: 0}", "1 to 65535; write a number in between"),
        ("expose: {port: 65536}", "1 to 65535; write a number in between"),
        ("expose: {path: ''}", "write it like /mcp"),
        ("tools: {separator: ''}", "write at most 8 of these"),
        ("tools: {separator: '_________'}", "write at most 8 of these"),
        ("endpoint: {allowedHosts: ['']}", "like tools.example.org"),
    ] {
        assert_invalid(gateway(spec), spec, says);
    }
    assert_eq!(gateway("drain: {delaySeconds: 0, deadlineSeconds: 1}, limits: {requestBytes: 1024}"), Ok(()));
    assert_eq!(gateway("expose: {port: 65535, path: /}, tools: {separator: '.'}"), Ok(()));
}

#[test]
fn a_targets_bounds_are_said() {
    let refs = |refs: &str| format!("{{gatewayRefs: [{refs}], {SERVICE}}}");
    let server = |server: &str| {
        format!("{{gatewayRefs: [{{name: tools}}], server: {{type: Service, service: {server}}}}}")
    };
    let timeouts =
        |timeouts: &str| format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}, timeouts: {timeouts}}}");
    let other = |times: &str| timeouts(&format!("{{overrides: [{{name: a, tools: [x], {times}}}]}}"));
    let seventeen: Vec<_> = (0..17).map(|n| format!("{{name: g{n}}}")).collect();
    for (spec, says) in [
        (refs(""), "write 1 to 16 gateways"),
        (refs(&seventeen.join(", ")), "write 1 to 16 gateways"),
        (refs(&format!("{{name: tools, prefix: {}}}", "a".repeat(64))), "at most 63"),
        (refs("{name: tools, prefix: ''}"), "write it like weather"),
        (server("{name: weather, port: 0}"), "1 to 65535; write a number in between"),
        (server("{name: weather, port: 65536}"), "1 to 65535; write a number in between"),
        (server(&format!("{{name: {}, port: 80}}", "a".repeat(64))), "write the name alone"),
        (server("{name: '', port: 80}"), "write the name alone"),
        (server("{name: weather, port: 80, path: ''}"), "write it like /mcp"),
        (timeouts("{connectSeconds: 0}"), "spec.timeouts.connectSeconds is below 1; write 1 or more"),
        (timeouts("{requestSeconds: -5}"), "spec.timeouts.requestSeconds is below 1"),
        (timeouts("{requestSeconds: 0, maximumSeconds: 0}"), "Seconds is below 1; write 1 or more"),
        (timeouts("{clientAnswerSeconds: -1}"), "spec.timeouts.clientAnswerSeconds is below 1"),
        (other("requestSeconds: 0"), "spec.timeouts.overrides[0].requestSeconds is below 1"),
        (other("maximumSeconds: -1"), "spec.timeouts.overrides[0].maximumSeconds is below 1"),
        (timeouts("{overrides: [{name: a, tools: []}]}"), "overrides[0].tools has fewer than 1 entries"),
        (timeouts("{overrides: [{name: a, tools: [x, y, x]}]}"), "overrides[0].tools has x twice"),
        (
            timeouts("{overrides: [{name: a, tools: [x]}, {name: a, tools: [y]}]}"),
            "spec.timeouts.overrides has name 'a' twice; remove one",
        ),
        (timeouts("{overrides: [{name: a, tools: ['']}]}"), "overrides[0].tools[0] has fewer than 1 char"),
    ] {
        assert_invalid(target(&spec), &spec, says);
    }
    assert_eq!(target(&refs(&seventeen[..16].join(", "))), Ok(()));
    assert_eq!(target(&timeouts("{connectSeconds: 1, requestSeconds: 1, maximumSeconds: 1}")), Ok(()));
}

/// A gateway with every field that is served and has a bound.
fn whole_gateway() -> Value {
    json!({
        "replicas": 1,
        "session": {"timeoutSeconds": 3600, "idleTimeoutSeconds": 900, "maxPerPrincipal": 4},
        "auth": {
            "oidc": {
                "issuer": "https://id.example.org", "audiences": ["a"], "allowedClients": ["c"],
                "requiredScopes": ["s"], "requiredClaims": [{"claim": "groups", "values": ["dev"]}],
                "caRef": {"kind": "Secret", "name": "ca", "key": "ca.crt"},
            },
            "serviceAccount": {"audiences": ["a"], "allowed": [{"namespace": "ci", "name": "bot"}]},
            "denied": [{"issuer": "https://id.example.org", "subject": "mallory"}],
        },
        "access": [{
            "subjects": ["alice"], "claims": [{"claim": "team", "values": ["a"]}], "targets": ["x"],
            "tools": ["get_*"],
        }],
        "tools": {"separator": "___"},
        "drain": {"delaySeconds": 5, "deadlineSeconds": 30},
        "tls": {"certificateRef": {"name": "pair"}},
        "endpoint": {
            "publicURL": "https://tools.example.org/mcp", "allowedOrigins": ["https://app.example.org"],
            "allowedHosts": ["tools.example.org"], "trustedProxies": ["10.0.0.0/8"],
        },
        "expose": {"port": 80, "path": "/mcp"},
        "limits": {
            "requestBytes": 4096, "streamsPerSession": 1, "requestsInFlightPerSession": 1, "requestsInFlight": 1,
        },
    })
}

/// Targets that together have every field that is served and has a bound.
fn whole_targets() -> [Value; 4] {
    let credentials = [
        json!({"type": "Headers", "headers": [{"name": "X-Key", "secretRef": {"name": "s", "key": "k"}}]}),
        json!({"type": "ClientCredentials", "clientCredentials": {
            "tokenURL": "https://id.example.org/token", "clientSecretRef": {"name": "s"}, "scopes": ["a"],
            "audience": "b",
        }}),
        json!({"type": "TokenExchange", "tokenExchange": {
            "tokenURL": "https://id.example.org/token", "clientSecretRef": {"name": "s"}, "scopes": ["a"],
            "audience": "b",
        }}),
        json!({"type": "ServiceAccountToken", "serviceAccountToken": {"audience": "a", "expirationSeconds": 600}}),
    ];
    let ca = json!({"kind": "ConfigMap", "name": "ca", "key": "ca.crt"});
    let servers = [
        json!({"type": "Service", "service": {
            "name": "weather", "port": 443, "path": "/mcp", "scheme": "HTTPS", "caRef": ca,
        }}),
        json!({"type": "URL", "url": {
            "address": "https://mcp.example.org", "caRef": ca, "clientCertificateRef": {"name": "pair"},
        }}),
        json!({"type": "Container", "container": {
            "image": "i", "command": ["server"], "args": ["a"], "env": [{"name": "A", "value": "b"}],
        }}),
        json!({"type": "URL", "url": {"address": "https://mcp.example.org"}}),
    ];
    let mut servers = servers.into_iter();
    credentials.map(|credentials| {
        json!({
            "gatewayRefs": [{"name": "tools", "namespace": "ai", "prefix": "w"}],
            "server": servers.next(), "credentials": credentials,
            "headers": {
                "allowedRequest": ["X-A"], "allowedResponse": ["X-B"], "allowedQueryParameters": ["c"],
            },
            "tools": {"allow": ["a"], "deny": ["b"]},
            "timeouts": {
                "connectSeconds": 1, "requestSeconds": 1, "clientAnswerSeconds": 1, "maximumSeconds": 1,
                "overrides": [{"name": "a", "tools": ["x"], "requestSeconds": 1, "maximumSeconds": 1}],
            },
        })
    })
}

/// Calls `check` with every bound that `schema` has on what is written in `given`: where it is and a value beyond it.
fn beyond(given: &Value, schema: &Value, at: &str, check: &mut impl FnMut(&str, &Value)) {
    let number = |bound: &str, more: i64| schema[bound].as_f64().map(|bound| json!(whole(bound) + more));
    let length = |bound: &str| schema[bound].as_u64().map(|bound| usize::try_from(bound).unwrap());
    let mut values = vec![number("minimum", -1), number("maximum", 1)];
    values.push(length("minLength").map(|_| json!("")));
    values.push(length("maxLength").map(|most| json!("a".repeat(most + 1))));
    if let Some(first) = given.get(0) {
        values.push(length("minItems").map(|_| json!([])));
        values.push(length("maxItems").map(|most| json!(vec![first; most + 1])));
        values.push(schema["x-kubernetes-list-type"].is_string().then(|| json!([first, first])));
        beyond(first, &schema["items"], &format!("{at}/0"), check);
    }
    values.into_iter().flatten().for_each(|value| check(at, &value));
    for (field, value) in given.as_object().into_iter().flatten() {
        let property = schema["properties"].get(field).unwrap_or(&Value::Null);
        beyond(value, property, &format!("{at}/{field}"), check);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds are whole numbers")]
fn whole(bound: f64) -> i64 {
    bound as i64
}

/// The paths of the numbers below `schema`.
fn numbers(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if schema["type"] == "integer" && schema["minimum"].is_number() {
        found.insert(at.to_owned());
    }
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        numbers(property, &format!("{at}/{field}"), found);
    }
    if schema["items"].is_object() {
        numbers(&schema["items"], &format!("{at}/0"), found);
    }
}

#[test]
fn whatever_the_schema_bounds_is_refused_beyond_its_bound_without_an_api_server() {
    let schemas = definitions().map(|definition| {
        let definition = serde_json::to_value(definition).unwrap();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    });
    let [gateways, targets, _] = schemas;
    let here = Platform { allow_processes: true, ..Platform::default() };
    let accept = |is_gateway: bool, spec: &Value| {
        let object = json!({"metadata": {"name": "x", "namespace": "ai"}, "spec": spec});
        if is_gateway {
            accept_gateway(&serde_json::from_value(object).unwrap(), &here)
        } else {
            accept_target(&serde_json::from_value(object).unwrap(), &here)
        }
    };
    let (mut tried, mut all) = (BTreeSet::new(), BTreeSet::new());
    numbers(&gateways, "", &mut all);
    numbers(&targets, "", &mut all);
    let of_targets = whole_targets().map(|spec| (false, spec));
    for (is_gateway, spec) in [(true, whole_gateway())].into_iter().chain(of_targets) {
        assert_eq!(accept(is_gateway, &spec), Ok(()), "{spec}");
        beyond(&spec, if is_gateway { &gateways } else { &targets }, "", &mut |at, value| {
            let mut spec = spec.clone();
            *spec.pointer_mut(at).unwrap() = value.clone();
            assert!(accept(is_gateway, &spec).is_err(), "{at}: {value}");
            tried.insert(at.to_owned());
        });
    }
    let untried: Vec<_> = all.difference(&tried).map(String::as_str).collect();
    // These are refused whatever they say.
    let unserved = [
        "/autoscaling/maxReplicas",
        "/autoscaling/minReplicas",
        "/server/container/port",
        "/server/container/replicas",
        "/store/configMap/shards",
        "/store/redis/database",
    ];
    assert_eq!(untried, unserved);
}

#[test]
fn a_process_has_no_port_and_no_path() {
    let here = Platform { allow_processes: true, ..Platform::default() };
    for (more, says) in [("port: 8000", "remove port"), ("path: /mcp", "remove path")] {
        let yaml = format!(
            "{{metadata: {{name: a}}, spec: {{gatewayRefs: [{{name: tools}}], \
             server: {{type: Container, container: {{image: i, command: [server], {more}}}}}}}}}"
        );
        let target: MCPTarget = serde_saphyr::from_str(&yaml).unwrap();
        assert_invalid(accept_target(&target, &here), &yaml, says);
    }
}
