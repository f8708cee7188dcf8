//! What a gateway and its targets compile to.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use mooring_crds::condition::reason;
use mooring_crds::config::{
    CredentialsConfig, DrainConfig, GatewayConfig, Naming, TargetConfig, TimeoutsConfig,
};
use mooring_crds::secrets::SourceKind;
use mooring_crds::{MCPGateway, MCPTarget, Platform, accept_gateway, accept_target, compile};
use serde::de::DeserializeOwned;

fn read<K: DeserializeOwned>(yaml: &str) -> K {
    serde_saphyr::from_str(yaml).unwrap()
}

fn gateway(spec: &str) -> MCPGateway {
    read(&format!(
        "{{apiVersion: mooring.dev/v1alpha1, kind: MCPGateway, \
         metadata: {{name: tools, namespace: ai, uid: g-1}}, spec: {spec}}}"
    ))
}

/// `created` is a minute of one hour, so that a lower one is older.
fn target(namespace: &str, name: &str, created: u32, spec: &str) -> MCPTarget {
    read(&format!(
        "{{apiVersion: mooring.dev/v1alpha1, kind: MCPTarget, metadata: {{name: {name}, namespace: {namespace}, \
         uid: uid-{namespace}-{name}, creationTimestamp: '2026-01-01T00:{created:02}:00Z'}}, spec: {spec}}}"
    ))
}

const ANONYMOUS: &str = "{auth: {anonymous: {}}}";
const SERVICE: &str = "server: {type: Service, service: {name: weather, port: 8000}}";

fn attached(gateway: &MCPGateway, targets: &[MCPTarget]) -> Vec<(String, Result<String, &'static str>)> {
    let compiled = compile(gateway, targets, &Platform::default()).unwrap();
    let outcome = |outcome: Result<String, mooring_crds::Refusal>| outcome.map_err(|refusal| refusal.reason);
    compiled
        .attachments
        .into_iter()
        .map(|a| (format!("{}/{}", a.namespace, a.name), outcome(a.outcome)))
        .collect()
}

#[test]
fn the_shortest_useful_manifest_compiles() {
    let gateway: MCPGateway = read(
        "{apiVersion: mooring.dev/v1alpha1, kind: MCPGateway, metadata: {name: tools}, spec: {auth: {anonymous: {}}}}",
    );
    let target: MCPTarget = read(
        "apiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {name: weather}\nspec:\n  \
         gatewayRefs: [{name: tools}]\n  server: {type: Service, service: {name: weather, port: 8000}}\n",
    );
    let compiled = compile(&gateway, &[target], &Platform::default()).unwrap();
    let expected = GatewayConfig {
        name: "tools".to_owned(),
        path: "/mcp".to_owned(),
        targets: vec![TargetConfig {
            alias: "weather".to_owned(),
            name: "weather".to_owned(),
            uid: "weather".to_owned(),
            url: "http://weather:8000/mcp".to_owned(),
            ..TargetConfig::default()
        }],
        ..GatewayConfig::default()
    };
    assert_eq!(compiled.config, expected);
    assert_eq!(compiled.attachments[0].outcome, Ok("weather".to_owned()));
}

#[test]
fn every_served_field_reaches_the_configuration() {
    let gateway = gateway(
        "{auth: {anonymous: {}}, replicas: 1, session: {timeoutSeconds: 900}, tools: {naming: Plain}, \
         drain: {delaySeconds: 0, deadlineSeconds: 7}, expose: {port: 8080, path: /a/b}, \
         limits: {requestBytes: 2048}, store: {type: Memory}, allowedTargets: {namespaces: {from: All}}, \
         endpoint: {publicURL: 'https://Tools.example.org:443/mcp', allowedHosts: [Other.example.org], \
         allowedOrigins: ['http://App.example.org:80', 'http://app.example.org:8080']}}",
    );
    let target = target(
        "far",
        "clock",
        1,
        "{gatewayRefs: [{name: tools, namespace: ai, prefix: time}], \
         server: {type: Service, service: {name: clock, port: 443, path: /x, scheme: HTTPS}}, \
         timeouts: {connectSeconds: 1, requestSeconds: 2, maximumSeconds: 3}}",
    );
    let config = compile(&gateway, &[target], &Platform::default()).unwrap().config;
    assert_eq!((config.uid.as_str(), config.namespace.as_str(), config.path.as_str()), ("g-1", "ai", "/a/b"));
    assert_eq!(config.session.timeout_seconds, 900);
    assert_eq!(config.naming, Naming::Plain);
    assert_eq!(config.drain, DrainConfig { delay_seconds: 0, deadline_seconds: 7 });
    assert_eq!(config.limits.request_bytes, 2048);
    assert_eq!(
        config.hosts,
        [
            "tools-mcp",
            "tools-mcp.ai",
            "tools-mcp.ai.svc",
            "tools-mcp.ai.svc.cluster.local",
            "tools.example.org",
            "other.example.org",
        ]
    );
    assert_eq!(
        config.origins,
        ["https://tools.example.org", "http://app.example.org", "http://app.example.org:8080"]
    );
    assert_eq!(
        config.targets,
        [TargetConfig {
            alias: "time".to_owned(),
            name: "clock".to_owned(),
            namespace: "far".to_owned(),
            uid: "uid-far-clock".to_owned(),
            url: "https://clock.far.svc:443/x".to_owned(),
            timeouts: TimeoutsConfig {
                connect_seconds: 1,
                request_seconds: 2,
                maximum_seconds: 3,
                ..TimeoutsConfig::default()
            },
            ..TargetConfig::default()
        }]
    );
}

#[test]
fn targets_attach_oldest_first_and_only_to_the_gateway_they_name() {
    let refs = |refs: &str| format!("{{gatewayRefs: [{refs}], {SERVICE}}}");
    let targets = [
        target("ai", "young", 9, &refs("{name: tools}")),
        target("ai", "elsewhere", 1, &refs("{name: other}, {name: tools, namespace: far}")),
        target("ai", "b", 2, &refs("{name: other}, {name: tools, namespace: ai}")),
        target("ai", "a", 2, &refs("{name: tools}")),
        target("far", "stranger", 0, &refs("{name: tools}")),
    ];
    let all = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| (format!("ai/{name}"), Ok((*name).to_owned()))).collect()
    };
    assert_eq!(attached(&gateway(ANONYMOUS), &targets), all(&["a", "b", "young"]));
}

#[test]
fn a_target_of_another_namespace_attaches_only_where_the_gateway_allows_it() {
    let targets =
        [target("far", "clock", 1, &format!("{{gatewayRefs: [{{name: tools, namespace: ai}}], {SERVICE}}}"))];
    assert_eq!(attached(&gateway(ANONYMOUS), &targets), [("far/clock".to_owned(), Err(reason::NOT_ALLOWED))]);
    let all = gateway("{auth: {anonymous: {}}, allowedTargets: {namespaces: {from: All}}}");
    assert_eq!(attached(&all, &targets), [("far/clock".to_owned(), Ok("clock".to_owned()))]);
}

#[test]
fn of_two_targets_with_one_alias_the_younger_is_told_of_the_older() {
    let spec = |prefix: &str| format!("{{gatewayRefs: [{{name: tools, prefix: {prefix}}}], {SERVICE}}}");
    let targets = [target("ai", "young", 2, &spec("a")), target("ai", "old", 1, &spec("a"))];
    let compiled = compile(&gateway(ANONYMOUS), &targets, &Platform::default()).unwrap();
    assert_eq!(compiled.attachments[0].outcome, Ok("a".to_owned()));
    let refusal = compiled.attachments[1].outcome.clone().unwrap_err();
    assert_eq!(refusal.reason, reason::CONFLICTED);
    assert!(refusal.message.contains("ai/old") && refusal.message.contains("prefix"), "{refusal}");
    assert_eq!(compiled.config.targets.len(), 1);
}

#[test]
fn a_gateway_takes_256_targets_oldest_first_and_tells_the_others() {
    let spec = format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}}}");
    // Of one age, so that names decide; one that is refused for itself does not count.
    let name = |number: usize| format!("t{number:03}");
    let mut targets: Vec<_> = (0..258).rev().map(|number| target("ai", &name(number), 1, &spec)).collect();
    let broken = "{gatewayRefs: [{name: tools}], server: {type: Container, container: {image: x}}}";
    targets.push(target("ai", "broken", 0, broken));
    let compiled = compile(&gateway(ANONYMOUS), &targets, &Platform::default()).unwrap();
    assert_eq!(compiled.config.targets.len(), 256);
    let (taken, refused) = compiled.attachments[1..].split_at(256);
    assert!(taken.iter().enumerate().all(|(number, one)| one.outcome == Ok(name(number))), "{taken:?}");
    assert_eq!(refused.len(), 2);
    for one in refused {
        let refusal = one.outcome.clone().unwrap_err();
        assert_eq!(refusal.reason, reason::TOO_MANY_TARGETS);
        assert!(refusal.message.contains("ai/tools") && refusal.message.contains("256"), "{refusal}");
    }
}

#[test]
fn a_gateway_is_never_its_own_target() {
    let at = |server: &str| {
        let spec = format!("{{gatewayRefs: [{{name: tools}}], server: {server}}}");
        let compiled = compile(&gateway(ANONYMOUS), &[target("ai", "loop", 1, &spec)], &Platform::default());
        compiled.unwrap().attachments.remove(0).outcome
    };
    let url = |url: &str| at(&format!("{{type: URL, url: {{address: '{url}'}}}}"));
    let itself = [
        at("{type: Service, service: {name: tools-mcp, port: 80}}"),
        url("http://tools-mcp/mcp"),
        url("https://tools-mcp.ai/mcp"),
        url("http://Tools-MCP.ai.svc:80/mcp"),
        url("http://tools-mcp.ai.svc.cluster.local./mcp"),
    ];
    for outcome in itself {
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, reason::INVALID);
        assert!(refusal.message.contains("the gateway ai/tools itself"), "{refusal}");
    }
    let others = [
        at("{type: Service, service: {name: tools, port: 80}}"),
        url("http://tools-mcp.other.svc/mcp"),
        url("https://tools-mcp.example.org/mcp"),
    ];
    assert!(others.iter().all(Result::is_ok), "{others:?}");
}

#[test]
fn a_target_that_is_not_accepted_holds_no_alias() {
    let broken =
        "{gatewayRefs: [{name: tools, prefix: a}], server: {type: Container, container: {image: x}}}";
    let fine = format!("{{gatewayRefs: [{{name: tools, prefix: a}}], {SERVICE}}}");
    let targets = [target("ai", "broken", 1, broken), target("ai", "fine", 2, &fine)];
    assert_eq!(
        attached(&gateway(ANONYMOUS), &targets),
        [("ai/broken".to_owned(), Err(reason::NOT_IMPLEMENTED)), ("ai/fine".to_owned(), Ok("a".to_owned()))]
    );
}

#[test]
fn an_alias_never_holds_the_separator() {
    let with = |tools: &str| gateway(&format!("{{auth: {{anonymous: {{}}}}, tools: {tools}}}"));
    let targets = [target("ai", "my-clock", 1, &format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}}}"))];
    assert_eq!(
        attached(&with("{separator: '-'}"), &targets),
        [("ai/my-clock".to_owned(), Err(reason::INVALID))]
    );
    for harmless in ["{separator: '--'}", "{naming: Plain, separator: '-'}"] {
        assert_eq!(
            attached(&with(harmless), &targets),
            [("ai/my-clock".to_owned(), Ok("my-clock".to_owned()))]
        );
    }
}

#[test]
fn a_target_names_a_gateway_once() {
    let twice = format!("{{gatewayRefs: [{{name: tools}}, {{name: tools, namespace: ai}}], {SERVICE}}}");
    let targets = [target("ai", "weather", 1, &twice)];
    assert_eq!(attached(&gateway(ANONYMOUS), &targets), [("ai/weather".to_owned(), Err(reason::INVALID))]);
}

#[test]
fn a_timeout_outside_the_installations_limits_is_refused_with_the_limits() {
    let of = |seconds: i32| {
        gateway(&format!("{{auth: {{anonymous: {{}}}}, session: {{timeoutSeconds: {seconds}}}}}"))
    };
    let platform = Platform::default();
    for fine in [900, 3600, 28_800] {
        assert_eq!(accept_gateway(&of(fine), &platform), Ok(()));
    }
    for outside in [-1, 0, 899, 28_801] {
        let refusal = compile(&of(outside), &[], &platform).unwrap_err();
        assert_eq!(refusal.reason, reason::TIMEOUT_OUT_OF_RANGE);
        assert!(refusal.message.contains("900 to 28800"), "{refusal}");
    }
    let wide = Platform { session_timeout_seconds: -5..=5, ..platform };
    assert_eq!(accept_gateway(&of(2), &wide), Ok(()));
    assert!(accept_gateway(&of(0), &wide).is_err());
}

#[test]
fn a_store_in_one_pod_serves_one_replica() {
    let of = |replicas: i32| gateway(&format!("{{auth: {{anonymous: {{}}}}, replicas: {replicas}}}"));
    let accepted =
        |replicas| accept_gateway(&of(replicas), &Platform::default()).map_err(|refusal| refusal.reason);
    assert_eq!(accepted(0), Ok(()));
    assert_eq!(accepted(1), Ok(()));
    assert_eq!(accepted(2), Err(reason::STORE_NEEDS_ONE_REPLICA));
    assert_eq!(accepted(-1), Err(reason::INVALID));
}

/// The targets of the gateway `tools`, and where their values come from.
fn secretive(spec: &str) -> mooring_crds::Compiled {
    let target = target("ai", "weather", 1, &format!("{{gatewayRefs: [{{name: tools}}], {spec}}}"));
    let compiled = compile(&gateway(ANONYMOUS), &[target], &Platform::default()).unwrap();
    assert!(compiled.attachments.iter().all(|attachment| attachment.outcome.is_ok()));
    compiled
}

#[test]
fn a_credential_is_a_key_in_the_configuration_and_a_source_beside_it() {
    let compiled = secretive(&format!(
        "{SERVICE}, credentials: {{type: Headers, headers: [{{name: X-API-Key, secretRef: {{name: s, key: k}}}}]}}"
    ));
    let key = "uid-ai-weather.header.x-api-key";
    let headers = [("x-api-key".to_owned(), key.to_owned())].into();
    assert_eq!(compiled.config.targets[0].credentials, Some(CredentialsConfig::Headers { headers }));
    let [source] = compiled.secrets.as_slice() else { panic!("{:?}", compiled.secrets) };
    assert_eq!((source.key.as_str(), source.target.as_deref()), (key, Some("uid-ai-weather")));
    assert_eq!((source.kind, source.namespace.as_str()), (SourceKind::Secret, "ai"));
    assert_eq!((source.name.as_str(), source.entries.as_slice()), ("s", ["k".to_owned()].as_slice()));
}

#[test]
fn an_oauth_client_a_bundle_and_a_certificate_have_keys_of_their_own() {
    let compiled = secretive(
        "server: {type: URL, url: {address: 'https://a.example/mcp', clientCertificateRef: {name: pair}, \
         caRef: {kind: ConfigMap, name: roots, key: ca.crt}}}, credentials: {type: ClientCredentials, \
         clientCredentials: {tokenURL: 'https://id.example/token', clientSecretRef: {name: o}, scopes: [a]}}",
    );
    let target = &compiled.config.targets[0];
    let Some(CredentialsConfig::ClientCredentials(client)) = &target.credentials else {
        panic!("{:?}", target.credentials)
    };
    assert_eq!(client.token_url, "https://id.example/token");
    assert_eq!(client.scopes, ["a"]);
    let keys: Vec<_> = compiled.secrets.iter().map(|source| source.key.clone()).collect();
    let (ca, certificate) = (target.tls.ca.clone(), target.tls.client_certificate.clone());
    let expected =
        [client.client_id.clone(), client.client_secret.clone(), ca.unwrap(), certificate.unwrap()];
    assert_eq!(keys, expected);
    assert_eq!(compiled.secrets[2].kind, SourceKind::ConfigMap);
    assert_eq!(compiled.secrets[3].entries, ["tls.crt", "tls.key"]);
}

#[test]
fn headers_that_are_handed_on_are_compared_without_case() {
    let compiled = secretive(&format!(
        "{SERVICE}, headers: {{allowedRequest: [X-Tenant], allowedResponse: [X-Left], allowedQueryParameters: [Region]}}"
    ));
    let target = &compiled.config.targets[0];
    assert_eq!(target.request_headers, ["x-tenant"]);
    assert_eq!(target.response_headers, ["x-left"]);
    assert_eq!(target.query_parameters, ["Region"]);
}

#[test]
fn credentials_that_cannot_be_served_are_refused_with_what_to_write() {
    for (spec, says) in [
        ("credentials: {type: Headers}", "at least one header"),
        (
            "credentials: {type: Headers, headers: [{name: A, secretRef: {name: s, key: k}}, {name: a, secretRef: {name: s, key: k}}]}",
            "twice",
        ),
        (
            "credentials: {type: ClientCredentials, clientCredentials: {tokenURL: 'http://id.example.org/t', clientSecretRef: {name: s}}}",
            "tokenURL is plain http",
        ),
        (
            "credentials: {type: TokenExchange, tokenExchange: {tokenURL: 'http://169.254.169.254/t', clientSecretRef: {name: s}}}",
            "metadata service",
        ),
        (
            "credentials: {type: ServiceAccountToken, serviceAccountToken: {audience: a, expirationSeconds: 1}}",
            "600",
        ),
        ("headers: {allowedRequest: [Authorization]}", "spec.credentials"),
        ("headers: {allowedResponse: [Set-Cookie]}", "Set-Cookie"),
        ("headers: {allowedRequest: ['X Y']}", "X-Trace-Id"),
    ] {
        let spec = format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}, {spec}}}");
        let refusal = accept_target(&target("ai", "weather", 1, &spec), &Platform::default()).unwrap_err();
        assert_eq!(refusal.reason, reason::INVALID, "{refusal}");
        assert!(refusal.message.contains(says), "{spec}: {refusal}");
    }
    let plain =
        "server: {type: Service, service: {name: w, port: 1, caRef: {kind: Secret, name: c, key: k}}}";
    let target = target("ai", "weather", 1, &format!("{{gatewayRefs: [{{name: tools}}], {plain}}}"));
    assert!(accept_target(&target, &Platform::default()).unwrap_err().message.contains("https"));
}
