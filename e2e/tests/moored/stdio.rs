//! Targets that are local processes on stdio: what they say reaches their session, and what they print besides does no
//! harm.

use std::collections::BTreeMap;

use e2e::{
    client::{Answer, ClientError, Events, Session},
    manifest,
    moored::Moored,
    process,
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Duration};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");
const PATIENCE: Duration = Duration::from_secs(30);

async fn serve(arguments: &[&str], more: &str) -> Result<Moored, Box<dyn std::error::Error>> {
    let command: Vec<&str> = [SERVER].into_iter().chain(arguments.iter().copied()).collect();
    let target = manifest::command("a", "tools", &command, more);
    Ok(Moored::serve(manifest::gateway("tools") + &target).await?)
}

async fn text(session: &Session, tool: &str) -> Result<String, Box<dyn std::error::Error>> {
    let answer = session.call(&format!("a___{tool}"), json!({})).await?;
    Ok(answer.tool_text().ok_or_else(|| answer.unexpected())?)
}

/// The resource that the stream says next has changed.
async fn updated(stream: &mut Events) -> Result<Value, Box<dyn std::error::Error>> {
    loop {
        let message = stream.next_message().await?.ok_or("the stream has ended")?;
        if message.get("method").is_some_and(|method| method == "notifications/resources/updated") {
            return Ok(message.pointer("/params/uri").cloned().unwrap_or_default());
        }
    }
}

/// Whether the daemon's log has such an entry about the target.
fn logged(moored: &Moored, message: &str) -> bool {
    moored.log().iter().any(|entry| {
        let text = entry.to_string();
        text.contains(message) && text.contains("\"server\":\"a\"")
    })
}

/// Case 004, on stdio.
#[tokio::test]
async fn sessions_have_a_process_each_and_what_one_does_the_other_does_not_see() -> Outcome {
    let moored = serve(&[], "").await?;
    let (one, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
    for count in ["1", "2", "3"] {
        assert_eq!(text(&one, "increment").await?, count);
    }
    assert_eq!(text(&other, "read").await?, "0");
    assert_ne!(text(&one, "pid").await?, text(&other, "pid").await?);
    other.delete().await?;
    assert_eq!(text(&one, "read").await?, "3");
    Ok(())
}

/// Case 008, on stdio.
#[tokio::test]
async fn first_calls_that_race_share_one_process() -> Outcome {
    let moored = serve(&[], "").await?;
    let session = moored.client()?.initialize().await?;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let session = session.clone();
        calls.spawn(async move { text(&session, "pid").await.map_err(|error| error.to_string()) });
    }
    let mut pids = Vec::new();
    while let Some(pid) = calls.join_next().await {
        pids.push(pid??);
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    Ok(())
}

#[tokio::test]
async fn sessions_of_a_shared_process_meet_in_it_and_their_equal_ids_do_not() -> Outcome {
    let moored = serve(&[], ", isolation: Shared").await?;
    let (one, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
    assert_eq!(text(&one, "increment").await?, "1");
    assert_eq!(text(&other, "read").await?, "1");
    let hold = |session: &Session| {
        let session = session.clone();
        let call =
            json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": "a___hold"}});
        async move { session.post(call.to_string()).await }
    };
    let mut held: JoinSet<(usize, Result<Answer, ClientError>)> = JoinSet::new();
    for (at, session) in [&one, &other].into_iter().enumerate() {
        let call = hold(session);
        held.spawn(async move { (at, call.await) });
    }
    // Released again until both have come: nobody tells when the process has read them.
    let mut numbers = BTreeMap::new();
    while numbers.len() < 2 {
        assert_eq!(text(&one, "release").await?, "released");
        let Ok(Some(done)) = tokio::time::timeout(Duration::from_millis(200), held.join_next()).await else {
            continue;
        };
        let (at, answer) = done?;
        let answer = answer?;
        assert_eq!(answer.response()["id"], "same", "each gets its own id back");
        numbers.insert(at, answer.tool_text());
    }
    assert_ne!(numbers.get(&0), numbers.get(&1), "the process knew them apart: {numbers:?}");
    // The process outlives its sessions.
    one.delete().await?;
    other.delete().await?;
    let third = moored.client()?.initialize().await?;
    assert_eq!(text(&third, "read").await?, "1");
    Ok(())
}

#[tokio::test]
async fn of_the_sessions_of_a_shared_process_only_those_that_subscribed_hear_of_a_change() -> Outcome {
    let moored = serve(&[], ", isolation: Shared").await?;
    let (one, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
    let (mut first, mut second) = (one.get().await?, other.get().await?);
    let board = || json!({"uri": "memo:///board"});
    one.ask("resources/subscribe", board()).await?;
    text(&other, "touch").await?;
    other.ask("resources/subscribe", board()).await?;
    text(&other, "touch").await?;
    // What one takes back the other keeps.
    let answer = one.ask("resources/unsubscribe", board()).await?;
    assert_eq!(answer.response()["result"], json!({}));
    text(&other, "touch").await?;
    for (stream, told) in [(&mut first, ["1", "2"]), (&mut second, ["2", "3"])] {
        for number in told {
            assert_eq!(updated(stream).await?, format!("memo:///board/{number}"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_process_gets_a_home_of_its_own_and_nothing_of_ours_but_what_every_program_needs() -> Outcome {
    let moored =
        serve(&[], ", env: [{name: GREETING, value: hello}, {name: BOTH, value: '$(GREETING) you'}]").await?;
    let (one, other) = (moored.client()?.initialize().await?, moored.client()?.initialize().await?);
    let of = async |session| {
        Ok::<BTreeMap<String, String>, Box<dyn std::error::Error>>(serde_json::from_str(
            &text(session, "env").await?,
        )?)
    };
    let (first, second) = (of(&one).await?, of(&other).await?);
    let own = std::env::home_dir().unwrap_or_default();
    for env in [&first, &second] {
        let mut names: Vec<&str> = env.keys().map(String::as_str).filter(|name| *name != "LANG").collect();
        names.retain(|name| !name.starts_with('('));
        assert_eq!(names, ["BOTH", "GREETING", "HOME", "PATH", "TMPDIR"]);
        assert_eq!(env["BOTH"], "hello you");
        assert_eq!(env["(folder)"], env["HOME"]);
        assert_ne!(std::path::Path::new(&env["HOME"]), own);
    }
    assert_ne!(first["HOME"], second["HOME"]);
    assert_ne!(first["TMPDIR"], second["TMPDIR"]);
    assert!(std::path::Path::new(&first["TMPDIR"]).is_dir());
    one.delete().await?;
    let gone = async || (!std::path::Path::new(&first["HOME"]).exists()).then_some(());
    process::poll(PATIENCE, gone).await.ok_or("the folder stays")?;
    Ok(())
}

/// Case 041.
#[tokio::test]
async fn noise_on_stdout_and_chatter_on_stderr_do_no_harm() -> Outcome {
    let moored = serve(&["--noise"], "").await?;
    let session = moored.client()?.initialize().await?;
    assert_eq!(session.tools().await?.len(), 14);
    assert_eq!(text(&session, "half").await?, "whole");
    assert_eq!(text(&session, "shout").await?, "hoarse");
    assert_eq!(text(&session, "long").await?.len(), 2 << 20);
    assert_eq!(text(&session, "increment").await?, "1", "it was one process all the time");
    assert!(logged(&moored, "is no message is skipped"), "{:?}", moored.log());
    assert!(logged(&moored, "over the limit"), "{:?}", moored.log());
    assert!(logged(&moored, "stderr"), "{:?}", moored.log());
    let shouted = moored.log().iter().filter(|entry| entry.to_string().contains("shouting")).count();
    assert!(shouted < 200, "10,240 lines on stderr, and {shouted} in the log");
    Ok(())
}

#[tokio::test]
async fn what_comes_alone_is_json_and_progress_comes_before_its_answer_on_the_calls_stream() -> Outcome {
    let moored = serve(&[], "").await?;
    let session = moored.client()?.initialize().await?;
    assert!(!session.call("a___read", json!({})).await?.is_stream());
    let params = json!({"name": "a___progress", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let answer = session.ask("tools/call", params).await?;
    assert!(answer.is_stream());
    let messages = answer.messages();
    let steps: Vec<&Value> =
        messages.iter().filter_map(|message| message.pointer("/params/progress")).collect();
    assert_eq!(steps, [&json!(1), &json!(2), &json!(3)]);
    assert!(messages.iter().all(|message| {
        message.pointer("/params/progressToken").is_none_or(|token| *token == json!("mine"))
    }));
    assert_eq!(answer.tool_text().as_deref(), Some("done"));
    Ok(())
}

#[tokio::test]
async fn what_a_process_says_of_no_request_comes_on_the_sessions_own_stream_and_not_on_a_calls() -> Outcome {
    let moored = serve(&[], "").await?;
    let session = moored.client()?.initialize().await?;
    let mut stream = session.get().await?;
    let answer = session.call("a___touch", json!({})).await?;
    assert!(!answer.is_stream(), "{}", answer.text());
    assert_eq!(updated(&mut stream).await?, "memo:///board/1");
    Ok(())
}

/// Nobody reads a stream of the session's, and its own list is not an old one all the same.
#[tokio::test]
async fn a_list_of_the_sessions_own_follows_its_process_without_a_stream_of_the_clients() -> Outcome {
    let target =
        manifest::command("a", "tools", &[SERVER], "").replace("spec: {", "spec: {listing: PerSession, ");
    let moored = Moored::serve(manifest::gateway("tools") + &target).await?;
    let session = moored.client()?.initialize().await?;
    assert!(!session.tools().await?.contains(&"a___grown0".to_owned()));
    assert_eq!(text(&session, "grow").await?, "changed");
    let listed = async || session.tools().await.ok()?.contains(&"a___grown0".to_owned()).then_some(());
    process::poll(PATIENCE, listed).await.ok_or("the list is as it was")?;
    Ok(())
}

#[tokio::test]
async fn a_process_that_dies_says_how_and_why_and_its_session_is_gone() -> Outcome {
    let moored = serve(&[], "").await?;
    let session = moored.client()?.initialize().await?;
    text(&session, "increment").await?;
    let answer = session.call("a___die", json!({})).await?;
    assert_eq!(answer.error_code(), Some(-32603));
    let message = answer.response()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("exit status: 7") && message.contains("fatal: out of weather"), "{message}");
    let next = session.call("a___read", json!({})).await?;
    assert_eq!(next.status, StatusCode::NOT_FOUND);
    assert_eq!(next.response()["error"]["data"]["target"], "a");
    // A new session is the documented way back.
    let again = moored.client()?.initialize().await?;
    assert_eq!(text(&again, "read").await?, "0");
    Ok(())
}

#[tokio::test]
async fn a_process_that_cannot_begin_a_session_is_named_to_the_caller() -> Outcome {
    for (handshake, seconds, told) in
        [("die", 5, "no module named weather"), ("refuse", 5, "not you"), ("ignore", 2, "2 s")]
    {
        let target = manifest::command("a", "tools", &[SERVER, "--handshake", handshake], "")
            .replace("spec: {", &format!("spec: {{timeouts: {{connectSeconds: {seconds}}}, "));
        let moored = Moored::serve(manifest::gateway("tools") + &target).await?;
        let session = moored.client()?.initialize().await?;
        let answer = session.call("a___read", json!({})).await?;
        let error = answer.response()["error"].to_string();
        assert!(error.contains(told), "{handshake}: {error}");
    }
    let target = manifest::command("a", "tools", &["no-such-program-anywhere"], "");
    let moored = Moored::serve(manifest::gateway("tools") + &target).await?;
    let session = moored.client()?.initialize().await?;
    let error = session.call("a___read", json!({})).await?.response()["error"].to_string();
    assert!(error.contains("cannot be started"), "{error}");
    Ok(())
}
