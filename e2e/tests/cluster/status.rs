//! What people read: conditions that say what to write, refusals at admission, columns.

use e2e::{
    cluster::{Outcome, in_namespace},
    manifest,
};

use crate::manifests::working_gateway;

#[tokio::test]
async fn an_object_that_cannot_be_served_says_what_to_write_and_stops_nothing() -> Outcome {
    in_namespace("what_to_write", async |namespace| {
        let unserved = "---\napiVersion: mooring.dev/v1alpha1\nkind: MCPGateway\nmetadata: {name: later}\n\
                        spec: {auth: {anonymous: {}}, store: {type: ConfigMap}}\n";
        namespace.apply(unserved).await?;
        let accepted = namespace.until_condition("mcpgateway/later", "Accepted", "False").await?;
        assert_eq!(accepted["reason"], "NotImplemented", "{accepted}");
        let message = accepted["message"].as_str().unwrap_or_default();
        assert!(message.contains("spec.store.type: ConfigMap"), "{message}");

        let stray = manifest::target("stray", "nowhere", "http://stray.default.svc/mcp");
        namespace.apply(&stray).await?;
        let lacks = namespace.until_condition("mcptarget/stray", "ResolvedRefs", "False").await?;
        assert_eq!(lacks["reason"], "GatewayNotFound", "{lacks}");
        assert!(lacks["message"].as_str().is_some_and(|message| message.contains("nowhere")), "{lacks}");

        // The gateway beside them works.
        working_gateway(&namespace).await?;
        let warned = namespace.until_condition("mcpgateway/tools", "PrincipalsBound", "False").await?;
        assert_eq!(warned["reason"], "Anonymous", "{warned}");
        let warned = namespace.until_condition("mcpgateway/tools", "SessionsDurable", "False").await?;
        assert_eq!(warned["reason"], "MemoryStore", "{warned}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_one_object_shows_to_be_wrong_is_refused_at_admission() -> Outcome {
    in_namespace("admission", async |namespace| {
        let nobody = manifest::gateway("nobody").replace("anonymous: {}", "");
        assert!(namespace.refusal(&nobody).await?.contains("auth"));
        let both = manifest::target("both", "tools", "http://both.default.svc/mcp")
            .replace("type: URL", "type: Service");
        assert!(namespace.refusal(&both).await?.contains("server"));
        let long = manifest::gateway("long").replace("spec: {", "spec: {session: {timeoutSeconds: 100000}, ");
        let said = namespace.refusal(&long).await?;
        assert!(said.contains("28800"), "{said}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn kubectl_shows_whether_it_works_and_explains_the_fields() -> Outcome {
    in_namespace("columns", async |namespace| {
        working_gateway(&namespace).await?;
        let gateways = namespace.kubectl(&["get", "mcpgw"]).await?;
        let (head, row) = gateways.split_once('\n').unwrap_or_default();
        assert_eq!(words(head), ["NAME", "ADDRESS", "TARGETS", "READY", "REASON", "AGE"]);
        let address = format!("http://tools-mcp.{}.svc/mcp", namespace.name());
        assert!(words(row).starts_with(&["tools", &address, "1", "True", "Ready"]), "{row}");
        let targets = namespace.kubectl(&["get", "mcpt"]).await?;
        let (head, row) = targets.split_once('\n').unwrap_or_default();
        assert_eq!(words(head), ["NAME", "SERVER", "ADDRESS", "GATEWAYS", "TOOLS", "READY", "REASON", "AGE"]);
        assert!(
            words(row).starts_with(&["first", "Service", "example", "tools", "3", "True", "Ready"]),
            "{row}"
        );
        for field in ["mcpgateway.spec", "mcptarget.spec.server", "acpagent.spec"] {
            let explained = namespace.kubectl(&["explain", field]).await?;
            assert!(!explained.contains("<no description>"), "{explained}");
        }
        Ok(())
    })
    .await
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
