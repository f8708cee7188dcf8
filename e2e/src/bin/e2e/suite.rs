//! `cargo e2e test`: every test of the repository, in order, each step with its time. A part that cannot run is a
//! failure that names what it lacks; nothing is skipped.

use std::path::PathBuf;

use e2e::{
    peers,
    process::{self, LONG, SHORT},
    settings,
};
use tokio::process::Command;

use crate::{
    Failure,
    args::Test,
    binaries::{self, cargo},
    console::{say, step},
    install,
    provider::Provider,
};

/// The version of cargo-deny that judges dependencies.
const CARGO_DENY: &str = "0.20.2";

/// Runs all of it, or with a filter the tests of that name alone.
pub(crate) async fn run(options: &Test) -> Result<(), Failure> {
    if options.filter.is_none() {
        checks().await?;
    }
    step("build moored", async { binaries::for_tests().await.map(drop) }).await?;
    let filter = options.filter.as_deref();
    step("unit and in-process tests", cargo_test(&["--workspace"], filter, &[])).await?;
    if filter.is_none() {
        step("fuzz targets over their seeds", fuzz_seeds()).await?;
    }
    step("install real peers", async { Ok(peers::install_all().await?) }).await?;
    for (name, test) in [
        ("real clients", "peers"),
        ("owners of sessions, by a real identity provider", "owners"),
        ("real clients, all that they can do", "peers_tour"),
        ("real clients, pages to open and tasks", "peers_asks"),
        ("real clients and servers on stdio", "peers_stdio"),
        ("conformance", "conformance"),
    ] {
        let test = ["--package", "e2e", "--features", "peers", "--test", test];
        // Each starts up to a dozen programs of others, which take a processor for themselves.
        step(name, cargo_test(&test, filter, &["--", "--test-threads=2"])).await?;
    }
    if options.no_cluster {
        say("the cluster tests were left out, as --no-cluster says");
        return Ok(());
    }
    on_a_cluster(options).await
}

/// Format, lints, documentation, dependencies.
async fn checks() -> Result<(), Failure> {
    let (fmt, lints) = (["fmt", "--all", "--check"], ["clippy", "--locked", "--workspace", "--all-targets"]);
    step("format", async { Ok(process::run(cargo().args(fmt), LONG).await?) }).await?;
    let deny_warnings = ["--all-features", "--", "--deny", "warnings"];
    step("lints", async { Ok(process::run(cargo().args(lints).args(deny_warnings), LONG).await?) }).await?;
    step("documentation", async {
        let mut doc = cargo();
        doc.args(["doc", "--locked", "--workspace", "--no-deps", "--all-features", "--quiet"]);
        Ok(process::run(doc.env("RUSTDOCFLAGS", "--deny warnings"), LONG).await?)
    })
    .await?;
    step("dependencies", dependencies()).await
}

/// The cluster tests, on a cluster that is taken down again if it was not up before.
async fn on_a_cluster(options: &Test) -> Result<(), Failure> {
    let provider = Provider::choose(&options.up.place).await;
    let was_up = provider.is_up().await?;
    let provider = install::install(&options.up).await?;
    let context = match &provider {
        Provider::Context(context) => Some(context.as_str()),
        Provider::Kind => Some("kind-mooring"),
        Provider::Throwaway => None,
    };
    let tested = step("cluster tests", async {
        let mut test = cargo();
        test.args(["test", "--locked", "--package", "e2e", "--features", "cluster", "--test", "cluster"]);
        // One at a time: some of them look at, or stop, the one operator.
        test.args(options.filter.as_deref()).args(["--", "--test-threads=1"]);
        test.envs(context.map(|context| ("MOORING_CONTEXT", context)));
        Ok(process::run(&mut test, LONG).await?)
    })
    .await;
    if !was_up && !options.keep {
        step("end the cluster", provider.end()).await?;
    }
    tested
        .map_err(|why| format!("{why} (see {})", settings::checkout().join("e2e-failures").display()).into())
}

/// Runs each fuzz target over its seeds and searches no further.
async fn fuzz_seeds() -> Result<(), Failure> {
    let folder = settings::checkout().join("fuzz");
    for target in ["envelope", "sse"] {
        let mut run = cargo();
        run.args(["run", "--locked", "--quiet", "--bin", target, "--", "-runs=0"])
            .arg(format!("corpus/{target}"));
        // Within its own target folder nothing of the workspace is built anew.
        run.current_dir(&folder).env("CARGO_TARGET_DIR", settings::target().join("fuzz"));
        process::run(&mut run, LONG).await?;
    }
    Ok(())
}

async fn cargo_test(what: &[&str], filter: Option<&str>, run: &[&str]) -> Result<(), Failure> {
    Ok(process::run(cargo().args(["test", "--locked"]).args(what).args(filter).args(run), LONG).await?)
}

/// Licences, bans and sources always; advisories where their database can be had.
async fn dependencies() -> Result<(), Failure> {
    let deny = cargo_deny().await?;
    let check = |what: &[&str]| {
        let mut command = Command::new(&deny);
        command.current_dir(settings::checkout()).args(["--log-level", "error", "check"]).args(what);
        command
    };
    process::run(&mut check(&["bans", "licenses", "sources"]), LONG).await?;
    let mut fetch = Command::new(&deny);
    if process::output(fetch.current_dir(settings::checkout()).args(["fetch", "db"]), SHORT).await.is_err() {
        say("the advisory database cannot be reached from here: advisories were NOT checked");
        return Ok(());
    }
    Ok(process::run(&mut check(&["advisories"]), LONG).await?)
}

/// cargo-deny: the one on the PATH if it is of the pinned version, else one in the cache.
async fn cargo_deny() -> Result<PathBuf, Failure> {
    let version = process::output(Command::new("cargo-deny").arg("--version"), SHORT).await;
    if version.is_ok_and(|version| version.contains(CARGO_DENY)) {
        return Ok("cargo-deny".into());
    }
    let root = settings::cache().join(format!("cargo-deny-{CARGO_DENY}"));
    let program = root.join("bin/cargo-deny");
    if !program.is_file() {
        say("cargo-deny is built once, which takes minutes");
        let mut install = Command::new("cargo");
        install.args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--quiet", "--root"]);
        // Built in a temporary place, not among the workspace's own artefacts.
        install.arg(&root).env_remove("CARGO_TARGET_DIR").current_dir(settings::checkout());
        process::run(&mut install, LONG)
            .await
            .map_err(|why| format!("cargo-deny cannot be installed: {why}"))?;
    }
    Ok(program)
}
