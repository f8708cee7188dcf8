//! Sessions have owners: a real OpenID Connect provider vouches for them, and what is somebody else's does not exist.

#[path = "owners/access.rs"]
mod access;
#[path = "owners/keys.rs"]
mod keys;
#[path = "owners/refusals.rs"]
mod refusals;
#[path = "owners/strangers.rs"]
mod strangers;

use e2e::{
    client::{Client, Session},
    identity::IdentityProvider,
    manifest::target,
    moored::Moored,
    scripted::{Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Error>;

/// What tokens for the gateway are for.
const AUDIENCE: &str = "https://tools.example.org/mcp";

/// The gateway `tools` that takes tokens of `provider`, with more of `auth.oidc` and of `spec`.
fn gateway(provider: &IdentityProvider, oidc: &str, spec: &str) -> String {
    let issuer = provider.issuer();
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {{name: tools}}\n\
         spec: {{auth: {{oidc: {{issuer: '{issuer}', audiences: ['{AUDIENCE}']{oidc}}}}}{spec}}}\n"
    )
}

/// Claims of a subject, for the gateway.
fn of(subject: &str) -> Value {
    json!({"sub": subject, "aud": AUDIENCE})
}

fn bearing(moored: &Moored, token: &str) -> Result<Client, Error> {
    Ok(moored.client()?.with_header("authorization", &format!("Bearer {token}"))?)
}

async fn counts(session: &Session) -> Result<Option<String>, Error> {
    let answer = session.call("a___counter", json!({})).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    Ok(answer.tool_text())
}

// Case 003.
#[tokio::test]
async fn the_owner_continues_with_a_refreshed_token_and_nobody_else_does() -> Outcome {
    let a = ScriptedServer::start(Script::default()).await;
    let mut provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "") + &target("a", "tools", &a.url())).await?;
    let first = provider.token(of("alice")).await?;
    let session = bearing(&moored, &first)?.initialize().await?;
    assert_eq!(counts(&session).await?.as_deref(), Some("1"));

    // Another token, of another key, with other claims; issuer and subject are the same.
    provider.rotate().await?;
    let mut claims = of("alice");
    claims["jti"] = json!("another");
    let refreshed = bearing(&moored, &provider.token(claims).await?)?;
    let known = async || {
        let answer = session.through(&refreshed).call("a___counter", json!({})).await.ok()?;
        (answer.status == StatusCode::OK).then(|| answer.tool_text())
    };
    // Providers are asked for new keys at most every few seconds.
    let text = e2e::process::poll(e2e::client::DEADLINE, known).await.flatten();
    assert_eq!(text.as_deref(), Some("2"), "the same session of the same target");

    let mallory = bearing(&moored, &provider.token(of("mallory")).await?)?;
    let refused = session.through(&mallory).call("a___counter", json!({})).await?;
    assert_eq!((refused.status, refused.error_code()), (StatusCode::NOT_FOUND, Some(-32001)));
    assert_eq!(session.through(&mallory).delete().await?.status, StatusCode::NOT_FOUND);
    assert_eq!(counts(&session.through(&refreshed)).await?.as_deref(), Some("3"), "the owner's goes on");
    assert_eq!(session.through(&refreshed).delete().await?.status, StatusCode::NO_CONTENT);

    let logged = moored.log().iter().any(|line| line.to_string().contains(&first));
    assert!(!logged, "a token is in the log");
    Ok(())
}

// Case 004. The target knows nobody: what keeps the two apart is the session that each has there.
#[tokio::test]
async fn two_callers_of_one_target_count_and_cancel_each_for_themselves() -> Outcome {
    let a = ScriptedServer::start(Script::default()).await;
    let mut provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "") + &target("a", "tools", &a.url())).await?;
    let alice = bearing(&moored, &provider.token(of("alice")).await?)?.initialize().await?;
    let bob = bearing(&moored, &provider.token(of("bob")).await?)?.initialize().await?;
    for count in ["1", "2", "3"] {
        assert_eq!(counts(&alice).await?.as_deref(), Some(count));
    }
    assert_eq!(counts(&bob).await?.as_deref(), Some("1"), "nobody had counted in his");
    assert_eq!(counts(&alice).await?.as_deref(), Some("4"));

    // Both calls have one id, and the target the same for both.
    let call = r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"a___slow"}}"#;
    let before = a.count("tools/call");
    let running = [alice.clone(), bob.clone()].map(|session| {
        let mut running = JoinSet::new();
        running.spawn(async move { session.post(call).await });
        running
    });
    a.until_seen("tools/call", before + 2).await?;
    bob.notify("notifications/cancelled", json!({"requestId": 77})).await?;
    let [mut hers, mut his] = running;
    let ended = his.join_next().await.ok_or("his call is gone")???;
    assert_eq!(ended.error_code(), Some(-32800));
    a.until_seen("notifications/cancelled", 1).await?;
    a.release();
    let answered = hers.join_next().await.ok_or("her call is gone")???;
    assert_eq!(answered.tool_text().as_deref(), Some("slow: {}"), "hers ran on");
    Ok(())
}
