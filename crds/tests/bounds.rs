//! What the schema bounds is bounded without an API server too, and the message says what to write.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use mooring_crds::condition::reason;
use mooring_crds::{MCPGateway, MCPTarget, Platform, Refusal, accept_gateway, accept_target};

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
        ("expose: {port: 0}", "from 1 to 65535"),
        ("expose: {port: 65536}", "from 1 to 65535"),
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
    let seventeen: Vec<_> = (0..17).map(|n| format!("{{name: g{n}}}")).collect();
    for (spec, says) in [
        (refs(""), "write 1 to 16 gateways"),
        (refs(&seventeen.join(", ")), "write 1 to 16 gateways"),
        (refs(&format!("{{name: tools, prefix: {}}}", "a".repeat(64))), "at most 63"),
        (refs("{name: tools, prefix: ''}"), "write it like weather"),
        (server("{name: weather, port: 0}"), "from 1 to 65535"),
        (server("{name: weather, port: 65536}"), "from 1 to 65535"),
        (server(&format!("{{name: {}, port: 80}}", "a".repeat(64))), "write the name alone"),
        (server("{name: '', port: 80}"), "write the name alone"),
        (server("{name: weather, port: 80, path: ''}"), "write it like /mcp"),
        (timeouts("{connectSeconds: 0}"), "of 1 or more"),
        (timeouts("{requestSeconds: -5}"), "of 1 or more"),
        (timeouts("{maximumSeconds: 0}"), "of 1 or more"),
    ] {
        assert_invalid(target(&spec), &spec, says);
    }
    assert_eq!(target(&refs(&seventeen[..16].join(", "))), Ok(()));
    assert_eq!(target(&timeouts("{connectSeconds: 1, requestSeconds: 1, maximumSeconds: 1}")), Ok(()));
}
