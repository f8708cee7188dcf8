//! Servers of others that speak stdio alone, as targets, with files for them to work on, and what they answer.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use super::{Environment, Packages, PeerError, install_packages, install_python, servers::own};
use crate::{
    folder::Folder,
    process::{self, SHORT},
};

/// When every commit is made, 2026-01-02 03:04:05.
const COMMITTED: &str = "1767323045 +0000";

/// The message of the first commit. The git of the command line ends messages with a line's end.
const FIRST: &str = "Begin the logbook\n";

/// Servers on stdio, installed, and a folder of files for them to work on.
#[derive(Debug)]
pub struct StdioServers {
    folder: Folder,
    commands: Vec<(&'static str, Vec<String>)>,
    /// What the git server says of the repository.
    history: String,
}

/// A call of a tool, as its name is written at the gateway, and what it answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What it says, as [`told`] reads it.
    pub answer: Value,
}

/// The text of a result: as JSON where it is, without the day that a time is of, since a zone is converted today.
pub fn told(text: &str) -> Value {
    let mut said: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    for place in ["/source", "/target"] {
        let Some(time) = said.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
        time.remove("day_of_week");
        let hour = time.get("datetime").and_then(Value::as_str).and_then(|time| time.split_once('T'));
        if let Some(hour) = hour.map(|(_, hour)| hour.to_owned()) {
            time.insert("datetime".to_owned(), hour.into());
        }
    }
    said
}

/// A time in a zone that never changes its clock, as [`told`] reads it.
pub fn time(zone: &str, hour: &str) -> Value {
    json!({"timezone": zone, "datetime": hour, "is_dst": false})
}

// === impl StdioServers ===

impl StdioServers {
    /// Installs them, and makes the files they work on: `hello.txt`, `harbour/boat.txt` and the git repository
    /// `repository`.
    pub async fn install() -> Result<Self, PeerError> {
        let packages = install_packages(Packages::Servers).await?;
        let python = install_python(Environment::Servers).await?;
        let folder = Folder::temporary("stdio-servers")?;
        std::fs::write(folder.path().join("hello.txt"), "ahoy from a file")?;
        std::fs::create_dir_all(folder.path().join("harbour"))?;
        std::fs::write(folder.path().join("harbour/boat.txt"), "a boat")?;
        let repository = folder.path().join("repository");
        make_repository(&repository).await?;
        let node = |server: &str, more: &[String]| {
            let entry = format!("node_modules/@modelcontextprotocol/server-{server}/dist/index.js");
            [own(&packages.node), own(&packages.npm.join(entry))].into_iter().chain(more.to_vec()).collect()
        };
        let commands = vec![
            ("memory", node("memory", &[])),
            ("filesystem", node("filesystem", &[own(folder.path())])),
            ("time", vec![own(&python.join("bin/mcp-server-time")), "--local-timezone=UTC".to_owned()]),
            (
                "git",
                vec![own(&python.join("bin/mcp-server-git")), "--repository".to_owned(), own(&repository)],
            ),
        ];
        let servers = Self { history: String::new(), folder, commands };
        let first = servers.logged(&servers.git(&["rev-parse", "HEAD"]).await?, FIRST);
        Ok(Self { history: format!("Commit history:\n{first}"), ..servers })
    }

    /// Each as a target of the gateway `tools`, as YAML.
    pub fn manifests(&self) -> String {
        self.commands.iter().map(|(name, _)| self.manifest(name, "")).collect()
    }

    /// One of them. `more` is what else `container` has, such as `, isolation: Shared`.
    pub fn manifest(&self, name: &str, more: &str) -> String {
        let command = self.commands.iter().find(|(known, _)| *known == name).map(|(_, command)| &**command);
        let variables = [
            ("MEMORY_FILE_PATH", own(&self.path("memory.jsonl"))),
            ("GIT_AUTHOR_NAME", "Ann".to_owned()),
            ("GIT_AUTHOR_EMAIL", "ann@boats.test".to_owned()),
            ("GIT_AUTHOR_DATE", COMMITTED.to_owned()),
            ("GIT_COMMITTER_DATE", COMMITTED.to_owned()),
        ];
        let env: Vec<Value> =
            variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let more = format!(", env: {}{more}", Value::from(env));
        crate::manifest::command(name, "tools", command.unwrap_or_default(), &more)
    }

    /// Where one of the files is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the real git says in the repository.
    pub async fn git(&self, arguments: &[&str]) -> Result<String, PeerError> {
        Ok(git(&self.path("repository"), arguments).await?.trim().to_owned())
    }

    /// A commit, as the git server writes it.
    pub fn logged(&self, hash: &str, message: &str) -> String {
        format!("Commit: {hash}\nAuthor: Ann\nDate: 2026-01-02 03:04:05+00:00\nMessage: {message}\n")
    }

    /// A call of each, by somebody: nobody writes down what is written down.
    pub fn calls(&self, who: &str) -> Vec<Call> {
        let sailors = json!([{"name": who, "entityType": "sailor", "observations": ["has a boat"]}]);
        let tokyo = json!({"source_timezone": "UTC", "time": "09:30", "target_timezone": "Asia/Tokyo"});
        let converted = json!({
            "source": time("UTC", "09:30:00+00:00"),
            "target": time("Asia/Tokyo", "18:30:00+09:00"),
            "time_difference": "+9.0h",
        });
        let (file, repository) = (self.path("hello.txt"), self.path("repository"));
        [
            ("memory___create_entities", json!({"entities": sailors}), sailors),
            ("filesystem___read_text_file", json!({"path": file}), "ahoy from a file".into()),
            ("time___convert_time", tokyo, converted),
            ("git___git_log", json!({"repo_path": repository}), self.history.as_str().into()),
        ]
        .map(|(tool, arguments, answer)| Call { tool: tool.to_owned(), arguments, answer })
        .into()
    }
}

/// A git repository with one commit.
async fn make_repository(folder: &Path) -> Result<(), PeerError> {
    std::fs::create_dir_all(folder)?;
    git(folder, &["init", "--quiet"]).await?;
    git(folder, &["commit", "--quiet", "--allow-empty", "-m", FIRST]).await.map(drop)
}

async fn git(folder: &Path, arguments: &[&str]) -> Result<String, PeerError> {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@boats.test"])
        .args(arguments);
    git.env("GIT_AUTHOR_DATE", COMMITTED).env("GIT_COMMITTER_DATE", COMMITTED);
    // The configuration of whoever runs the tests may sign commits, or ask.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    Ok(process::output(&mut git, SHORT).await?)
}
