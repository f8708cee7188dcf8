//! Every setting of the daemon, parsed once. Nothing else reads the command line or the environment.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use mooring_runtime::telemetry;

/// Mooring's daemon: hosts the sessions.
#[derive(Debug, Parser)]
#[command(name = "moored", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The daemon's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the gateways of manifests, without a cluster.
    Serve(Serve),
    /// Serve the gateway that the operator configured, in its pod.
    Gateway(Gateway),
}

/// `moored serve`.
#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// YAML files with MCPGateway and MCPTarget objects.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Where to serve: /mcp where there is one gateway, /NAME/mcp always.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The shortest session timeout that a gateway may have, in seconds.
    #[arg(long, default_value_t = 900)]
    pub session_timeout_min: i32,
    /// The longest session timeout that a gateway may have, in seconds.
    #[arg(long, default_value_t = 28_800)]
    pub session_timeout_max: i32,
    /// What both ways to serve share.
    #[command(flatten)]
    pub common: Common,
}

/// `moored gateway`.
#[derive(Debug, ClapArgs)]
pub struct Gateway {
    /// Where the configuration is mounted.
    #[arg(long)]
    pub config_dir: PathBuf,
    /// The ConfigMap with the configuration, watched by name.
    #[arg(long)]
    pub config_map: String,
    /// Where the credentials are mounted; they may be missing there.
    #[arg(long)]
    pub credentials_dir: Option<PathBuf>,
    /// The Secret with the credentials, watched by name.
    #[arg(long)]
    pub credentials_secret: Option<String>,
    /// The ConfigMap that takes this pod's report.
    #[arg(long)]
    pub report_map: String,
    /// This pod.
    #[arg(long, env = "POD_NAME")]
    pub pod: String,
    /// This pod's namespace.
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Where to serve.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// What both ways to serve share.
    #[command(flatten)]
    pub common: Common,
}

/// What both ways to serve share.
#[derive(Debug, ClapArgs)]
pub struct Common {
    /// Where /livez, /readyz and /metrics are.
    #[arg(long, default_value = "127.0.0.1:9090")]
    pub health_address: SocketAddr,
    /// What to log, such as info, or access=warn,info.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub log: String,
    /// How to log.
    #[arg(long, value_enum, default_value_t = LogFormat::Auto)]
    pub log_format: LogFormat,
    /// The memory that this process may take, in bytes; bodies held whole share a quarter of it, sessions kept in
    /// memory another.
    #[arg(long, env = "MOORED_MEMORY_LIMIT", default_value_t = 1 << 30)]
    pub memory_limit: u64,
    /// A network that requests to targets may not go to, besides loopback, link-local and metadata addresses.
    #[arg(long = "refuse-network")]
    pub refused_networks: Vec<IpNet>,
}

/// How to log.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// One JSON object a line.
    Json,
    /// Text.
    Text,
}

impl From<LogFormat> for telemetry::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::Auto,
            LogFormat::Json => Self::Json,
            LogFormat::Text => Self::Text,
        }
    }
}
