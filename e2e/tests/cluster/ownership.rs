//! What the operator makes for a gateway belongs to it: restored while it is there, gone when it is gone.

use e2e::cluster::{Namespace, Outcome, PATIENCE, in_namespace};
use serde_json::Value;

use crate::manifests::{Failure, example_target, working_gateway};

/// Every kind the operator makes for a gateway.
const KINDS: &str = "deployments,services,serviceaccounts,roles,rolebindings,configmaps,poddisruptionbudgets";

#[tokio::test]
async fn a_deleted_gateway_leaves_nothing_behind_in_background_and_foreground() -> Outcome {
    in_namespace("deletion", async |namespace| {
        for cascade in ["--cascade=background", "--cascade=foreground"] {
            working_gateway(&namespace).await?;
            let made = children(&namespace).await?;
            let kinds = KINDS.split(',').count();
            // Of ConfigMaps there are two, configuration and report.
            assert_eq!(made.len(), kinds + 1, "{made:?}");
            namespace.kubectl(&["delete", "mcpgateway", "tools", cascade, "--wait"]).await?;
            let gone = |all: &Value| of_gateway(all).is_empty();
            namespace.until(&[KINDS], PATIENCE, gone).await?;
            namespace
                .until(&["pods", "--selector", "app.kubernetes.io/instance=tools"], PATIENCE, gone)
                .await?;
            // The target stays, and says what it lacks.
            let lacks = namespace.until_condition("mcptarget/first", "ResolvedRefs", "False").await?;
            assert_eq!(lacks["reason"], "GatewayNotFound", "{lacks}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn each_child_deleted_by_hand_comes_back() -> Outcome {
    in_namespace("hand_deleted", async |namespace| {
        working_gateway(&namespace).await?;
        for child in children(&namespace).await? {
            let before = namespace.get(&[&child]).await?;
            namespace.kubectl(&["delete", &child, "--wait=false"]).await?;
            let uid = |object: &Value| object.pointer("/metadata/uid").cloned();
            let back = |object: &Value| uid(object).is_some() && uid(object) != uid(&before);
            namespace.until(&[&child], PATIENCE, back).await?;
        }
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        Ok(())
    })
    .await
}

/// The pods stay, and what they said once must be there again.
#[tokio::test]
async fn a_report_deleted_by_hand_is_written_again_by_the_same_pods() -> Outcome {
    in_namespace("report", async |namespace| {
        working_gateway(&namespace).await?;
        let report = &["configmap", "tools-mcp-report"];
        let before = namespace.get(report).await?;
        namespace.kubectl(&["delete", "configmap", "tools-mcp-report"]).await?;
        let data = before.pointer("/data").cloned();
        assert!(data.is_some(), "{before}");
        let again = |object: &Value| object.pointer("/data").cloned() == data;
        namespace.until(report, PATIENCE, again).await?;
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        Ok(())
    })
    .await
}

/// Pods keep the tokens of a ServiceAccount that is gone, and the API server refuses those: the restored account's pods
/// are new ones.
#[tokio::test]
async fn a_gateway_whose_service_account_was_deleted_takes_up_changes_again() -> Outcome {
    in_namespace("service_account", async |namespace| {
        working_gateway(&namespace).await?;
        let account = &["serviceaccount", "tools-mcp"];
        let before = namespace.get(account).await?;
        namespace.kubectl(&["delete", "serviceaccount", "tools-mcp"]).await?;
        let uid = |object: &Value| object.pointer("/metadata/uid").cloned();
        let after = namespace
            .until(account, PATIENCE, |object: &Value| uid(object).is_some() && uid(object) != uid(&before))
            .await?;
        let of_pods = "/spec/template/metadata/annotations/mooring.dev~1service-account";
        let rolled = |deployment: &Value| deployment.pointer(of_pods).cloned() == uid(&after);
        namespace.until(&["deployment", "tools-mcp"], PATIENCE, rolled).await?;
        namespace.apply(&example_target("second")).await?;
        namespace.until_condition("mcptarget/second", "Ready", "True").await?;
        Ok(())
    })
    .await
}

/// The gateway's children, as `kind/name`.
async fn children(namespace: &Namespace) -> Result<Vec<String>, Failure> {
    Ok(of_gateway(&namespace.get(&[KINDS]).await?))
}

/// Those objects of a list that a gateway owns or that are labelled as its own, as `kind/name`.
fn of_gateway(list: &Value) -> Vec<String> {
    let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
    let owned = items.filter(|item| {
        let owner = item.pointer("/metadata/ownerReferences/0/kind");
        let instance = item.pointer("/metadata/labels/app.kubernetes.io~1instance");
        owner.is_some_and(|kind| kind == "MCPGateway") || instance.is_some_and(|name| name == "tools")
    });
    let text =
        |item: &Value, at: &str| item.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    owned
        .map(|item| format!("{}/{}", text(item, "/kind").to_lowercase(), text(item, "/metadata/name")))
        .collect()
}
