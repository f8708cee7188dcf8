//! What one caller or one target may take, so that it is nobody else's: memory, tasks, silence; and that a caller who
//! leaves is accounted for.

use std::time::Duration;

use e2e::{
    client::{Client, ClientError},
    manifest,
    moored::{Moored, Start},
    scripted::{Behaviour, Script, ScriptedServer, Tool},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn script(name: &str, behaviour: Behaviour) -> Script {
    Script { tools: vec![Tool::new(name, behaviour)], ..Script::default() }
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
    )
}

#[tokio::test]
async fn an_answer_whose_id_the_target_wrote_anew_is_the_answer() -> Outcome {
    let target = ScriptedServer::start(script("fed", Behaviour::Fed)).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    for (ours, theirs) in [(r#""a\/b""#, r#""a/b""#), ("7.0", "7")] {
        let mut events = session.open(call(ours, "a___fed")).await?;
        target.until_feeds(1).await?;
        target
            .feed(format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{theirs},\"result\":{{\"content\":[]}}}}\n\n"));
        let message = events.next_message().await?.ok_or("the stream ended")?;
        assert!(message.get("result").is_some(), "{message}");
        assert!(events.next_message().await?.is_none(), "nothing comes behind the answer");
        target.end_feeds();
        target.until("the stream is seen to have ended", |target| target.counts().feeds == 0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_target_that_floods_with_requests_has_them_answered_and_opens_no_flood_of_connections() -> Outcome {
    let target = ScriptedServer::start(script("fed", Behaviour::Fed)).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let mut events = session.open(call("1", "a___fed")).await?;
    target.until_feeds(1).await?;
    let ping = |id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"p{id}\",\"method\":\"ping\"}}\n\n");
    let pings = (0..500).map(ping).collect::<Vec<_>>().concat();
    target.feed(pings);
    target.feed("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n");
    let message = events.next_message().await?.ok_or("the stream ended")?;
    assert_eq!(message.get("id"), Some(&json!(1)));
    target.until("500 pings were answered", |target| target.answers().len() == 500).await?;
    assert!(target.counts().connections < 40, "{} connections", target.counts().connections);
    Ok(())
}

#[tokio::test]
async fn a_length_that_is_only_announced_takes_nothing_from_others_and_bodies_share_a_bound() -> Outcome {
    let manifests = manifest::gateway("tools");
    // A quarter of it is what bodies may take: 256 KiB.
    let arguments = vec!["--memory-limit".to_owned(), (1_u32 << 20).to_string()];
    let moored = Moored::start(Start { manifests, arguments }).await?;
    let session = moored.client()?.initialize().await?;
    let mut idle = Vec::new();
    for _ in 0..16 {
        let mut stream = TcpStream::connect(moored.address()).await?;
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        idle.push(stream);
    }
    assert_eq!(session.ask("ping", json!({})).await?.status, StatusCode::OK);
    // More than the bound, and less than the gateway's own limit for one body.
    let answer = session.post(format!("{{\"x\":\"{}\"}}", "x".repeat(300_000))).await?;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(session.ask("ping", json!({})).await?.status, StatusCode::OK, "what was held is given back");
    drop(idle);
    Ok(())
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_answer_has_its_line_and_its_count() -> Outcome {
    let target = ScriptedServer::start(script("hang", Behaviour::Hang)).await;
    let moored = Moored::serve(manifest::gateway_with([("a", target.url())])).await?;
    let session = moored.client()?.initialize().await?;
    let hasty = Client::new(&moored.url())?.with_deadline(Duration::from_millis(300));
    let request = session.request(Method::POST).body(call("1", "a___hang").into())?;
    assert!(matches!(hasty.send(request).await, Err(ClientError::Deadline(_))));
    drop(hasty);
    let labels = [("method", "tools/call"), ("outcome", "abandoned")];
    moored.until_metrics(|metrics| metrics.sum("mooring_requests_total", &labels) > 0.5).await?;
    let abandoned = |line: &Value| line.get("outcome") == Some(&json!("abandoned"));
    assert_eq!(moored.log().iter().filter(|line| abandoned(line)).count(), 1);
    Ok(())
}
