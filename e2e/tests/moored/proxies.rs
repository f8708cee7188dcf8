//! Behind a proxy, and behind what only says it is one: whose word of client and host counts.

use e2e::{manifest, moored::Moored};
use http::StatusCode;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A gateway for `tools.example`, which trusts proxies of this network.
async fn serve(trusted: &str) -> Result<Moored, Box<dyn std::error::Error>> {
    let endpoint =
        format!("spec: {{endpoint: {{allowedHosts: [tools.example], trustedProxies: ['{trusted}']}}, ");
    Ok(Moored::serve(manifest::gateway("tools").replace("spec: {", &endpoint)).await?)
}

/// The client's address of the access log's last line.
fn logged(moored: &Moored) -> Option<Value> {
    let lines = moored.log();
    lines.iter().rev().find_map(|line| line.get("client").cloned())
}

// Case 038.
#[tokio::test]
async fn what_an_untrusted_peer_says_of_host_and_client_is_not_looked_at() -> Outcome {
    let moored = serve("10.0.0.0/8").await?;
    for (name, value) in
        [("x-forwarded-host", "evil.example"), ("forwarded", "for=203.0.113.7;host=evil.example;proto=https")]
    {
        let client = moored.client()?.with_header(name, value)?;
        assert_eq!(client.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::OK, "{name}");
        // An allowed name in the header does not make up for the Host that was sent.
        let forged = client.with_header("host", "evil.example")?.with_header(name, "tools.example")?;
        let refused = forged.post_initialize("2025-11-25", json!({})).await?;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{name}");
    }
    assert_eq!(logged(&moored), Some(json!("127.0.0.1")));
    Ok(())
}

// Case 038.
#[tokio::test]
async fn a_trusted_proxy_says_host_and_client_and_its_host_is_checked_as_the_clients_own() -> Outcome {
    let moored = serve("127.0.0.0/8").await?;
    let by = |name, value: &str| moored.client()?.with_header(name, value);
    for (name, own, foreign) in [
        ("x-forwarded-host", "tools.example", "evil.example"),
        ("forwarded", "for=203.0.113.7;host=tools.example", "for=203.0.113.7;host=evil.example"),
    ] {
        let inner = by(name, own)?.with_header("host", "inner.cluster")?;
        let inner = inner.with_header("x-forwarded-for", "203.0.113.7")?;
        assert_eq!(inner.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::OK, "{name}");
        let refused = by(name, foreign)?.post_initialize("2025-11-25", json!({})).await?;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{name}");
    }
    assert_eq!(logged(&moored), Some(json!("203.0.113.7")));
    Ok(())
}
