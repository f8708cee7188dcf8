//! Secrets that come late, change and go under a gateway that works.

use std::time::Duration;

use e2e::{
    client::{ClientError, Session},
    cluster::{Outcome, condition, in_namespace},
    process,
};
use serde_json::{Value, json};

use crate::manifests::{example_target, pods, session, showing_gateway};

/// How long a change may take to reach the daemons' Secret.
const BOUND: Duration = Duration::from_secs(5);
/// `hunter2` and `hunter3` as a Secret has them.
const VALUES: [&str; 2] = ["aHVudGVyMg==", "aHVudGVyMw=="];

fn secret(value: &str) -> String {
    format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: keys}}\nstringData: {{k: {value}}}\n")
}

fn holds(credentials: &Value, value: &str) -> bool {
    let data = credentials.pointer("/data").and_then(Value::as_object);
    data.is_some_and(|data| data.values().any(|held| held == value))
}

/// What a header of a call to the second target said when it arrived there.
async fn header(session: &Session, name: &str) -> Result<Option<String>, ClientError> {
    Ok(session.call("second___header", json!({"name": name})).await?.tool_text())
}

#[tokio::test]
async fn a_gateway_asks_a_server_with_a_token_of_its_own_account_that_the_cluster_takes_for_that_audience()
-> Outcome {
    in_namespace("account_token", async |namespace| {
        showing_gateway(&namespace).await?;
        let credentials = "credentials: {type: ServiceAccountToken, serviceAccountToken: {audience: 'https://mcp.example'}}";
        namespace.apply(&format!("{}  {credentials}\n", example_target("second"))).await?;
        namespace.until_condition("mcptarget/second", "Ready", "True").await?;
        let (_forward, session) = session(&namespace).await?;
        let shown = header(&session, "authorization").await?.ok_or("no header")?;
        let token = shown.strip_prefix("Bearer ").ok_or("no token")?;
        let review = format!(
            "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\n\
             spec: {{token: {token}, audiences: ['https://mcp.example']}}\n"
        );
        let reviewed = namespace.create(&review).await?;
        let name = format!("system:serviceaccount:{}:tools-mcp", namespace.name());
        let status = &reviewed["status"];
        assert_eq!(
            (&status["authenticated"], &status["user"]["username"], &status["audiences"]),
            (&json!(true), &json!(name), &json!(["https://mcp.example"])),
        );
        let elsewhere = review.replace("audiences: ['https://mcp.example']", "audiences: []");
        let reviewed = namespace.create(&elsewhere).await?;
        assert_ne!(reviewed["status"]["authenticated"], json!(true), "it is good for nothing else");
        Ok(())
    })
    .await
}

/// Case 051.
#[tokio::test]
async fn a_secret_that_comes_late_changes_and_goes_reaches_the_daemons_and_rolls_no_pod() -> Outcome {
    in_namespace("credentials_rotate", async |namespace| {
        showing_gateway(&namespace).await?;
        let before = pods(&namespace).await?;
        let credentials =
            "credentials: {type: Headers, headers: [{name: X-Key, secretRef: {name: keys, key: k}}]}";
        let target = format!("{}  {credentials}\n", example_target("second"));
        namespace.apply(&target).await?;
        let missing = namespace.until_condition("mcptarget/second", "ResolvedRefs", "False").await?;
        assert_eq!(missing["reason"], "SecretNotFound", "{missing}");
        assert!(missing["message"].as_str().is_some_and(|said| said.contains("Secret keys")), "{missing}");

        let held = ["secret/tools-mcp-credentials"];
        let (_forward, session) = session(&namespace).await?;
        for (value, encoded) in ["hunter2", "hunter3"].into_iter().zip(VALUES) {
            namespace.apply(&secret(value)).await?;
            namespace.until(&held, BOUND, |secret| holds(secret, encoded)).await?;
            namespace.until_condition("mcptarget/second", "Ready", "True").await?;
            // In one session, and over the mounted Secret, which the daemon watches by name.
            let shown =
                async || (header(&session, "x-key").await.ok()?.as_deref() == Some(value)).then_some(());
            assert!(process::poll(BOUND, shown).await.is_some(), "{value} does not reach the server");
        }

        namespace.kubectl(&["delete", "secret", "keys"]).await?;
        let gone = |target: &Value| {
            condition(target, "ResolvedRefs").is_some_and(|resolved| resolved["status"] == "False")
        };
        namespace.until(&["mcptarget/second"], BOUND, gone).await?;
        assert!(holds(&namespace.get(&held).await?, VALUES[1]), "what works goes on");
        let answer = session.call("second___add", json!({"a": 2, "b": 3})).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("5"), "{}", answer.text());

        let shown =
            namespace.kubectl(&["get", "configmaps,mcptargets,mcpgateways,events", "-o", "json"]).await?;
        assert!(!shown.contains("hunter") && !VALUES.iter().any(|value| shown.contains(value)));
        let logs = namespace.kubectl(&["logs", "deployment/tools-mcp"]).await?;
        assert!(!logs.contains("hunter"), "{logs}");
        assert_eq!(pods(&namespace).await?, before);
        Ok(())
    })
    .await
}
