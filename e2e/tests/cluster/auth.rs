//! ServiceAccounts call a gateway with tokens of the cluster: each is known by its uid, and no token is any other's.

use std::time::Duration;

use e2e::{
    client::{Client, Session},
    cluster::{Namespace, Outcome, in_namespace},
    manifest,
};
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use crate::manifests::{EXAMPLE_SERVER, Failure, example_target};

/// How long a denied caller's session may live on.
const SOON: Duration = Duration::from_secs(5);

const AUDIENCE: &str = "https://tools.example.org/mcp";

/// The gateway `tools`, for the ServiceAccounts of its own namespace.
fn gateway(more: &str) -> String {
    format!(
        "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {{name: tools}}\n\
         spec: {{auth: {{serviceAccount: {{audiences: ['{AUDIENCE}']}}{more}}}}}\n"
    )
}

/// A token of an account, for an audience.
async fn token(namespace: &Namespace, account: &str, audience: &str) -> Result<String, Failure> {
    let token = namespace.kubectl(&["create", "token", account, "--audience", audience]).await?;
    Ok(token.trim().to_owned())
}

async fn account(namespace: &Namespace, url: &str, name: &str) -> Result<Client, Failure> {
    let token = token(namespace, name, AUDIENCE).await?;
    Ok(Client::new(url)?.with_header("authorization", &format!("Bearer {token}"))?)
}

async fn status(session: &Session) -> Result<StatusCode, Failure> {
    Ok(session.ask("ping", json!({})).await?.status)
}

#[tokio::test]
async fn a_service_account_owns_its_sessions_and_one_made_anew_is_somebody_else() -> Outcome {
    in_namespace("service_accounts", async |namespace| {
        namespace.kubectl(&["create", "serviceaccount", "bot"]).await?;
        namespace.kubectl(&["create", "serviceaccount", "other"]).await?;
        namespace.apply(&[EXAMPLE_SERVER, &gateway(""), &example_target("first")].concat()).await?;
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        namespace.until_condition("mcptarget/first", "Ready", "True").await?;
        let bound = namespace.until_condition("mcpgateway/tools", "PrincipalsBound", "True").await?;
        assert_eq!(bound["reason"], "Authenticated", "{bound}");
        let forward = namespace.forward("service/tools-mcp", 80).await?;
        let url = forward.url();

        let nobody = Client::new(&url)?.post_initialize("2025-11-25", json!({})).await?;
        assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
        let elsewhere = token(&namespace, "bot", "https://other.example").await?;
        let elsewhere = Client::new(&url)?.with_header("authorization", &format!("Bearer {elsewhere}"))?;
        assert_eq!(
            elsewhere.post_initialize("2025-11-25", json!({})).await?.status,
            StatusCode::UNAUTHORIZED
        );

        let session = account(&namespace, &url, "bot").await?.initialize().await?;
        assert!(!session.tools().await?.is_empty());
        let refreshed = session.through(&account(&namespace, &url, "bot").await?);
        assert_eq!(status(&refreshed).await?, StatusCode::OK, "another token of the same account");
        let other = session.through(&account(&namespace, &url, "other").await?);
        assert_eq!(status(&other).await?, StatusCode::NOT_FOUND);

        namespace.kubectl(&["delete", "serviceaccount", "bot"]).await?;
        namespace.kubectl(&["create", "serviceaccount", "bot"]).await?;
        let anew = account(&namespace, &url, "bot").await?;
        assert_eq!(status(&session.through(&anew)).await?, StatusCode::NOT_FOUND, "another uid");
        assert_eq!(status(&anew.initialize().await?).await?, StatusCode::OK);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_session_that_began_before_a_time_that_is_applied_ends_within_seconds() -> Outcome {
    in_namespace("end_before", async |namespace| {
        let before = |time: &str| {
            manifest::gateway("tools")
                .replace("spec: {", &format!("spec: {{session: {{endBefore: '{time}'}}, "))
        };
        namespace.apply(&before("2020-01-01T00:00:00Z")).await?;
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        let forward = namespace.forward("service/tools-mcp", 80).await?;
        let session = Client::new(&forward.url())?.initialize().await?;
        let mut stream = session.get().await?;
        // To the second, as Kubernetes writes times, and yet to come: it ends sessions when it does.
        let soon =
            (jiff::Timestamp::now() + Duration::from_secs(2)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        namespace.apply(&before(&soon)).await?;
        let applied = Instant::now();
        while stream.next().await?.is_some() {}
        assert!(applied.elapsed() < SOON + Duration::from_secs(2), "{:?}", applied.elapsed());
        assert_eq!(status(&session).await?, StatusCode::NOT_FOUND);
        assert_eq!(status(&Client::new(&forward.url())?.initialize().await?).await?, StatusCode::OK);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_service_account_that_is_denied_loses_its_session_within_seconds() -> Outcome {
    in_namespace("denied_accounts", async |namespace| {
        namespace.kubectl(&["create", "serviceaccount", "bot"]).await?;
        namespace.apply(&gateway("")).await?;
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        let forward = namespace.forward("service/tools-mcp", 80).await?;
        let session = account(&namespace, &forward.url(), "bot").await?.initialize().await?;
        let mut stream = session.get().await?;
        let subject = format!("system:serviceaccount:{}:bot", namespace.name());
        namespace.apply(&gateway(&format!(", denied: [{{subject: '{subject}'}}]"))).await?;
        let applied = Instant::now();
        // Its stream ends with it; comments that keep it open may come before.
        while stream.next().await?.is_some() {}
        assert!(applied.elapsed() < SOON, "{:?}", applied.elapsed());
        assert_eq!(status(&session).await?, StatusCode::FORBIDDEN);
        namespace.apply(&gateway("")).await?;
        let again = async || (status(&session).await.ok()? == StatusCode::NOT_FOUND).then_some(());
        let ended = e2e::process::poll(e2e::cluster::PATIENCE, again).await;
        assert!(ended.is_some(), "it does not come back with the caller");
        Ok(())
    })
    .await
}
