//! Targets come and go under open sessions.

use std::time::Duration;

use e2e::{
    client::Events,
    cluster::{Outcome, in_namespace},
};
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use crate::manifests::{Failure, example_target, pods, session, working_gateway};

/// How long a change may take to reach sessions that are open.
const BOUND: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_target_added_and_removed_reaches_open_sessions_in_5_s_without_a_pod_restart() -> Outcome {
    in_namespace("targets_come_and_go", async |namespace| {
        working_gateway(&namespace).await?;
        let before = pods(&namespace).await?;
        assert_eq!(before.len(), 1, "{before:?}");
        let (_forward, session) = session(&namespace).await?;
        assert_eq!(session.tools().await?, ["first___echo", "first___add", "first___weather"]);
        let mut stream = session.get().await?;
        assert_eq!(stream.status, StatusCode::OK);

        namespace.apply(&example_target("second")).await?;
        assert_changed(&mut stream).await?;
        let tools = session.tools().await?;
        assert_eq!(tools.len(), 6, "{tools:?}");
        let answer = session.call("second___add", json!({"a": 2, "b": 3})).await?;
        assert_eq!(answer.tool_text().as_deref(), Some("5"), "{}", answer.text());

        namespace.kubectl(&["delete", "mcptarget", "first"]).await?;
        assert_changed(&mut stream).await?;
        assert_eq!(session.tools().await?, ["second___echo", "second___add", "second___weather"]);
        let answer = session.call("first___add", json!({"a": 2, "b": 3})).await?;
        assert_eq!(answer.error_code(), Some(-32602), "{}", answer.text());

        assert_eq!(pods(&namespace).await?, before);
        Ok(())
    })
    .await
}

/// The next message of the stream says that the list has changed, and comes in time.
async fn assert_changed(stream: &mut Events) -> Result<(), Failure> {
    let begun = Instant::now();
    let message = stream.next_message().await?.ok_or("the stream ended")?;
    assert_eq!(message.get("method"), Some(&json!("notifications/tools/list_changed")), "{message}");
    assert!(begun.elapsed() < BOUND, "after {:?}", begun.elapsed());
    Ok(())
}
