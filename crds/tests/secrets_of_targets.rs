//! What of a target's manifest leads to values of Secrets, and which credentials are refused.
#![expect(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/manifests.rs"]
mod manifests;

use mooring_crds::condition::reason;
use mooring_crds::config::CredentialsConfig;
use mooring_crds::secrets::SourceKind;
use mooring_crds::{Platform, accept_target, compile};

use crate::manifests::{ANONYMOUS, SERVICE, gateway, target};

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

/// What becomes of a target of `namespace` with these credentials, at a gateway of `ai` that takes targets of all.
fn of_namespace(namespace: &str, credentials: &str) -> Result<String, mooring_crds::Refusal> {
    let open = gateway("{auth: {anonymous: {}}, allowedTargets: {namespaces: {from: All}}}");
    let spec =
        format!("{{gatewayRefs: [{{name: tools, namespace: ai}}], {SERVICE}, credentials: {credentials}}}");
    let targets = [target(namespace, "weather", 1, &spec)];
    let mut compiled = compile(&open, &targets, &Platform::default()).unwrap();
    let outcome = compiled.attachments.remove(0).outcome;
    assert_eq!(compiled.config.targets.len(), usize::from(outcome.is_ok()), "{:?}", compiled.config.targets);
    outcome
}

const EXCHANGE: &str =
    "{type: TokenExchange, tokenExchange: {tokenURL: 'https://id.example/t', clientSecretRef: {name: s}}}";
const ACCOUNT: &str = "{type: ServiceAccountToken, serviceAccountToken: {audience: vault}}";

#[test]
fn a_target_of_another_namespace_never_gets_callers_tokens_nor_the_gateways_own() {
    for (credentials, says) in
        [(EXCHANGE, "its callers' tokens"), (ACCOUNT, "tokens of its own ServiceAccount")]
    {
        let refusal = of_namespace("far", credentials).unwrap_err();
        assert_eq!(refusal.reason, reason::NOT_ALLOWED);
        assert!(
            refusal.message.contains(says) && refusal.message.contains("write type: Headers"),
            "{refusal}"
        );
        assert_eq!(of_namespace("ai", credentials), Ok("weather".to_owned()));
    }
    for own in [
        "{type: Headers, headers: [{name: X-Key, secretRef: {name: s, key: k}}]}",
        "{type: ClientCredentials, clientCredentials: {tokenURL: 'https://id.example/t', clientSecretRef: {name: s}}}",
    ] {
        assert_eq!(of_namespace("far", own), Ok("weather".to_owned()), "what is the target's own it may use");
    }
}
