//! Targets that make it hard to learn their tools: what is listed of them all the same, and how often they are asked.

use e2e::{
    manifest,
    moored::Moored,
    scripted::{Interference, RawAnswer, Script, ScriptedServer},
};
use http::StatusCode;
use tokio::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn not_found() -> Interference {
    Interference::Answer(RawAnswer::status(StatusCode::NOT_FOUND))
}

#[tokio::test]
async fn a_target_without_a_route_for_get_is_listed_though_it_announces_changes() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    target.interfere("GET", not_found());
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    assert!(target.count("GET") >= 1, "it announces changes, so its stream was asked for");
    assert_eq!(target.count("initialize"), 1, "one catalogue session, and it is kept");
    Ok(())
}

#[tokio::test]
async fn a_target_that_forgets_every_session_is_reported_and_handshaken_with_growing_pauses() -> Outcome {
    let target = ScriptedServer::start(Script::echoing(["echo"])).await;
    target.interfere("tools/list", not_found());
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let begun = Instant::now();
    // Heard of, and so waited for by nobody, though it never listed anything.
    assert!(session.tools().await?.is_empty());
    assert!(begun.elapsed() < Duration::from_millis(4500), "{:?}", begun.elapsed());
    target.until_seen("initialize", 4).await?;
    // Pauses of 0.5, 1 and 2 seconds lie between four handshakes.
    assert!(begun.elapsed() > Duration::from_millis(2500), "{:?}", begun.elapsed());
    target.behave("tools/list");
    moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[("target", "a")]) > 0.9).await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    Ok(())
}
