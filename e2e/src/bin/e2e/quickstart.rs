//! `cargo e2e quickstart`: the daemon with an example behind it, on this machine, until Ctrl-C.

use std::{path::Path, time::Duration};

use e2e::{client::Client, process, settings};
use tokio::process::{Child, Command};

use crate::{
    Failure, binaries,
    console::{say, step},
};

/// Where the quickstart serves MCP; `examples/quickstart.yaml` names the example server's address.
const ADDRESS: &str = "127.0.0.1:8080";

/// How long both may take until a session can begin, once they are built.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long each may take to end.
const GRACE: Duration = Duration::from_secs(40);

/// Builds, starts, says what to do, waits for the end, and ends both.
pub(crate) async fn run() -> Result<(), Failure> {
    let programs = step("build moored and the example server", binaries::for_tests()).await?;
    let manifests = settings::checkout().join("examples/quickstart.yaml");
    let mut example = start(&programs.example_server, &[])?;
    let serve = ["serve".as_ref(), manifests.as_path(), "--listen".as_ref(), ADDRESS.as_ref()];
    let mut moored = start(&programs.moored, &serve)?;
    let outcome = tokio::select! {
        told = process::told_to_end() => told.map_err(Failure::from),
        ended = moored.wait() => Err(format!("moored ended by itself: {}", ended?).into()),
        ended = example.wait() => Err(format!("the example server ended by itself: {}", ended?).into()),
        failure = serve_until_told() => failure,
    };
    say("ending");
    end(&mut moored).await?;
    end(&mut example).await?;
    outcome
}

/// Says what to paste once a session can begin; then waits for ever.
async fn serve_until_told() -> Result<(), Failure> {
    let client = Client::new(&format!("http://{ADDRESS}/mcp"))?;
    let works = async || {
        let session = client.initialize().await.ok()?;
        let tools = session.tools().await.ok().filter(|tools| !tools.is_empty());
        session.delete().await.ok().and(tools)
    };
    let tools = process::poll(PATIENCE, works).await;
    let tools =
        tools.ok_or_else(|| format!("no session with tools at http://{ADDRESS}/mcp in {PATIENCE:?}"))?;
    say(&format!("\nServing {} at http://{ADDRESS}/mcp. In a second terminal:\n", tools.join(", ")));
    say(PASTE);
    say("\nCtrl-C ends both.\n");
    std::future::pending().await
}

fn start(program: &Path, arguments: &[&Path]) -> Result<Child, Failure> {
    // A process group of their own: Ctrl-C reaches them through us alone, in our order.
    let child = Command::new(program).args(arguments).kill_on_drop(true).process_group(0).spawn();
    child.map_err(|why| format!("{}: {why}", program.display()).into())
}

async fn end(child: &mut Child) -> Result<(), Failure> {
    let Some(pid) = child.id() else { return Ok(()) };
    process::signal(pid, false).await?;
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        return Err(format!("process {pid} did not end within {GRACE:?} and is killed").into());
    }
    Ok(())
}

/// The same lines as in the README; a test holds the two together and runs them.
const PASTE: &str = include_str!("../../../../examples/quickstart.sh");
