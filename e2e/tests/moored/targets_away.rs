//! Case 034: a target that cannot be reached, or never answers, breaks nothing but calls to itself; when it comes back,
//! so do its tools, and clients hear of it.

use std::time::Duration;

use e2e::{
    client::{Events, Session},
    manifest,
    moored::Moored,
    scripted::{Interference, Script, ScriptedServer},
};
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What `connectSeconds: 1` and a slow machine may take.
const BOUND: Duration = Duration::from_millis(4500);

fn target(name: &str, url: &str) -> String {
    manifest::target(name, "tools", url).replace("spec: {", "spec: {timeouts: {connectSeconds: 1}, ")
}

async fn until_listed(session: &Session, stream: &mut Events, tool: &str) -> Outcome {
    while !session.tools().await?.iter().any(|listed| listed == tool) {
        let message = stream.next_message().await?.ok_or("the stream ended")?;
        assert_eq!(message.get("method"), Some(&json!("notifications/tools/list_changed")));
    }
    Ok(())
}

async fn fails(session: &Session, target: &str, reason: &str) -> Outcome {
    let begun = Instant::now();
    let answer = session.call(&format!("{target}___echo"), json!({})).await?;
    assert_eq!((answer.status, answer.error_code()), (StatusCode::OK, Some(-32603)), "{}", answer.text());
    let data = json!({"target": target, "reason": reason});
    assert_eq!(answer.response().pointer("/error/data"), Some(&data));
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn targets_that_are_away_break_calls_to_themselves_alone_and_come_back() -> Outcome {
    let good = ScriptedServer::start(Script::echoing(["echo"])).await;
    let silent = ScriptedServer::start(Script::echoing(["echo"])).await;
    silent.interfere("initialize", Interference::Hang);
    let closed = ScriptedServer::start(Script::default()).await;
    let closed_url = closed.url();
    let closed = closed.stop().await;
    let manifests = manifest::gateway("tools")
        + &target("closed", &closed_url)
        + &target("good", &good.url())
        + &target("silent", &silent.url());
    let moored = Moored::serve(manifests).await?;
    let client = moored.client()?;

    let begun = Instant::now();
    let session = client.initialize().await?;
    assert!(
        begun.elapsed() < BOUND,
        "initialize waits for no target longer than its bound: {:?}",
        begun.elapsed()
    );
    assert_eq!(session.tools().await?, ["good___echo"]);
    assert!(
        begun.elapsed() < BOUND,
        "the list waits for no target longer than its bound: {:?}",
        begun.elapsed()
    );
    let begun = Instant::now();
    for n in 0..10 {
        let answer = session.call("good___echo", json!({"n": n})).await?;
        assert_eq!(answer.tool_text(), Some(format!("echo: {{\"n\":{n}}}")));
    }
    assert!(begun.elapsed() < BOUND, "one waited for a target that is away: {:?}", begun.elapsed());
    fails(&session, "closed", "target_unreachable").await?;
    fails(&session, "silent", "target_timeout").await?;
    let up = |target| [("gateway", "tools"), ("target", target)];
    let metrics = moored
        .until_metrics(|metrics| {
            ["closed", "silent"].iter().all(|target| {
                let labels = [("gateway", "tools"), ("target", *target), ("outcome", "failed")];
                metrics.sum("mooring_target_handshakes_total", &labels) >= 2.0
            })
        })
        .await?;
    let state =
        ["closed", "good", "silent"].map(|target| metrics.sum("mooring_target_up", &up(target)) > 0.0);
    assert_eq!(state, [false, true, false]);

    let mut stream = session.get().await?;
    silent.behave("initialize");
    until_listed(&session, &mut stream, "silent___echo").await?;
    let back = ScriptedServer::start_at(closed, Script::echoing(["echo"])).await?;
    until_listed(&session, &mut stream, "closed___echo").await?;
    assert_eq!(session.tools().await?, ["closed___echo", "good___echo", "silent___echo"]);
    for target in ["closed", "good", "silent"] {
        let answer = session.call(&format!("{target}___echo"), json!({})).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("echo: {}"), "{target}");
    }
    assert_eq!(back.count("tools/call"), 1);
    Ok(())
}

#[tokio::test]
async fn the_tools_of_a_target_that_goes_away_stay_listed_and_fail_when_called() -> Outcome {
    let target_ = ScriptedServer::start(Script::echoing(["echo"])).await;
    let url = target_.url();
    let moored = Moored::serve(manifest::gateway("tools") + &target("a", &url)).await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.call("a___echo", json!({})).await?.tool_text().as_deref(), Some("echo: {}"));
    assert_eq!(session.tools().await?, ["a___echo"]);
    let address = target_.stop().await;
    fails(&session, "a", "target_unreachable").await?;
    moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[]) < 1.0).await?;
    assert_eq!(session.tools().await?, ["a___echo"]);
    // One that comes back with its sessions forgotten is lost to this session, and fine for the next.
    let back = ScriptedServer::start_at(address, Script::echoing(["echo"])).await?;
    let lost = session.call("a___echo", json!({})).await?;
    assert_eq!(lost.status, StatusCode::NOT_FOUND);
    assert_eq!(lost.response()["error"]["data"], json!({"target": "a", "reason": "target_session_lost"}));
    let next = moored.client()?.initialize().await?;
    assert_eq!(next.call("a___echo", json!({})).await?.tool_text().as_deref(), Some("echo: {}"));
    moored.until_metrics(|metrics| metrics.sum("mooring_target_up", &[]) > 0.0).await?;
    assert_eq!(back.count("tools/call"), 2);
    Ok(())
}
