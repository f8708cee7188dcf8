//! Callers that are refused: before anything is said of sessions, with what they need to do better.

use bytes::Bytes;
use e2e::client::Answer;
use http::Method;

use super::*;

fn challenge(answer: &Answer) -> &str {
    answer.header("www-authenticate").unwrap_or_default()
}

fn document(answer: &Answer) -> Result<Value, Error> {
    Ok(serde_json::from_slice(&answer.body)?)
}

// Cases 009 and 038.
#[tokio::test]
async fn without_a_token_every_verb_is_401_and_leads_to_the_metadata_that_names_the_issuer() -> Outcome {
    let provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, ", requiredScopes: [tools, read]", "")).await?;
    let (client, at) = (moored.client()?, moored.address());
    let metadata_url = format!("http://{at}/.well-known/oauth-protected-resource/mcp");
    let want = format!(r#"Bearer scope="tools read", resource_metadata="{metadata_url}""#);
    for session in ["0".repeat(32), String::new(), "x".to_owned()] {
        for verb in [Method::POST, Method::GET, Method::DELETE] {
            let request = client.session(&session).request(verb.clone()).body(Bytes::new())?;
            let answer = client.send(request).await?;
            assert_eq!(
                (answer.status, challenge(&answer)),
                (StatusCode::UNAUTHORIZED, want.as_str()),
                "{verb}"
            );
        }
    }
    let answer = client.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(answer.response().get("id"), Some(&json!(0)), "a refusal carries the request's id");
    assert!(answer.header("mcp-session-id").is_none());

    for url in [metadata_url, format!("http://{at}/.well-known/oauth-protected-resource/tools/mcp")] {
        let resource = url.replace("/.well-known/oauth-protected-resource", "");
        let metadata = Client::new(&url)?;
        let request =
            metadata.request(Method::GET).header("origin", "https://app.example").body(Bytes::new())?;
        let answer = metadata.send(request).await?;
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            document(&answer)?,
            json!({
                "resource": resource,
                "authorization_servers": [provider.issuer()],
                "scopes_supported": ["tools", "read"],
                "bearer_methods_supported": ["header"],
            })
        );
    }
    let root = Client::new(&format!("http://{at}/.well-known/oauth-protected-resource"))?;
    let root = root.send(root.request(Method::GET).body(Bytes::new())?).await?;
    assert_eq!(document(&root)?.get("resource"), Some(&json!(moored.url())));
    assert_eq!(moored.metrics().await?.sum("mooring_sessions_started_total", &[]).to_bits(), 0f64.to_bits());
    Ok(())
}

// Case 038.
#[tokio::test]
async fn behind_a_proxy_the_public_url_counts_and_nothing_that_a_request_says() -> Outcome {
    let provider = IdentityProvider::start().await?;
    let public = ", endpoint: {publicURL: 'https://h.example/gw/one/mcp'}";
    let moored = Moored::serve(gateway(&provider, "", public)).await?;
    let client = moored.client()?.with_header("x-forwarded-host", "evil.example")?;
    let answer = client.post_initialize("2025-11-25", json!({})).await?;
    let metadata = "https://h.example/.well-known/oauth-protected-resource/gw/one/mcp";
    assert!(
        challenge(&answer).contains(&format!(r#"resource_metadata="{metadata}""#)),
        "{}",
        challenge(&answer)
    );
    let local = metadata.replace("https://h.example", &format!("http://{}", moored.address()));
    let client = Client::new(&local)?.with_header("x-forwarded-host", "evil.example")?;
    let answer = client.send(client.request(Method::GET).body(Bytes::new())?).await?;
    assert_eq!(document(&answer)?.get("resource"), Some(&json!("https://h.example/gw/one/mcp")));
    let evil = client.request(Method::GET).header("host", "evil.example").body(Bytes::new())?;
    assert_eq!(client.send(evil).await?.status, StatusCode::FORBIDDEN);
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_not_for_now_or_not_for_us_is_401_and_one_that_grants_too_little_403() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let more =
        ", requiredScopes: [tools], allowedClients: [cli], requiredClaims: [{claim: groups, values: [dev]}]";
    let moored = Moored::serve(gateway(&provider, more, ", session: {timeoutSeconds: 3600}")).await?;
    let full = || {
        let mut claims = of("alice");
        for (name, value) in [("scope", json!("tools")), ("azp", json!("cli")), ("groups", json!(["dev"]))] {
            claims[name] = value;
        }
        claims
    };
    let with = |name: &str, value: Value| {
        let mut claims = full();
        claims[name] = value;
        claims
    };
    let asked = async |token: &str| -> Result<Answer, Error> {
        Ok(bearing(&moored, token)?.post_initialize("2025-11-25", json!({})).await?)
    };
    assert_eq!(asked(&provider.token(full()).await?).await?.status, StatusCode::OK);
    let expired = provider.expiring_token(full(), -60).await?;
    let elsewhere = provider.token(with("aud", json!("https://other.example"))).await?;
    let stranger = provider.token(with("iss", json!("https://other.example"))).await?;
    for token in [expired.as_str(), &elsewhere, &stranger, "abc", "a.b.c"] {
        let answer = asked(token).await?;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text());
        assert!(challenge(&answer).starts_with(r#"Bearer error="invalid_token""#), "{}", challenge(&answer));
        assert!(!answer.text().contains(token) || token == "abc", "a token comes back");
    }
    let scope = asked(&provider.token(with("scope", json!("other"))).await?).await?;
    assert_eq!(scope.status, StatusCode::FORBIDDEN);
    assert!(
        challenge(&scope).contains(r#"error="insufficient_scope""#)
            && challenge(&scope).contains(r#"scope="tools""#)
    );
    for claims in [with("azp", json!("other")), with("groups", json!(["ops"]))] {
        let answer = asked(&provider.token(claims).await?).await?;
        assert_eq!((answer.status, challenge(&answer)), (StatusCode::FORBIDDEN, ""));
    }
    let token = provider.token(full()).await?;
    let malformed = moored.client()?.with_header("authorization", "Bearer a b")?;
    assert_eq!(malformed.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::BAD_REQUEST);
    // RFC 6750 §2.3 is not served: a query is in every log on the way.
    let in_query = Client::new(&format!("{}?access_token={token}", moored.url()))?;
    assert_eq!(in_query.post_initialize("2025-11-25", json!({})).await?.status, StatusCode::UNAUTHORIZED);
    Ok(())
}

// Case 021.
#[tokio::test]
async fn a_preflight_needs_no_token_and_a_page_may_read_the_challenge() -> Outcome {
    let provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "")).await?;
    let client = moored.client()?.with_header("origin", "http://localhost:6274")?;
    let preflight = client.send(client.request(Method::OPTIONS).body(Bytes::new())?).await?;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    let refused = client.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let exposed = refused.header("access-control-expose-headers").unwrap_or_default();
    assert!(exposed.contains("www-authenticate"), "{exposed}");
    Ok(())
}

#[tokio::test]
async fn a_denied_caller_is_403_for_everything() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let issuer = provider.issuer();
    let manifest = gateway(&provider, "", "").replace(
        "auth: {",
        &format!("auth: {{denied: [{{subject: mallory}}, {{issuer: '{issuer}', subject: eve}}, {{issuer: 'https://x.example', subject: alice}}], "),
    );
    let moored = Moored::serve(manifest).await?;
    for (subject, status) in
        [("mallory", StatusCode::FORBIDDEN), ("eve", StatusCode::FORBIDDEN), ("alice", StatusCode::OK)]
    {
        let client = bearing(&moored, &provider.token(of(subject)).await?)?;
        assert_eq!(client.post_initialize("2025-11-25", json!({})).await?.status, status, "{subject}");
        if status == StatusCode::FORBIDDEN {
            let session = client.session(&"0".repeat(32));
            assert_eq!(session.delete().await?.status, status, "{subject}");
        }
    }
    Ok(())
}
