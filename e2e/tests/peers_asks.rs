//! What servers ask for besides forms and models, by a client that knows it: pages that the user is to open, and tasks
//! (2025-11-25, experimental) of both sides, whose ids the gateway rewrites for the one side and not for the other.
//! server-everything offers both; that a page was read only the conformance server says.

use e2e::{
    manifest,
    moored::Moored,
    peers::{EverythingServer, FixtureServer, Peer},
};
use serde::Deserialize;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LINK: &str = "everything___trigger-url-elicitation";

#[tokio::test]
async fn pages_are_opened_refused_and_required_first_and_their_end_is_told() -> Outcome {
    let (everything, fixture) = (EverythingServer::start().await?, FixtureServer::start().await?);
    let targets = [("everything", everything.url()), ("fixture", fixture.url())];
    let moored = Moored::serve(manifest::gateway_with(targets)).await?;
    let what = json!({"everything": "everything___", "fixture": "fixture___"});
    let seen: Value = Peer::TypeScript1.does("links", &moored.url(), &what).await?;
    let (harbour, consent) = ("https://boats.test/harbour", "https://boats.test/consent");
    let asked = json!([
        ["url", harbour, "accepted"],
        ["url", harbour, "declined"],
        ["url", harbour, "later"],
        ["url", consent, "within"],
        ["url", consent, "apart"],
    ]);
    assert_eq!(seen["asked"], asked);
    let completed = |id: &str| {
        format!("\u{2705} User completed the URL elicitation flow.\nElicitation ID: {id}\nURL: {harbour}")
    };
    assert_eq!(seen["accepted"], completed("accepted"));
    assert_eq!(seen["declined"], "\u{274c} User declined to open the URL (Elicitation ID: declined).");
    // The error names what must be opened before the call is made again.
    let required = json!({"code": -32042, "elicitations": [["url", "https://modelcontextprotocol.io"]]});
    assert_eq!(seen["required"], required);
    assert_eq!(seen["retried"], completed("later"));
    assert_eq!(seen["opened"], json!(["action=accept", "action=accept"]));
    // One on the call's own stream, one on the session's.
    let mut told: Vec<Value> = seen["completed"].as_array().cloned().unwrap_or_default();
    told.sort_by_key(Value::to_string);
    assert_eq!(told, ["apart", "within"]);
    Ok(())
}

#[tokio::test]
async fn a_client_that_opens_no_pages_is_offered_no_tool_that_needs_one() -> Outcome {
    let everything = EverythingServer::start().await?;
    let moored = Moored::serve(manifest::gateway_with([("everything", everything.url())])).await?;
    for (elicitation, offered) in
        [(json!({}), false), (json!({"form": {}}), false), (json!({"url": {}}), true)]
    {
        let session = moored.client()?.initialize_as(json!({"elicitation": elicitation})).await?;
        assert_eq!(session.tools().await?.iter().any(|tool| tool == LINK), offered, "{elicitation}");
    }
    Ok(())
}

/// What a client saw of a task that asks on its way, of one that it cancelled, and of one that it ran itself.
#[derive(Debug, Deserialize)]
struct Tasks {
    /// The first task, what it was said to be until its end, and the first line of its result, twice.
    created: String,
    statuses: Vec<String>,
    report: String,
    result: String,
    /// The second, what the cancellation said of it, and what it was then.
    second: String,
    cancelled: String,
    afterwards: String,
    /// All tasks and what they are.
    listed: Vec<(String, String)>,
    /// The code of the error about a task that is not there.
    unknown: i64,
    /// The tasks that questions were asked for: the server's, and then the client's own.
    asked: (String, String),
    /// What the server says that has waited for the client's.
    answered: Vec<String>,
}

async fn assert_tasks(moored: &Moored, target: &str) -> Outcome {
    let what = json!({"everything": format!("{target}___")});
    let seen: Tasks = Peer::TypeScript1.does("tasks", &moored.url(), &what).await?;
    let has_target = |id: &str| id.starts_with(&format!("{target}:"));
    assert!(has_target(&seen.created) && has_target(&seen.second), "{seen:?}");
    assert!(seen.asked.0 == seen.created && !has_target(&seen.asked.1), "{seen:?}");
    assert_eq!(seen.statuses, ["working", "input_required"], "its result is waited for then");
    let report = "# Research Report: boats (historical)";
    assert_eq!((&*seen.report, &*seen.result), (report, report));
    assert_eq!((&*seen.cancelled, &*seen.afterwards), ("cancelled", "cancelled"));
    let listed = [(seen.created, "completed".to_owned()), (seen.second, "cancelled".to_owned())];
    assert_eq!(seen.listed, listed);
    assert_eq!(seen.unknown, -32602);
    let answered = [
        "[COMPLETED] User provided the requested information!",
        "User inputs:\n- Name: Ann\n- Favorite Color: Blue\n- Agreed to terms: true",
    ];
    assert_eq!(seen.answered, answered);
    Ok(())
}

#[tokio::test]
async fn tasks_of_both_sides_run_to_their_ends_over_each_transport() -> Outcome {
    let (everything, old) = (EverythingServer::start().await?, EverythingServer::start_sse().await?);
    let old_target =
        manifest::target("old", "tools", &old.url()).replace("server: {", "protocol: SSE, server: {");
    let local = manifest::command("local", "tools", &EverythingServer::command().await?, "");
    let targets = [manifest::gateway_with([("everything", everything.url())]), old_target, local];
    let moored = Moored::serve(targets.concat()).await?;
    // Beside each other: they wait for the server's pace.
    tokio::try_join!(
        assert_tasks(&moored, "everything"),
        assert_tasks(&moored, "old"),
        assert_tasks(&moored, "local"),
    )?;
    Ok(())
}
