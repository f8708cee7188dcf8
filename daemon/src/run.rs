//! The life of the process: start, serve, drain, end. Decides nothing about requests.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use mooring_crds::{Platform, config::DrainConfig, names};
use mooring_runtime::{Clock, Outcome, Readiness, Tasks, health::Health, signal::Termination, telemetry};
use tokio::{net::TcpListener, sync::watch, time::timeout};

use crate::{
    args::{Args, Command, Common, Gateway as GatewayArgs, Serve},
    auth::{Cluster, resource::is_protected},
    config::{
        cluster::{self, BadConfig, Names},
        files::{self, BadFiles, Served},
        secrets::Secrets,
    },
    fault::Fault,
    gateway::{Gateway, Shared},
    listener::{self, Routes},
    metrics::Metrics,
    receive::Budget,
    seal::NoSeal,
    session::table::Identity,
    target::{address::Rules, connect::Connector, credentials::Account},
};

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter.
    #[error(transparent)]
    Log(#[from] telemetry::BadFilter),
    /// The files.
    #[error(transparent)]
    Files(#[from] BadFiles),
    /// The mounted configuration.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// An address.
    #[error("{address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The metric registry.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
    /// The TLS library.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// Randomness.
    #[error(transparent)]
    Seal(#[from] NoSeal),
    /// A signal handler.
    #[error("signals: {0}")]
    Signals(#[source] std::io::Error),
    /// The API server's address or credentials.
    #[error("the cluster cannot be asked: {0}")]
    Cluster(#[from] kube::Error),
}

/// Runs the process to its end.
///
/// # Errors
/// [`Error`], where it could not start.
pub async fn run(args: Args) -> Result<(), Error> {
    match args.command {
        Command::Serve(serve) => run_files(serve).await,
        Command::Gateway(gateway) => run_cluster(gateway).await,
    }
}

async fn run_files(args: Serve) -> Result<(), Error> {
    telemetry::start(&args.common.log, args.common.log_format.into())?;
    let platform = Platform {
        session_timeout_seconds: args.session_timeout_min..=args.session_timeout_max,
        allow_loopback: true,
        allow_processes: true,
        has_cluster: false,
    };
    let served = files::load(&args.files, &platform)?;
    for Served { config, secrets: _ } in &served {
        if !is_protected(&config.auth) {
            tracing::warn!(
                gateway = config.name,
                "anonymous: its sessions belong to nobody (PrincipalsBound=False)"
            );
        }
        tracing::warn!(
            gateway = config.name,
            "memory store: its sessions end with this process (SessionsDurable=False)"
        );
    }
    let targets = served.iter().flat_map(|served| &served.config.targets);
    for target in targets.filter(|target| target.command.is_some()) {
        tracing::info!(
            alias = target.alias,
            "runs as a process of this machine: its image is not used, and its rights are those of this daemon"
        );
    }
    let mut process = Process::start(&args.common, true)?;
    // All of them share the quarter of the memory that sessions may take.
    process.shared.store_bytes /= served.len().max(1);
    let drain = served.iter().map(|served| served.config.drain).max_by_key(|drain| drain.deadline_seconds);
    let gateways = served
        .into_iter()
        .map(|Served { config, secrets }| Gateway::start(config, secrets, process.shared.clone()))
        .collect();
    // Without a cluster no endpoint has to spread, so the delay before the drain is nobody's gain.
    let drain = DrainConfig { delay_seconds: 0, ..drain.unwrap_or(NO_DRAIN) };
    process.serve(args.listen, Routes::named(gateways), || drain).await
}

async fn run_cluster(args: GatewayArgs) -> Result<(), Error> {
    telemetry::start(&args.common.log, args.common.log_format.into())?;
    let mut process = Process::start(&args.common, false)?;
    let (config, digest) = cluster::mounted(Path::new(&args.config_dir))?;
    let secrets = match &args.credentials_dir {
        Some(folder) => cluster::secrets::mounted(folder)
            .map_err(|source| BadConfig::Read { path: folder.display().to_string(), source })?,
        None => Secrets::default(),
    };
    let client = cluster::client().await?;
    process.shared.cluster = Some(Cluster(client.clone()));
    // The pod runs as the account of its workload's name.
    let account = Account::new(client.clone(), args.namespace.clone(), names::gateway(&config.name).workload);
    process.shared.connector = process.shared.connector.with_account(account);
    let gateway = Gateway::start(config, secrets, process.shared.clone());
    let names = Names {
        config_map: args.config_map,
        report_map: args.report_map,
        pod: args.pod,
        namespace: args.namespace,
    };
    let (tell, digest) = watch::channel(digest);
    let tasks = &process.shared.tasks;
    if let Some(secret) = args.credentials_secret {
        let namespace = names.namespace.clone();
        tasks.spawn(cluster::secrets::follow(client.clone(), namespace, secret, gateway.clone()));
    }
    tasks.spawn(cluster::follow(client.clone(), names.clone(), gateway.clone(), tell));
    tasks.spawn(cluster::report_changes(client, names, gateway.clone(), digest));
    let routes = Routes::one(gateway.clone());
    process.serve(args.listen, routes, || gateway.snapshot().config.drain).await
}

/// What bodies of callers whom we do not know may take in all.
const STRANGERS_BYTES: u64 = 1 << 20;

const NO_DRAIN: DrainConfig = DrainConfig { delay_seconds: 0, deadline_seconds: 30 };

struct Process {
    shared: Shared,
    readiness: Readiness,
    termination: Termination,
}

impl Process {
    fn start(common: &Common, loopback: bool) -> Result<Self, Error> {
        let termination = Termination::listen().map_err(Error::Signals)?;
        let (metrics, readiness) = (Metrics::new()?, Readiness::default());
        let health = Health { registry: metrics.registry.clone(), readiness: readiness.clone() };
        let address = common.health_address;
        let bound = health.serve(address).map_err(|source| Error::Bind { address, source })?;
        tracing::info!(address = %bound, "health listening");
        let rules = Rules { loopback, refused: common.refused_networks.clone() };
        let tasks = Tasks::default();
        let shared = Shared {
            clock: Clock::system(),
            metrics,
            connector: Connector::new(rules)?.on(&tasks),
            tasks,
            budget: Budget::new(common.memory_limit / 4),
            strangers: Budget::new(STRANGERS_BYTES),
            identity: Identity::new()?,
            store_bytes: usize::try_from(common.memory_limit / 4).unwrap_or(usize::MAX),
            cluster: None,
        };
        Ok(Self { shared, readiness, termination })
    }

    async fn serve(
        mut self,
        address: SocketAddr,
        routes: Routes,
        drain: impl Fn() -> DrainConfig,
    ) -> Result<(), Error> {
        let pending = self.readiness.wait_for("listener");
        let socket: TcpListener =
            listener::bind(address).await.map_err(|source| Error::Bind { address, source })?;
        let tasks = self.shared.tasks.clone();
        for gateway in routes.gateways() {
            let certificates = Arc::clone(&gateway.certificates);
            tasks.spawn(certificates.hold_unready(self.readiness.clone(), tasks.clone()));
        }
        tasks.spawn(listener::serve(socket, routes.clone(), tasks.clone()));
        drop(pending);
        let signal = self.termination.next().await;
        let DrainConfig { delay_seconds, deadline_seconds } = drain();
        tracing::info!(signal, delay_seconds, deadline_seconds, "draining");
        let outcome = self.drain(&routes, delay_seconds, deadline_seconds).await;
        match outcome {
            Outcome::Clean => tracing::info!("ended: everything in flight was answered"),
            Outcome::Forced { left } => tracing::warn!(left, "ended at the deadline"),
        }
        Ok(())
    }

    /// Unready, then a while for endpoints to spread, then nothing new, then the deadline. A second signal hurries.
    async fn drain(&mut self, routes: &Routes, delay_seconds: u32, deadline_seconds: u32) -> Outcome {
        self.readiness.drain();
        let delay = Duration::from_secs(delay_seconds.into());
        let hurried = timeout(delay, self.termination.next()).await.is_ok();
        let deadline = if hurried { Duration::ZERO } else { Duration::from_secs(deadline_seconds.into()) };
        let tasks = self.shared.tasks.clone();
        let hurry = async {
            self.termination.next().await;
        };
        let last_words = async {
            tasks.stop.cancelled().await;
            for gateway in routes.gateways() {
                gateway.sessions.end_calls(&Fault::ShuttingDown);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = tasks.shutdown(deadline, hurry) => outcome,
            () = last_words => Outcome::Clean,
        }
    }
}
