//! What a gateway and its targets compile to.
#![expect(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/manifests.rs"]
mod manifests;

use mooring_crds::condition::reason;
use mooring_crds::config::{
    AccessRule, AuthConfig, ClaimValues, CommandConfig, Denied, DrainConfig, GatewayConfig, Isolation,
    LimitsConfig, Listing, Naming, OidcConfig, Protocol, ServiceAccountConfig, TargetConfig, TimeoutsConfig,
    ToolFilter,
};
use mooring_crds::{MCPGateway, MCPTarget, Platform, accept_gateway, compile};

use crate::manifests::{ANONYMOUS, SERVICE, gateway, target};

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
    let gateway: MCPGateway = serde_saphyr::from_str(
        "{apiVersion: mooring.dev/v1alpha1, kind: MCPGateway, metadata: {name: tools}, spec: {auth: {anonymous: {}}}}",
    )
    .unwrap();
    let target: MCPTarget = serde_saphyr::from_str(
        "apiVersion: mooring.dev/v1alpha1\nkind: MCPTarget\nmetadata: {name: weather}\nspec:\n  \
         gatewayRefs: [{name: tools}]\n  server: {type: Service, service: {name: weather, port: 8000}}\n",
    )
    .unwrap();
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
#[expect(clippy::too_many_lines, reason = "one field after the other")]
fn every_served_field_reaches_the_configuration() {
    let gateway = gateway(
        "{auth: {anonymous: {}}, replicas: 1, session: {timeoutSeconds: 900, idleTimeoutSeconds: 300, maxPerPrincipal: 7}, tools: {naming: Plain}, \
         tls: {certificateRef: {name: cert}}, \
         drain: {delaySeconds: 0, deadlineSeconds: 7}, expose: {port: 8080, path: /a/b}, \
         limits: {requestBytes: 2048, streamsPerSession: 3, requestsInFlightPerSession: 4, requestsInFlight: 5}, store: {type: Memory}, allowedTargets: {namespaces: {from: All}}, \
         endpoint: {publicURL: 'https://Tools.example.org:443/mcp', allowedHosts: [Other.example.org], \
         trustedProxies: [10.0.0.0/8], \
         allowedOrigins: ['http://App.example.org:80', 'http://app.example.org:8080']}}",
    );
    let target = target(
        "far",
        "clock",
        1,
        "{gatewayRefs: [{name: tools, namespace: ai, prefix: time}], \
         server: {type: Service, service: {name: clock, port: 443, path: /x, scheme: HTTPS}}, \
         listing: PerSession, tools: {allow: ['get_*'], deny: ['*_secret']}, \
         timeouts: {connectSeconds: 1, requestSeconds: 2, maximumSeconds: 3}}",
    );
    let config = compile(&gateway, &[target], &Platform::default()).unwrap().config;
    assert_eq!((config.uid.as_str(), config.namespace.as_str(), config.path.as_str()), ("g-1", "ai", "/a/b"));
    assert_eq!(config.session.timeout_seconds, 900);
    assert_eq!(config.naming, Naming::Plain);
    assert_eq!(config.drain, DrainConfig { delay_seconds: 0, deadline_seconds: 7 });
    let limits = LimitsConfig {
        request_bytes: 2048,
        streams_per_session: 3,
        requests_in_flight_per_session: 4,
        requests_in_flight: 5,
    };
    assert_eq!(config.limits, limits);
    assert_eq!((config.session.idle_timeout_seconds, config.session.max_per_principal), (Some(300), Some(7)));
    assert_eq!(config.trusted_proxies, ["10.0.0.0/8"]);
    assert!(config.tls);
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
            listing: Listing::PerSession,
            tools: ToolFilter { allow: vec!["get_*".to_owned()], deny: vec!["*_secret".to_owned()] },
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
fn who_may_call_and_what_each_sees_reach_the_configuration() {
    let gateway = gateway(
        "{auth: {oidc: {issuer: 'https://id.example.org', audiences: [mcp], allowedClients: [cli], \
         requiredScopes: [tools], requiredClaims: [{claim: groups, values: [dev]}]}, \
         serviceAccount: {audiences: [mcp], allowed: [{namespace: far, name: bot}, {namespace: ci}]}, \
         denied: [{subject: mallory}]}, session: {endBefore: '2026-01-01T00:00:00Z'}, \
         access: [{subjects: [alice], claims: [{claim: team, values: [a, b]}], targets: [x], tools: ['get_*']}]}",
    );
    let config = compile(&gateway, &[], &Platform::default()).unwrap().config;
    let claim = |claim: &str, values: &[&str]| ClaimValues {
        claim: claim.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let oidc = OidcConfig {
        issuer: "https://id.example.org".to_owned(),
        audiences: vec!["mcp".to_owned()],
        allowed_clients: vec!["cli".to_owned()],
        required_scopes: vec!["tools".to_owned()],
        required_claims: vec![claim("groups", &["dev"])],
        ca: None,
    };
    let accounts = ServiceAccountConfig {
        audiences: vec!["mcp".to_owned()],
        allowed: vec![("far".to_owned(), "bot".to_owned()), ("ci".to_owned(), String::new())],
    };
    let denied = vec![Denied { issuer: String::new(), subject: "mallory".to_owned() }];
    assert_eq!(config.auth, AuthConfig { oidc: Some(oidc), service_account: Some(accounts), denied });
    assert_eq!(config.session.end_before, Some(1_767_225_600_000));
    let rule = AccessRule {
        subjects: vec!["alice".to_owned()],
        claims: vec![claim("team", &["a", "b"])],
        targets: vec!["x".to_owned()],
        tools: vec!["get_*".to_owned()],
    };
    assert_eq!(config.access, [rule]);
}

#[test]
fn without_a_list_the_service_accounts_of_the_gateways_own_namespace_may_call() {
    let accounts = gateway("{auth: {serviceAccount: {audiences: [mcp]}}}");
    let config = compile(&accounts, &[], &Platform::default()).unwrap().config;
    let allowed = config.auth.service_account.unwrap().allowed;
    assert_eq!(allowed, [("ai".to_owned(), String::new())]);
    let alone = Platform { has_cluster: false, ..Platform::default() };
    let refusal = accept_gateway(&accounts, &alone).unwrap_err();
    assert_eq!(refusal.reason, reason::INVALID);
    assert!(refusal.message.contains("needs a cluster"), "{refusal}");
}

#[test]
fn callers_that_could_not_be_told_apart_are_refused_with_what_to_write() {
    let refused = |auth: &str, allow_loopback| {
        let platform = Platform { allow_loopback, ..Platform::default() };
        accept_gateway(&gateway(&format!("{{auth: {auth}}}")), &platform).map_err(|refusal| refusal.message)
    };
    let oidc = |issuer: &str, more: &str| format!("{{oidc: {{issuer: '{issuer}', {more}}}}}");
    for (auth, says) in [
        (oidc("id.example.org", "audiences: [a]"), "no absolute URL"),
        (oidc("https://alice@id.example.org", "audiences: [a]"), "no absolute URL"),
        (oidc("http://id.example.org", "audiences: [a]"), "plain http"),
        (oidc("http://127.0.0.1:8000", "audiences: [a]"), "the pod itself"),
        (oidc("https://169.254.169.254", "audiences: [a]"), "metadata"),
        (oidc("https://id.example.org", "audiences: []"), "audiences"),
        (oidc("https://id.example.org", "audiences: ['']"), "audiences"),
        (oidc("https://id.example.org", "audiences: [a], requiredScopes: ['a b']"), "requiredScopes"),
        (oidc("https://id.example.org", "audiences: [a], requiredClaims: [{claim: x, values: []}]"), "claim"),
        ("{serviceAccount: {audiences: []}}".to_owned(), "audiences"),
        ("{serviceAccount: {audiences: [a], allowed: [{namespace: ''}]}}".to_owned(), "namespace"),
        ("{anonymous: {}, serviceAccount: {audiences: [a]}}".to_owned(), "anonymous excludes"),
        ("{serviceAccount: {audiences: [a]}, denied: [{subject: ''}]}".to_owned(), "no subject"),
        ("{}".to_owned(), "nobody may call"),
    ] {
        let said = refused(&auth, false).unwrap_err();
        assert!(said.contains(says), "{auth}: {said}");
    }
    for issuer in ["https://id.example.org/realms/a", "http://keycloak.auth.svc:8080/realms/a"] {
        assert_eq!(refused(&oidc(issuer, "audiences: [a]"), false), Ok(()), "{issuer}");
    }
    assert_eq!(refused(&oidc("http://127.0.0.1:8000", "audiences: [a]"), true), Ok(()));
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

#[test]
fn a_container_is_a_command_without_an_address_and_sse_is_a_transport() {
    let container = "{gatewayRefs: [{name: tools}], server: {type: Container, container: {image: i, command: [a, $(X)], \
                     args: [b], env: [{name: X, value: 'x'}, {name: Y, value: '$(X)y'}], isolation: Shared}}}";
    let sse = "{gatewayRefs: [{name: tools}], protocol: SSE, server: {type: Service, service: {name: s, port: 1, path: /sse}}}";
    let targets = [target("ai", "local", 1, container), target("ai", "old", 2, sse)];
    let platform = Platform { allow_processes: true, ..Platform::default() };
    let config = compile(&gateway(ANONYMOUS), &targets, &platform).unwrap().config;
    let [local, old] = config.targets.as_slice() else { panic!("{config:?}") };
    assert_eq!(local.url, "");
    let command = CommandConfig {
        command: ["a", "x", "b"].map(str::to_owned).to_vec(),
        env: [("X", "x"), ("Y", "xy")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        isolation: Isolation::Shared,
    };
    assert_eq!(local.command, Some(command));
    assert_eq!((old.protocol, old.url.as_str()), (Protocol::Sse, "http://s.ai.svc:1/sse"));
    assert_eq!(local.protocol, Protocol::Auto);
}
