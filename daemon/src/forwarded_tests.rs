//! What is believed of forwarding headers, and of whom.

use super::*;
use crate::testing::gateway_config;

const PROXY: &str = "10.0.0.1";

fn read(peer: &str, pairs: &[(&'static str, &str)]) -> (String, Scheme, Option<String>) {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, "tools.internal:8080".parse().unwrap());
    for (name, value) in pairs {
        headers.append(*name, value.parse().unwrap());
    }
    let peer = Peer { address: peer.parse().unwrap(), scheme: Scheme::Http };
    let trusted: Vec<IpNet> = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap()).into();
    let uri = Uri::from_static("/mcp");
    let external = external(peer, &uri, &headers, &trusted);
    (external.client.to_string(), external.scheme, external.host.map(str::to_owned))
}

fn said(client: &str, scheme: Scheme, host: &str) -> (String, Scheme, Option<String>) {
    (client.to_owned(), scheme, Some(host.to_owned()))
}

// Case 038.
#[test]
fn what_an_untrusted_peer_writes_is_not_looked_at() {
    for headers in [
        vec![
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", PROXY),
        ],
        vec![("forwarded", "for=10.0.0.9;host=evil.example;proto=https")],
    ] {
        assert_eq!(
            read("203.0.113.7", &headers),
            said("203.0.113.7", Scheme::Http, "tools.internal:8080"),
            "{headers:?}"
        );
    }
}

#[test]
fn a_trusted_proxy_tells_client_scheme_and_host() {
    let wanted = said("203.0.113.7", Scheme::Https, "h.example");
    for headers in [
        vec![
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-host", "h.example"),
            ("x-forwarded-proto", "https"),
        ],
        vec![("forwarded", "for=203.0.113.7;host=h.example;proto=https")],
        vec![("forwarded", "For=\"203.0.113.7:4711\"; Host=\"h.example\"; Proto=HTTPS")],
        // The standard header counts alone where it is there.
        vec![
            ("forwarded", "for=203.0.113.7;host=h.example;proto=https"),
            ("x-forwarded-host", "evil.example"),
        ],
    ] {
        assert_eq!(read(PROXY, &headers), wanted, "{headers:?}");
    }
    assert_eq!(read("::ffff:10.0.0.1", &[("x-forwarded-for", "203.0.113.7")]).0, "203.0.113.7");
    assert_eq!(read(PROXY, &[("forwarded", "for=\"[2001:db9::7]:80\"")]).0, "2001:db9::7");
}

#[test]
fn what_a_client_wrote_before_the_proxies_is_not_believed() {
    for headers in [
        vec![
            ("x-forwarded-for", "198.51.100.1, 203.0.113.7, 10.0.0.2"),
            ("x-forwarded-host", "evil.example, h.example"),
        ],
        vec![
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "203.0.113.7,10.0.0.2"),
            ("x-forwarded-host", "h.example"),
        ],
        vec![(
            "forwarded",
            "for=198.51.100.1;host=evil.example, for=203.0.113.7;host=h.example, for=10.0.0.2;host=inner.example",
        )],
        vec![
            ("forwarded", "for=198.51.100.1;host=\"evil.example, for=x\""),
            ("forwarded", "for=203.0.113.7;host=h.example, for=\"[2001:db8::2]\""),
        ],
    ] {
        assert_eq!(read(PROXY, &headers), said("203.0.113.7", Scheme::Http, "h.example"), "{headers:?}");
    }
}

#[test]
fn what_cannot_be_read_leaves_what_is_known() {
    for headers in [
        vec![("x-forwarded-for", "unknown"), ("x-forwarded-proto", "gopher"), ("x-forwarded-host", "a b")],
        vec![("forwarded", "for=_hidden;proto=;host=\"a@b\"")],
        vec![("forwarded", "for=198.51.100.1, for=unknown")],
        vec![("forwarded", ";;=,")],
    ] {
        assert_eq!(read(PROXY, &headers), said(PROXY, Scheme::Http, "tools.internal:8080"), "{headers:?}");
    }
}

// Case 038.
#[test]
fn the_public_url_wins_over_what_any_header_says() {
    let external =
        External { client: PROXY.parse().unwrap(), scheme: Scheme::Https, host: Some("h.example:8443") };
    let config = gateway_config();
    assert_eq!(external_url(&config, &external, "/gw/one/mcp"), "https://h.example:8443/gw/one/mcp");
    let public = Some("https://tools.example.org/gw/one/mcp".to_owned());
    let config = GatewayConfig { public_url: public.clone(), ..config };
    assert_eq!(Some(external_url(&config, &external, "/mcp")), public);
}
