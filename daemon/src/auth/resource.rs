//! Pure: what a client that may not call is told so that it may: the protected resource's metadata (RFC 9728) and the
//! challenges that lead to it (RFC 6750 §3).

use http::{HeaderValue, Uri, uri::Authority};
use mooring_crds::config::{AuthConfig, GatewayConfig};
use serde_json::{Map, Value, json};

use crate::{
    fault::Fault,
    forwarded::{self, External},
};

/// Where the metadata of a resource is: between its host and its path (RFC 9728 §3.1).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The URL that the client uses for the endpoint at `path`.
///
/// The one that is configured, else one made of the host that it asked for. What proxies say counts only where they are
/// trusted, which `external` knows. None where that cannot be read.
pub fn external_url(gateway: &GatewayConfig, external: &External<'_>, path: &str) -> Option<String> {
    let authority = || external.host?.parse::<Authority>().ok();
    // What stands before an @ is no host, though it may look like ours.
    let readable = || authority().is_some_and(|authority| !authority.as_str().contains('@'));
    (gateway.public_url.is_some() || readable()).then(|| forwarded::external_url(gateway, external, path))
}

/// Where the metadata of `resource` is.
fn metadata_url(resource: &str) -> Option<String> {
    let uri: Uri = resource.parse().ok()?;
    let path = uri.path().trim_end_matches('/');
    Some(format!("{}://{}{WELL_KNOWN}{path}", uri.scheme_str()?, uri.authority()?))
}

/// The path of the endpoint that clients use, where it is configured.
pub fn public_path(gateway: &GatewayConfig) -> Option<String> {
    let uri: Uri = gateway.public_url.as_deref()?.parse().ok()?;
    Some(uri.path().trim_end_matches('/').to_owned())
}

/// Whether callers need a token, so that there is something to say about where to get one.
pub fn is_protected(auth: &AuthConfig) -> bool {
    let AuthConfig { oidc, service_account, denied: _ } = auth;
    oidc.is_some() || service_account.is_some()
}

/// The metadata of `resource` (RFC 9728 §2). Without an OpenID Connect provider there is no authorization server to
/// name: ServiceAccounts get their tokens from the cluster.
pub fn metadata(auth: &AuthConfig, resource: &str) -> Value {
    let mut members = Map::from_iter([
        ("resource".to_owned(), json!(resource)),
        ("bearer_methods_supported".to_owned(), json!(["header"])),
    ]);
    if let Some(oidc) = &auth.oidc {
        members.insert("authorization_servers".to_owned(), json!([oidc.issuer]));
        if !oidc.required_scopes.is_empty() {
            members.insert("scopes_supported".to_owned(), json!(oidc.required_scopes));
        }
    }
    Value::Object(members)
}

/// The `WWW-Authenticate` of a refusal (RFC 6750 §3; MCP 2025-11-25, authorization); none where the refusal is of
/// another kind.
pub fn challenge(fault: &Fault, auth: &AuthConfig, resource: Option<&str>) -> Option<HeaderValue> {
    let error = fault.bearer_error()?;
    let mut parameters = Vec::new();
    if let Some(error) = error {
        parameters.push(("error", error.to_owned()));
        parameters.push(("error_description", fault.message()));
    }
    if let Some(oidc) = auth.oidc.as_ref().filter(|oidc| !oidc.required_scopes.is_empty()) {
        parameters.push(("scope", oidc.required_scopes.join(" ")));
    }
    if let Some(url) = resource.and_then(metadata_url) {
        parameters.push(("resource_metadata", url));
    }
    // A quoted-string (RFC 9110 §5.6.4) needs no more care than this: accepted configurations hold no quotes.
    let plain = |text: &str| text.replace(['"', '\\'], "'");
    let parameters: Vec<_> =
        parameters.iter().map(|(name, value)| format!("{name}=\"{}\"", plain(value))).collect();
    let space = if parameters.is_empty() { "" } else { " " };
    HeaderValue::from_str(&format!("Bearer{space}{}", parameters.join(", "))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarded::Scheme;
    use crate::testing::gateway_config;
    use mooring_crds::config::OidcConfig;

    fn protected(public_url: Option<&str>) -> GatewayConfig {
        let oidc = OidcConfig {
            issuer: "https://id.example".to_owned(),
            audiences: vec!["mcp".to_owned()],
            required_scopes: vec!["tools".to_owned(), "read".to_owned()],
            ..OidcConfig::default()
        };
        GatewayConfig {
            auth: AuthConfig { oidc: Some(oidc), ..AuthConfig::default() },
            public_url: public_url.map(str::to_owned),
            ..gateway_config()
        }
    }

    fn asked(host: &str) -> External<'_> {
        let client = std::net::IpAddr::from([127, 0, 0, 1]);
        External { client, scheme: Scheme::Http, host: Some(host) }
    }

    // Case 038.
    #[test]
    fn the_resource_is_the_url_that_the_client_uses_and_cannot_be_forged() {
        let public = protected(Some("https://h.example/gw/one/mcp"));
        let url = |gateway: &GatewayConfig, host: &str| external_url(gateway, &asked(host), "/mcp");
        assert_eq!(url(&public, "10.0.0.7:8080").as_deref(), Some("https://h.example/gw/one/mcp"));
        let plain = protected(None);
        assert_eq!(url(&plain, "127.0.0.1:8080").as_deref(), Some("http://127.0.0.1:8080/mcp"));
        let with_tls = External { scheme: Scheme::Https, ..asked("a") };
        assert_eq!(external_url(&plain, &with_tls, "/mcp").as_deref(), Some("https://a/mcp"));
        for host in ["127.0.0.1:80@evil.example", "a b", "a\"b", "a/b", ""] {
            assert_eq!(url(&plain, host), None, "{host}");
        }
    }

    #[test]
    fn the_metadata_names_the_resource_and_where_tokens_for_it_come_from() {
        let gateway = protected(None);
        assert_eq!(
            metadata(&gateway.auth, "https://h.example/mcp"),
            json!({
                "resource": "https://h.example/mcp",
                "authorization_servers": ["https://id.example"],
                "scopes_supported": ["tools", "read"],
                "bearer_methods_supported": ["header"],
            })
        );
        assert!(is_protected(&gateway.auth) && !is_protected(&AuthConfig::default()));
        assert_eq!(
            public_path(&protected(Some("https://h.example/gw/one/mcp"))).as_deref(),
            Some("/gw/one/mcp")
        );
        assert_eq!(public_path(&protected(Some("https://h.example/"))).as_deref(), Some(""));
    }

    #[test]
    fn a_refusal_says_where_to_get_a_token_and_what_was_wrong_with_the_one_that_came() {
        let gateway = protected(None);
        let said = |fault: &Fault, resource| {
            challenge(fault, &gateway.auth, resource).map(|value| value.to_str().unwrap().to_owned())
        };
        let at = r#"resource_metadata="https://h.example/.well-known/oauth-protected-resource/gw/one/mcp""#;
        let resource = Some("https://h.example/gw/one/mcp");
        assert_eq!(said(&Fault::MissingToken, resource), Some(format!(r#"Bearer scope="tools read", {at}"#)));
        let invalid = said(&Fault::InvalidToken("has expired"), resource).unwrap();
        assert!(invalid.starts_with(r#"Bearer error="invalid_token", error_description="#), "{invalid}");
        assert!(invalid.ends_with(&format!(r#", scope="tools read", {at}"#)), "{invalid}");
        let scope = said(&Fault::InsufficientScope, resource).unwrap();
        assert!(scope.contains(r#"error="insufficient_scope""#) && scope.contains(at), "{scope}");
        assert!(said(&Fault::MalformedAuthorization, None).unwrap().contains(r#"error="invalid_request""#));
        assert_eq!(said(&Fault::UnknownSession, resource), None);
        assert_eq!(challenge(&Fault::MissingToken, &AuthConfig::default(), None).unwrap(), "Bearer");
    }
}
