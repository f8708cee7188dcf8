//! Secrets that come late, change and go under a gateway that works.

use std::time::Duration;

use e2e::cluster::{Outcome, condition, in_namespace};
use serde_json::Value;

use crate::manifests::{example_target, pods, session, working_gateway};

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

/// Case 051.
#[tokio::test]
async fn a_secret_that_comes_late_changes_and_goes_reaches_the_daemons_and_rolls_no_pod() -> Outcome {
    in_namespace("credentials_rotate", async |namespace| {
        working_gateway(&namespace).await?;
        let before = pods(&namespace).await?;
        let credentials =
            "credentials: {type: Headers, headers: [{name: X-Key, secretRef: {name: keys, key: k}}]}";
        let target = format!("{}  {credentials}\n", example_target("second"));
        namespace.apply(&target).await?;
        let missing = namespace.until_condition("mcptarget/second", "ResolvedRefs", "False").await?;
        assert_eq!(missing["reason"], "SecretNotFound", "{missing}");
        assert!(missing["message"].as_str().is_some_and(|said| said.contains("Secret keys")), "{missing}");

        let held = ["secret/tools-mcp-credentials"];
        for (value, encoded) in ["hunter2", "hunter3"].into_iter().zip(VALUES) {
            namespace.apply(&secret(value)).await?;
            namespace.until(&held, BOUND, |secret| holds(secret, encoded)).await?;
        }
        namespace.until_condition("mcptarget/second", "Ready", "True").await?;
        let (_forward, session) = session(&namespace).await?;
        let answer = session.call("second___add", serde_json::json!({"a": 2, "b": 3})).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("5"), "{}", answer.text());

        namespace.kubectl(&["delete", "secret", "keys"]).await?;
        let gone = |target: &Value| {
            condition(target, "ResolvedRefs").is_some_and(|resolved| resolved["status"] == "False")
        };
        namespace.until(&["mcptarget/second"], BOUND, gone).await?;
        assert!(holds(&namespace.get(&held).await?, VALUES[1]), "what works goes on");
        let answer = session.call("second___add", serde_json::json!({"a": 2, "b": 3})).await?;
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
