//! What servers ask for besides forms and models, by a client that knows it: pages that the user is to open, and tasks
//! (2025-11-25, experimental) of both sides, whose ids the gateway rewrites for the one side and not for the other.
//! server-everything offers both; that a page was read only the conformance server says.

use std::collections::BTreeSet;

use e2e::{
    manifest,
    moored::Moored,
    peers::{EverythingServer, FixtureServer, Peer},
};
use serde::Deserialize;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LINK: &str = "everything___trigger-url-elicitation";

/// server-everything over each transport, as `everything`, `old` and `local`, and another target.
async fn over_each_transport(
    other: &str,
) -> Result<(Moored, [EverythingServer; 2]), Box<dyn std::error::Error>> {
    let (everything, old) = (EverythingServer::start().await?, EverythingServer::start_sse().await?);
    let old_target =
        manifest::target("old", "tools", &old.url()).replace("server: {", "protocol: SSE, server: {");
    let local = manifest::command("local", "tools", &EverythingServer::command().await?, "");
    let targets =
        [manifest::gateway_with([("everything", everything.url())]), old_target, local, other.to_owned()];
    Ok((Moored::serve(targets.concat()).await?, [everything, old]))
}

/// What a client saw of the pages that it was sent to.
#[derive(Debug, Deserialize)]
struct Pages {
    /// The mode, the page and the id of each.
    asked: Vec<(String, String, String)>,
    /// What server-everything says of a page that was opened, and of one that was not.
    accepted: String,
    declined: String,
    /// Its error that names what must be opened first, and what it says when that was done.
    required: Value,
    retried: String,
    /// What the conformance server says, and the pages of which it says apart that they were read.
    opened: Vec<String>,
    completed: BTreeSet<String>,
}

/// A client opens pages of a server-everything and of the conformance server.
async fn assert_pages(moored: &Moored, target: &str) -> Outcome {
    let what = json!({"everything": format!("{target}___"), "fixture": "fixture___"});
    let seen: Pages = Peer::TypeScript1.does("links", &moored.url(), &what).await?;
    let (harbour, consent) = ("https://boats.test/harbour", "https://boats.test/consent");
    let asked = [
        ("url", harbour, "accepted"),
        ("url", harbour, "declined"),
        ("url", harbour, "later"),
        ("url", consent, "within"),
        ("url", consent, "apart"),
    ];
    assert!(seen.asked.iter().map(|(mode, page, id)| (&**mode, &**page, &**id)).eq(asked), "{seen:?}");
    let completed = |id: &str| {
        format!("\u{2705} User completed the URL elicitation flow.\nElicitation ID: {id}\nURL: {harbour}")
    };
    assert_eq!(seen.accepted, completed("accepted"));
    assert_eq!(seen.declined, "\u{274c} User declined to open the URL (Elicitation ID: declined).");
    let required = json!({"code": -32042, "elicitations": [["url", "https://modelcontextprotocol.io"]]});
    assert_eq!(seen.required, required);
    assert_eq!(seen.retried, completed("later"));
    assert_eq!(seen.opened, ["action=accept", "action=accept"]);
    // One was told on the call's own stream, one on the session's.
    assert!(seen.completed.iter().eq(["apart", "within"]), "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn pages_are_opened_refused_and_required_first_and_their_end_is_told_over_each_transport() -> Outcome {
    let fixture = FixtureServer::start().await?;
    let (moored, _servers) =
        over_each_transport(&manifest::target("fixture", "tools", &fixture.url())).await?;
    for target in ["everything", "old", "local"] {
        assert_pages(&moored, target).await?;
    }
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
    /// The tasks that questions were asked for: the server's, and then the client's own, where it can have any.
    asked: Vec<String>,
    /// What the server says that has waited for the client's.
    #[serde(default)]
    answered: Vec<String>,
}

/// What a client saw of the tasks at a target.
async fn tasks(peer: Peer, moored: &Moored, target: &str) -> Result<Tasks, Box<dyn std::error::Error>> {
    let what = json!({"everything": format!("{target}___")});
    let seen: Tasks = peer.does("tasks", &moored.url(), &what).await?;
    let has_target = |id: &str| id.starts_with(&format!("{target}:"));
    assert!(has_target(&seen.created) && has_target(&seen.second), "{seen:?}");
    assert_eq!(seen.asked.first(), Some(&seen.created));
    assert!(!seen.asked.iter().skip(1).any(|own| has_target(own)), "{seen:?}");
    assert_eq!(seen.statuses, ["working", "input_required"], "its result is waited for then");
    let report = "# Research Report: boats (historical)";
    assert_eq!((&*seen.report, &*seen.result), (report, report));
    assert_eq!((&*seen.cancelled, &*seen.afterwards), ("cancelled", "cancelled"));
    let listed = [(&seen.created, "completed"), (&seen.second, "cancelled")];
    assert!(seen.listed.iter().map(|(id, status)| (id, &**status)).eq(listed), "{seen:?}");
    assert_eq!(seen.unknown, -32602);
    Ok(seen)
}

#[tokio::test]
async fn tasks_of_both_sides_run_to_their_ends_over_each_transport() -> Outcome {
    let (moored, _servers) = over_each_transport("").await?;
    // Beside each other: they wait for the server's pace.
    let by = |peer| {
        let moored = &moored;
        let of = move |target| tasks(peer, moored, target);
        async move { tokio::try_join!(of("everything"), of("old"), of("local")) }
    };
    let ((http, sse, stdio), _) = tokio::try_join!(by(Peer::TypeScript1), by(Peer::Python1))?;
    // Of the two, the first alone runs tasks for servers.
    for seen in [http, sse, stdio] {
        assert_eq!(seen.asked.len(), 2, "{seen:?}");
        let answered = [
            "[COMPLETED] User provided the requested information!",
            "User inputs:\n- Name: Ann\n- Favorite Color: Blue\n- Agreed to terms: true",
        ];
        assert_eq!(seen.answered, answered);
    }
    Ok(())
}

#[tokio::test]
async fn a_question_outlives_another_call_that_ends_meanwhile_over_each_transport() -> Outcome {
    let (moored, _servers) = over_each_transport("").await?;
    for target in ["everything", "old", "local"] {
        let what = json!({"everything": format!("{target}___")});
        let said: Vec<(String, String)> = Peer::TypeScript1.does("together", &moored.url(), &what).await?;
        for (asked, echo) in said {
            assert_eq!(echo, "Echo: ahoy", "{target}");
            assert_eq!(asked, "\u{2705} User provided the requested information!", "{target}");
        }
    }
    Ok(())
}
