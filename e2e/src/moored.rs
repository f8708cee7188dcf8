//! Runs the daemon as a black box: `moored serve` on free ports, its log and its metrics read from outside.
//! A daemon ends with the value that stands for it.

mod log;
mod metrics;

use std::{io, net::SocketAddr, path::PathBuf, process::ExitStatus, time::Duration};

use http::{Method, StatusCode};
use tokio::{process::Child, time::timeout};

use self::log::Log;
pub use self::metrics::Metrics;
use crate::{
    client::{Answer, Client, ClientError},
    folder::Folder,
    process, settings,
};

/// How long the daemon may take to listen, to be ready, and to end once it should.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no daemon to test.
#[derive(Debug, thiserror::Error)]
pub enum MooredError {
    /// There is no binary.
    #[error("no moored binary: `cargo build -p moored` first, or name one in MOORING_MOORED_BIN")]
    NoBinary,
    /// A file or process could not be made.
    #[error("moored could not be run")]
    Io(#[from] io::Error),
    /// It cannot be signalled.
    #[error("moored cannot be told to end")]
    Signal(#[from] process::ProcessError),
    /// It ended, or never listened.
    #[error("moored did not start ({0}); its log:\n{1}")]
    NotStarted(String, String),
    /// It does not answer on its health port.
    #[error("moored does not answer")]
    Client(#[from] ClientError),
    /// Something it should do did not come.
    #[error("waited {PATIENCE:?} in vain for moored to {0}")]
    Overdue(&'static str),
}

/// How to start a daemon.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The manifests, as YAML.
    pub manifests: String,
    /// Further arguments of `moored serve`.
    pub arguments: Vec<String>,
}

/// A running `moored serve`.
#[derive(Debug)]
pub struct Moored {
    child: Child,
    address: SocketAddr,
    health: SocketAddr,
    log: Log,
    _folder: Folder,
}

/// A signal that ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ends it in order.
    Terminate,
    /// Ends it at once.
    Kill,
}

// === impl Moored ===

impl Moored {
    /// Serves manifests and returns once `/readyz` says so.
    pub async fn serve(manifests: impl Into<String>) -> Result<Self, MooredError> {
        Self::start(Start { manifests: manifests.into(), arguments: Vec::new() }).await
    }

    /// Serves manifests with further arguments and returns once `/readyz` says so.
    pub async fn start(start: Start) -> Result<Self, MooredError> {
        let moored = Self::start_unready(start).await?;
        moored.until_ready().await?;
        Ok(moored)
    }

    /// Serves manifests and returns once it listens, ready or not.
    pub async fn start_unready(start: Start) -> Result<Self, MooredError> {
        let folder = Folder::temporary("moored")?;
        let manifests: PathBuf = folder.path().join("manifests.yaml");
        std::fs::write(&manifests, &start.manifests)?;
        let mut command =
            tokio::process::Command::new(settings::moored_binary().ok_or(MooredError::NoBinary)?);
        command.arg("serve").arg(&manifests);
        command.args(["--listen", "127.0.0.1:0", "--health-address", "127.0.0.1:0"]).args(&start.arguments);
        let (child, mut log) = log::spawn(command)?;
        let listening = async { (log.address("listening").await, log.address("health listening").await) };
        match timeout(PATIENCE, listening).await {
            Ok((Some(address), Some(health))) => Ok(Self { child, address, health, log, _folder: folder }),
            Ok(_) => Err(MooredError::NotStarted("it ended".into(), log.text())),
            Err(_) => Err(MooredError::NotStarted(format!("not within {PATIENCE:?}"), log.text())),
        }
    }

    /// The URL of the one gateway.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The URL of the gateway of a name.
    pub fn url_of(&self, gateway: &str) -> String {
        format!("http://{}/{gateway}/mcp", self.address)
    }

    /// The address it serves MCP on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of the one gateway.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.url())
    }

    /// The process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The log so far: JSON, a line an entry.
    pub fn log(&self) -> Vec<serde_json::Value> {
        self.log.entries()
    }

    /// What a path of the health port answers.
    pub async fn health(&self, path: &str) -> Result<Answer, ClientError> {
        let client = Client::with_fresh_connections(&format!("http://{}{path}", self.health))?;
        client.send(client.request(Method::GET).body(bytes::Bytes::new())?).await
    }

    /// Its metrics, now.
    pub async fn metrics(&self) -> Result<Metrics, ClientError> {
        let answer = self.health("/metrics").await?;
        if answer.status == StatusCode::OK {
            Ok(Metrics::parse(&answer.text()))
        } else {
            Err(answer.unexpected())
        }
    }

    /// Waits until a condition on its metrics holds, and returns them.
    pub async fn until_metrics(&self, condition: impl Fn(&Metrics) -> bool) -> Result<Metrics, MooredError> {
        process::poll(PATIENCE, async || self.metrics().await.ok().filter(&condition))
            .await
            .ok_or(MooredError::Overdue("report such metrics"))
    }

    /// Waits until `/readyz` answers 200.
    pub async fn until_ready(&self) -> Result<(), MooredError> {
        let ready =
            async || self.health("/readyz").await.ok().filter(|answer| answer.status == StatusCode::OK);
        process::poll(PATIENCE, ready).await.map(drop).ok_or(MooredError::Overdue("become ready"))
    }

    /// Sends a signal.
    pub async fn signal(&self, signal: Signal) -> Result<(), MooredError> {
        let Some(pid) = self.pid() else { return Ok(()) };
        Ok(process::signal(pid, signal == Signal::Kill).await?)
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Result<ExitStatus, MooredError> {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        Ok(ended.map_err(|_| MooredError::Overdue("end"))??)
    }

    /// How many file descriptors it holds, where the system can say.
    pub fn open_files(&self) -> Option<usize> {
        Some(std::fs::read_dir(format!("/proc/{}/fd", self.pid()?)).ok()?.count())
    }

    /// Its resident memory in KiB, where the system can say.
    pub fn resident_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// The processor time that it has used, in hundredths of a second, where the system can say.
    pub fn processor_ticks(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?)).ok()?;
        // Behind the name, which may hold anything: state is the first, user and system time the 12th and 13th.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(ticks()? + ticks()?)
    }
}
