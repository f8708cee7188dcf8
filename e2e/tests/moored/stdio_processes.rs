//! Case 040: however a session ends, none of its processes is left, wrappers, children of theirs and zombies included.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    client::Session,
    folder::Folder,
    manifest,
    moored::{Moored, Signal, Start},
    process,
    processes::{self, Seen},
};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");
const PATIENCE: Duration = Duration::from_secs(25);
const SESSIONS: usize = 20;

/// A shell around the server that starts a child beside it: what a signal to the shell alone would leave behind.
const WRAPPED: &str = "sleep 1000 & \"$0\" --mark \"$1\"; exit $?";
/// The same where neither the end of input nor SIGTERM helps.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & \"$0\" --ignore-end --mark \"$1\"; exit $?";

struct Watched {
    moored: Moored,
    mark: String,
}

async fn serve(
    script: &str,
    name: &str,
    gateway: &str,
    arguments: &[&str],
) -> Result<Watched, Box<dyn std::error::Error>> {
    let mark = format!("mark-{name}-{}", std::process::id());
    let target = manifest::command("a", "tools", &["sh", "-c", script, SERVER, &mark], "");
    let manifests = manifest::gateway("tools").replace("spec: {", gateway) + &target;
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let moored = Moored::start(Start { manifests, arguments }).await?;
    Ok(Watched { moored, mark })
}

impl Watched {
    /// Sessions that have called the target, each with a process of its own.
    async fn sessions(&self) -> Result<Vec<Session>, Box<dyn std::error::Error>> {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let session = self.moored.client()?.initialize().await?;
            let answer = session.call("a___increment", json!({})).await?;
            assert_eq!(answer.tool_text().as_deref(), Some("1"), "{}", answer.text());
            sessions.push(session);
        }
        Ok(sessions)
    }

    /// The groups of all processes of the target, which are more than the marked ones.
    fn groups(&self) -> Vec<u32> {
        let groups: BTreeSet<u32> = processes::marked(&self.mark).iter().map(|seen| seen.group).collect();
        groups.into_iter().collect()
    }

    /// Waits until so many groups are left, and none of the others' processes.
    async fn until_left(&self, groups: &[u32], most: usize) -> Outcome {
        let left = async || {
            let alive: BTreeSet<u32> = processes::in_groups(groups).iter().map(|seen| seen.group).collect();
            let zombies = self.moored.pid().map(processes::zombies_of).unwrap_or_default();
            (alive.len() <= most && zombies.is_empty()).then_some(())
        };
        process::poll(PATIENCE, left).await.ok_or_else(|| {
            let seen: Vec<Seen> = processes::in_groups(groups);
            format!("{} processes are left: {seen:?}", seen.len())
        })?;
        Ok(())
    }
}

const PLAIN: &str = "spec: {";

#[tokio::test]
async fn none_is_left_of_sessions_that_their_clients_delete() -> Outcome {
    let watched = serve(WRAPPED, "deleted", PLAIN, &[]).await?;
    let sessions = watched.sessions().await?;
    let groups = watched.groups();
    assert!(groups.len() >= SESSIONS, "{groups:?}");
    for session in &sessions {
        session.delete().await?;
    }
    // The catalogue's session has one, too, and lives on.
    watched.until_left(&groups, 1).await
}

#[tokio::test]
async fn none_is_left_of_sessions_whose_clients_vanish_once_their_time_is_over() -> Outcome {
    let gateway = "spec: {session: {timeoutSeconds: 4}, ";
    let watched = serve(WRAPPED, "vanished", gateway, &["--session-timeout-min", "1"]).await?;
    drop(watched.sessions().await?);
    let groups = watched.groups();
    watched.until_left(&groups, 1).await
}

#[tokio::test]
async fn none_is_left_of_handshakes_that_fail() -> Outcome {
    for handshake in ["die", "refuse", "ignore"] {
        // Each writes down its group ($$, doubled as a command wants it): one that ends at once is seen in no list.
        let folder = Folder::temporary("handshakes")?;
        let begun = folder.path().join("groups");
        let script = format!(
            "echo $$$$ >> '{}'; sleep 1000 & \"$0\" --handshake {handshake} --mark \"$1\"; exit $?",
            begun.display()
        );
        let watched = serve(&script, handshake, PLAIN, &[]).await?;
        let session = watched.moored.client()?.initialize().await?;
        let answer = session.call("a___read", json!({})).await?;
        assert_eq!(answer.error_code(), Some(-32603));
        let begun = std::fs::read_to_string(&begun)?;
        let groups = begun.lines().map(str::parse).collect::<Result<Vec<u32>, _>>()?;
        assert!(!groups.is_empty(), "no process began");
        watched.until_left(&groups, 0).await?;
    }
    Ok(())
}

#[tokio::test]
async fn none_is_left_of_a_daemon_that_is_told_to_end() -> Outcome {
    let mut watched = serve(WRAPPED, "terminated", PLAIN, &[]).await?;
    let _sessions = watched.sessions().await?;
    let groups = watched.groups();
    watched.moored.signal(Signal::Terminate).await?;
    assert_eq!(watched.moored.ended().await?.code(), Some(0));
    // Not a moment later: the daemon ends behind its processes.
    assert_eq!(processes::in_groups(&groups), []);
    Ok(())
}

#[tokio::test]
async fn none_is_left_of_a_daemon_that_has_no_time() -> Outcome {
    let gateway = "spec: {drain: {deadlineSeconds: 1}, ";
    let mut watched = serve(STUBBORN, "hurried", gateway, &[]).await?;
    let _sessions = watched.sessions().await?;
    let groups = watched.groups();
    watched.moored.signal(Signal::Terminate).await?;
    watched.moored.ended().await?;
    watched.until_left(&groups, 0).await
}

#[tokio::test]
async fn a_killed_daemons_processes_end_with_their_input() -> Outcome {
    let mut watched = serve("exec \"$0\" --mark \"$1\"", "killed", PLAIN, &[]).await?;
    let _sessions = watched.sessions().await?;
    let groups = watched.groups();
    assert!(groups.len() >= SESSIONS, "{groups:?}");
    watched.moored.signal(Signal::Kill).await?;
    watched.moored.ended().await?;
    watched.until_left(&groups, 0).await
}

#[tokio::test]
async fn neither_the_end_of_input_nor_sigterm_ends_it_and_it_ends_all_the_same() -> Outcome {
    let watched = serve(STUBBORN, "stubborn", PLAIN, &[]).await?;
    let session = watched.moored.client()?.initialize().await?;
    session.call("a___increment", json!({})).await?;
    let groups = watched.groups();
    session.delete().await?;
    watched.until_left(&groups, 1).await
}
