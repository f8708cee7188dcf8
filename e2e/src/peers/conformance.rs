//! Runs the official conformance suite and reads its verdicts: one side against a server at a URL, the other against a
//! client of ours.

use std::{collections::BTreeMap, path::Path, time::Duration};

use tokio::process::Command;

use super::{NodePeers, Packages, PeerError, install_packages};
use crate::{
    folder::{self, Folder},
    process,
};

/// The revision whose frozen requirements are asked for.
pub const REVISION: &str = "2025-11-25";

/// How long the suite may take for all of one side.
const PATIENCE: Duration = Duration::from_mins(3);

/// What the suite thinks of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// The scenarios that [`REVISION`] requires, and whether each passed.
    pub required: BTreeMap<String, bool>,
    /// Those that were run and do not count.
    pub unscored: BTreeMap<String, bool>,
    /// All that the suite said.
    pub output: String,
}

/// Runs every scenario that [`REVISION`] has for servers against the one at a URL.
pub async fn judge_server(url: &str) -> Result<Verdicts, PeerError> {
    let (suite, results) = (Suite::install().await?, Folder::temporary("conformance")?);
    let mut command = suite.command("server", results.path());
    let (_, output) =
        process::attempt(command.args(["--url", url, "--requirements", REVISION]), PATIENCE).await?;
    Verdicts::read(output)
}

/// Runs one scenario for clients against the client of `e2e/conformance`, and returns whether it passed and what was said.
///
/// Where a `moored` binary is given, the client talks through a gateway of its own.
pub async fn judge_client(scenario: &str, moored: Option<&Path>) -> Result<(bool, String), PeerError> {
    let (suite, results) = (Suite::install().await?, Folder::temporary("conformance")?);
    let client = suite.0.npm.join("client.mjs");
    folder::put(&Packages::Conformance.folder().join("client.mjs"), &client)?;
    let mut command = suite.command("client", results.path());
    // The suite hands this to a shell.
    command.arg("--command").arg(format!("'{}' '{}'", suite.0.node.display(), client.display()));
    command.args(["--scenario", scenario, "--spec-version", REVISION]);
    if let Some(moored) = moored {
        command.env("GATEWAY", moored);
    }
    Ok(process::attempt(&mut command, PATIENCE).await?)
}

/// The suite, installed.
struct Suite(NodePeers);

impl Suite {
    async fn install() -> Result<Self, PeerError> {
        Ok(Self(install_packages(Packages::Conformance).await?))
    }

    fn command(&self, side: &str, results: &Path) -> Command {
        let mut command = Command::new(&self.0.node);
        command.arg(self.0.npm.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        command.arg(side).arg("--output-dir").arg(results);
        command
    }
}

// === impl Verdicts ===

impl Verdicts {
    /// The required scenarios that failed.
    pub fn failed(&self) -> Vec<&str> {
        self.required.iter().filter(|(_, passed)| !**passed).map(|(scenario, _)| scenario.as_str()).collect()
    }

    /// Reads the summary: a line a scenario, then, behind a headline, those among them that do not count.
    fn read(output: String) -> Result<Self, PeerError> {
        let Some((_, summary)) = output.split_once("=== SUMMARY ===") else {
            return Err(PeerError::Unreadable(output));
        };
        let (scored, unscored) = summary.split_once("Not scored").unwrap_or((summary, ""));
        let verdict = |line: &str| {
            let line = line.trim();
            let (passed, rest) = line
                .strip_prefix("\u{2713} ")
                .map(|rest| (true, rest))
                .or_else(|| line.strip_prefix("\u{2717} ").map(|rest| (false, rest)))?;
            Some((rest.split([':', ' ']).next()?.to_owned(), passed))
        };
        let unscored: BTreeMap<String, bool> = unscored.lines().filter_map(verdict).collect();
        let required = scored.lines().filter_map(verdict);
        let required = required.filter(|(scenario, _)| !unscored.contains_key(scenario)).collect();
        Ok(Self { required, unscored, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_with_what_does_not_count_apart() {
        let output = "noise\n=== SUMMARY ===\n\u{2713} ping: 2 passed, 0 failed\n\u{2717} tools-list: 1 passed, 1 failed\n\
            \u{2717} polling: 0 passed, 1 failed\n\nTotal: 3 passed, 2 failed\n\n\
            Not scored for 2025-11-25: 1 scenario(s) run, 1 failing.\n  \u{2717} polling (pending)\n";
        let verdicts = Verdicts::read(output.to_owned()).unwrap();
        assert_eq!(verdicts.failed(), ["tools-list"]);
        assert_eq!(verdicts.required.len(), 2);
        assert_eq!(verdicts.unscored, BTreeMap::from([("polling".to_owned(), false)]));
        assert!(Verdicts::read("it crashed".to_owned()).is_err());
    }
}
