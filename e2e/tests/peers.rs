//! The official clients, unmodified, list and call tools of a real server through `moored serve`.

use e2e::{
    manifest,
    moored::Moored,
    peers::{EverythingServer, Peer, Said},
};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One session of a client through the gateway.
async fn session_of(peer: Peer) -> Result<Said, Box<dyn std::error::Error>> {
    let everything = EverythingServer::start().await?;
    let moored = Moored::serve(manifest::gateway_with([("everything", everything.url())])).await?;
    Ok(peer.list_and_call(&moored.url(), "everything___echo", &json!({"message": "ahoy"})).await?)
}

fn assert_complete(said: &Said) {
    assert_eq!(said.text, "Echo: ahoy");
    assert!(said.tools.iter().any(|tool| tool == "everything___get-sum"), "{said:?}");
    assert!(said.tools.iter().all(|tool| tool.starts_with("everything___")), "{said:?}");
    assert!(said.protocol.as_deref().is_none_or(|version| version == "2025-11-25"), "{said:?}");
}

#[tokio::test]
async fn the_python_client_2_in_its_automatic_mode_falls_back_and_calls() -> Outcome {
    assert_complete(&session_of(Peer::Python2("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_python_client_2_in_its_legacy_mode_calls() -> Outcome {
    assert_complete(&session_of(Peer::Python2("legacy")).await?);
    Ok(())
}

#[tokio::test]
async fn the_python_client_1_calls() -> Outcome {
    assert_complete(&session_of(Peer::Python1).await?);
    Ok(())
}

#[tokio::test]
async fn the_typescript_sdk_1_calls() -> Outcome {
    assert_complete(&session_of(Peer::TypeScript1).await?);
    Ok(())
}

#[tokio::test]
async fn the_typescript_client_2_in_its_automatic_mode_falls_back_and_calls() -> Outcome {
    assert_complete(&session_of(Peer::TypeScript2("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_typescript_client_2_in_its_legacy_mode_calls() -> Outcome {
    assert_complete(&session_of(Peer::TypeScript2("legacy")).await?);
    Ok(())
}

#[tokio::test]
async fn the_rust_client_in_its_automatic_mode_falls_back_and_calls() -> Outcome {
    assert_complete(&session_of(Peer::Rust("auto")).await?);
    Ok(())
}

#[tokio::test]
async fn the_rust_client_that_asks_for_a_newer_version_calls() -> Outcome {
    assert_complete(&session_of(Peer::Rust("legacy")).await?);
    Ok(())
}
