//! Where a target may be.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use mooring_crds::{MCPTarget, Platform, accept_target};
use serde_json::json;

fn accepted(url: &str, allow_loopback: bool) -> Result<(), String> {
    let target: MCPTarget = serde_json::from_value(json!({
        "apiVersion": "mooring.dev/v1alpha1", "kind": "MCPTarget", "metadata": {"name": "t", "namespace": "ai"},
        "spec": {"gatewayRefs": [{"name": "tools"}], "server": {"type": "URL", "url": {"address": url}}},
    }))
    .unwrap();
    accept_target(&target, &Platform { allow_loopback, ..Platform::default() })
        .map_err(|refusal| refusal.message)
}

#[test]
fn https_goes_anywhere_and_http_to_names_in_the_cluster() {
    for url in [
        "https://mcp.example.org",
        "https://mcp.example.org:8443/a/b?c=d",
        "https://203.0.113.7/mcp",
        "https://[2001:db8::1]:8443/mcp",
        "http://weather/mcp",
        "http://weather:8000/mcp",
        "http://weather.ai.svc/mcp",
        "http://weather.ai.svc.cluster.local:8000/mcp",
        "http://weather.ai.svc.cluster.local.:8000/mcp",
    ] {
        assert_eq!(accepted(url, false), Ok(()), "{url}");
    }
}

#[test]
fn plain_http_out_of_the_cluster_is_refused() {
    for url in [
        "http://mcp.example.org/mcp",
        "http://weather.ai:8000",
        "http://weather.ai.svc.evil.example/mcp",
        "http://svc.cluster.local.example.org/mcp",
        "http://203.0.113.7/mcp",
        "http://10.96.0.1/mcp",
    ] {
        assert!(accepted(url, true).unwrap_err().contains("write https"), "{url}");
    }
}

#[test]
fn the_machine_itself_is_a_target_only_where_the_platform_allows_it() {
    for url in [
        "http://localhost:8000/mcp",
        "http://LOCALHOST:8000/mcp",
        "http://localhost.:8000/mcp",
        "http://a.localhost:8000/mcp",
        "http://127.0.0.1:8000/mcp",
        "https://127.8.9.10/mcp",
        "http://[::1]:8000/mcp",
        "http://[::ffff:127.0.0.1]:8000/mcp",
    ] {
        assert!(accepted(url, false).unwrap_err().contains("write the server's name"), "{url}");
        assert_eq!(accepted(url, true), Ok(()), "{url}");
    }
}

#[test]
fn addresses_that_no_server_has_are_refused_everywhere() {
    for host in [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[::169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "0.0.0.0",
        "0.1.2.3",
        "[::]",
        "224.0.0.1",
        "[ff02::1]",
        "255.255.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "metadata.google.internal",
    ] {
        for scheme in ["http", "https"] {
            assert!(accepted(&format!("{scheme}://{host}/mcp"), true).is_err(), "{scheme}://{host}");
        }
    }
}

#[test]
fn an_address_has_one_spelling() {
    for host in
        ["127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "169.254.43518", "[::1%25lo]"]
    {
        for allow_loopback in [false, true] {
            assert!(accepted(&format!("https://{host}/mcp"), allow_loopback).is_err(), "{host}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_url_is_said() {
    for (url, says) in [
        ("https://u:p@mcp.example.org/mcp", "spec.credentials"),
        ("https://u@mcp.example.org/mcp", "spec.credentials"),
        ("https://mcp.example.org/mcp#x", "remove #"),
        ("https://mcp.example.org:0/mcp", "from 1 to 65535"),
        ("https://mcp.example.org:99999/mcp", "from 1 to 65535"),
        ("mcp.example.org", "https://mcp.example.org/mcp"),
        ("/mcp", "https://mcp.example.org/mcp"),
        ("ftp://mcp.example.org", "https://mcp.example.org/mcp"),
        ("https://", "https://mcp.example.org/mcp"),
        ("https://-bad.example.org", "https://mcp.example.org/mcp"),
        ("https://a..b/mcp", "https://mcp.example.org/mcp"),
        ("", "https://mcp.example.org/mcp"),
    ] {
        let message = accepted(url, false).unwrap_err();
        assert!(
            message.starts_with("spec.server.url.address ") && message.contains(says),
            "{url}: {message}"
        );
    }
}
