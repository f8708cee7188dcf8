//! What a real server lists for clients that can do different things: server-everything of the reference servers, which
//! registers some of its tools only once it knows what its client can do.

use std::time::Duration;

use e2e::{manifest, moored::Moored, peers::EverythingServer, process};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long a list may take to be whole: the server adds tools behind its first answer, and announces them.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn every_client_sees_the_tools_that_the_server_has_for_its_capabilities() -> Outcome {
    let everything = EverythingServer::start().await?;
    let moored = Moored::serve(manifest::gateway_with([("e", everything.url())])).await?;
    let client = moored.client()?;
    let both = json!({"form": {}, "url": {}});
    for (capabilities, count) in [
        (json!({}), 13),
        (json!({"elicitation": {}}), 14),
        (json!({"elicitation": both}), 15),
        (json!({"elicitation": both, "sampling": {}}), 16),
    ] {
        let session = client.initialize_as(capabilities.clone()).await?;
        let whole = async || session.tools().await.ok().filter(|tools| tools.len() == count);
        let tools = process::poll(PATIENCE, whole).await;
        let last = session.tools().await?;
        let tools =
            tools.ok_or_else(|| format!("{capabilities}: {} tools and not {count}: {last:?}", last.len()))?;
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        assert!(has("e___echo"));
        assert_eq!(has("e___trigger-elicitation-request"), capabilities.get("elicitation").is_some());
        assert_eq!(has("e___trigger-sampling-request"), capabilities.get("sampling").is_some());
    }
    Ok(())
}

#[tokio::test]
async fn its_prompts_resources_and_templates_are_listed_and_its_capabilities_and_instructions_announced()
-> Outcome {
    let everything = EverythingServer::start().await?;
    let moored = Moored::serve(manifest::gateway_with([("e", everything.url())])).await?;
    let client = moored.client()?;
    let alone = e2e::client::Client::new(&everything.url())?;
    let announced = |answer: e2e::client::Answer| answer.response()["result"].clone();
    let through = announced(client.post_initialize("2025-11-25", json!({})).await?);
    let direct = announced(alone.post_initialize("2025-11-25", json!({})).await?);
    let names = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(&through["capabilities"]), names(&direct["capabilities"]));
    assert_eq!(through["capabilities"]["tasks"], direct["capabilities"]["tasks"]);
    assert!(direct["instructions"].is_string() && through["instructions"].is_string(), "{through}");
    let (session, direct) = (client.initialize().await?, alone.initialize().await?);
    assert_eq!(session.resources().await?, direct.resources().await?);
    assert_eq!(session.templates().await?, direct.templates().await?);
    let prompts: Vec<String> = direct.prompts().await?.iter().map(|name| format!("e___{name}")).collect();
    assert!(!prompts.is_empty());
    assert_eq!(session.prompts().await?, prompts);
    Ok(())
}
