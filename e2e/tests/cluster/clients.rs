//! The official clients, unmodified, against server-everything in a pod, through the gateway.

use std::fs;

use e2e::{
    cluster::{Outcome, in_namespace},
    peers::Peer,
    settings,
};
use serde_json::json;

#[tokio::test]
async fn official_clients_list_and_call_a_real_server_through_the_gateway() -> Outcome {
    in_namespace("official_clients", async |namespace| {
        let example = fs::read_to_string(settings::checkout().join("examples/cluster.yaml"))?;
        namespace.apply(&example).await?;
        namespace.until_condition("mcpgateway/tools", "Ready", "True").await?;
        namespace.until_condition("mcptarget/everything", "Ready", "True").await?;
        let forward = namespace.forward("service/tools-mcp", 80).await?;
        let peers = [
            Peer::Python2("auto"),
            Peer::Python2("legacy"),
            Peer::Python1,
            Peer::TypeScript1,
            Peer::TypeScript2("auto"),
            Peer::TypeScript2("legacy"),
            Peer::Rust("auto"),
        ];
        for peer in peers {
            let said =
                peer.list_and_call(&forward.url(), "everything___echo", &json!({"message": "ahoy"})).await?;
            assert_eq!(said.text, "Echo: ahoy", "{peer:?}");
            assert!(
                said.tools.iter().any(|tool| tool == "everything___get-sum"),
                "{peer:?} lists {:?}",
                said.tools
            );
        }
        Ok(())
    })
    .await
}
