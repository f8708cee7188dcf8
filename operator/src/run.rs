//! The life of the process: start, be elected, reconcile, drain, and an exit code that says how it ended.

use std::{io::Write as _, process::ExitCode, sync::Arc, time::Duration};

use kube::Client;
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget};
use mooring_runtime::{
    Clock, Outcome, Readiness, Tasks,
    health::Health,
    signal::Termination,
    telemetry::{self, LogFormat},
};
use tokio_util::sync::CancellationToken;

use crate::{
    apply::Writer,
    args::{Args, Command, Run},
    context::Context,
    controller,
    events::Events,
    lease::election::{Election, Ended},
    ledger::Ledger,
    metrics::Metrics,
    schema, watches,
};

/// What running reconciles get to end in. The last renewal may be as old as `Terms::renew_within` when they begin to
/// end: with that, it is less than a Lease lasts unrenewed, so that no successor overlaps.
const DRAIN: Duration = Duration::from_secs(4);

/// The same after the Lease was lost: a successor begins soon.
const LOST_DRAIN: Duration = Duration::from_secs(2);

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection may be silent. Longer than a watch lasts, which the API server ends by speaking; shorter than
/// anybody would want to be deaf for, where it, or the way to it, has died without a word.
const SILENCE: Duration = Duration::from_secs(70);

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Clean,
    /// It could not start.
    Failed,
    /// Another replica leads now; the kubelet starts this one again, as a standby.
    LeaseLost,
    /// Reconciles did not end in time and were dropped.
    Forced,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        // 2 is clap's, for arguments that cannot be read.
        Self::from(match exit {
            Exit::Clean => 0,
            Exit::Failed => 1,
            Exit::LeaseLost => 3,
            Exit::Forced => 4,
        })
    }
}

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Filter(#[from] telemetry::BadFilter),
    #[error("--session-timeout-min is above --session-timeout-max")]
    Limits,
    #[error("no client for the API server: {0}")]
    Client(#[source] Box<kube::Error>),
    #[error("{what}: {source}")]
    Io { what: &'static str, source: std::io::Error },
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("the CustomResourceDefinitions could not be written as YAML: {0}")]
    Yaml(String),
}

/// Does what the arguments say.
pub fn main(args: Args) -> Exit {
    let ended = match args.command {
        Command::Crds => crds().map(|()| Exit::Clean),
        Command::Run(run) => start(&run),
    };
    ended.unwrap_or_else(|error| {
        // The log may not be there yet, or be what failed.
        let told = writeln!(std::io::stderr(), "mooring-operator: {error}");
        drop(told);
        Exit::Failed
    })
}

fn crds() -> Result<(), StartError> {
    let mut out = std::io::stdout().lock();
    for definition in mooring_crds::definitions() {
        let yaml =
            serde_saphyr::to_string(&definition).map_err(|error| StartError::Yaml(error.to_string()))?;
        match write!(out, "---\n{yaml}") {
            // The reader has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(|source| StartError::Io { what: "standard output", source })?,
        }
    }
    Ok(())
}

fn start(args: &Run) -> Result<Exit, StartError> {
    // Its warnings are ours, in other words: `watch` tells of every failure.
    let filter = format!("kube_runtime::watcher=error,{}", args.log);
    telemetry::start(&filter, LogFormat::Auto)?;
    if args.session_timeout_min > args.session_timeout_max {
        return Err(StartError::Limits);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| StartError::Io { what: "the runtime", source })?;
    runtime.block_on(Box::pin(run(args)))
}

async fn run(args: &Run) -> Result<Exit, StartError> {
    let mut termination =
        Termination::listen().map_err(|source| StartError::Io { what: "signals", source })?;
    let client = client().await.map_err(|error| StartError::Client(Box::new(error)))?;
    let metrics = Metrics::new()?;
    let readiness = Readiness::default();
    let starting = readiness.wait_for("the check of the installed schemas");
    let health = Health { registry: metrics.registry.clone(), readiness: readiness.clone() };
    health
        .serve(args.health_address)
        .map_err(|source| StartError::Io { what: "the health address", source })?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespaces = ?args.scopes(),
        daemon_image = args.daemon_image,
        "starting"
    );
    schema::check(&client).await;
    drop(starting);

    let ledger = Arc::new(Ledger::default());
    let writer = Writer::new(client.clone(), ledger.clone(), metrics.clone());
    let mut election =
        Election::new(client.clone(), writer.clone(), Clock::system(), &args.lease_namespace, &args.identity);
    let standing = CancellationToken::new();
    let ended = tokio::select! {
        ended = election.stand(&standing) => ended,
        _ = termination.next() => Ended::Drained,
    };
    if ended != Ended::Elected {
        election.release().await;
        return Ok(Exit::Clean);
    }
    tracing::info!(identity = args.identity, "leading");
    metrics.leads(true);
    let tasks = Tasks::default();
    let opened = watches::open(&client, &args.scopes(), &metrics, &tasks);
    let context = Arc::new(Context {
        stores: opened.stores,
        writer,
        ledger,
        events: Events::new(client, &args.identity, metrics.clone()),
        metrics: metrics.clone(),
        settings: args.settings(),
        clock: Clock::system(),
    });
    controllers(&context, opened.queues, &tasks);
    let ended = tokio::select! {
        ended = election.hold(&standing) => ended,
        signal = termination.next() => {
            tracing::info!(signal, "ending");
            Ended::Drained
        }
    };
    readiness.drain();
    metrics.leads(false);
    Ok(end(ended, &tasks, &mut election, &mut termination).await)
}

/// A client that notices a silent API server: without a bound, a watch would wait for it for ever.
async fn client() -> kube::Result<Client> {
    let mut config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    Client::try_from(config)
}

fn controllers(context: &Arc<Context>, queues: Vec<crate::queue::Receivers>, tasks: &Tasks) {
    for (scope, queues) in context.stores.scopes.iter().zip(queues) {
        let seen = || {
            let (stores, scope) = (context.stores.clone(), scope.clone());
            async move { stores.ready(&scope).await }
        };
        let drain = || tasks.drain.clone();
        let gateways = (scope.gateways.clone(), queues.gateways);
        tasks.spawn(controller::run::<MCPGateway>(context.clone(), gateways, seen(), drain()));
        let targets = (scope.targets.clone(), queues.targets);
        tasks.spawn(controller::run::<MCPTarget>(context.clone(), targets, seen(), drain()));
        // Agents look at nothing but themselves yet.
        let agents = (scope.agents.clone(), queues.agents);
        tasks.spawn(controller::run::<ACPAgent>(context.clone(), agents, std::future::ready(()), drain()));
    }
}

async fn end(ended: Ended, tasks: &Tasks, election: &mut Election, termination: &mut Termination) -> Exit {
    let lost = ended == Ended::Lost;
    if lost {
        tracing::error!("the Lease was lost: another replica leads");
    }
    let hurry = async {
        termination.next().await;
    };
    let outcome = tasks.shutdown(if lost { LOST_DRAIN } else { DRAIN }, hurry).await;
    // Only now: a successor must not find us writing.
    election.release().await;
    tracing::info!(?outcome, "ended");
    match (lost, outcome) {
        (true, _) => Exit::LeaseLost,
        (false, Outcome::Clean) => Exit::Clean,
        (false, Outcome::Forced { .. }) => Exit::Forced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Terms;

    #[test]
    fn writes_end_before_a_standby_may_begin() {
        let Terms { lease, renew_within, .. } = Terms::KUBERNETES;
        assert!(renew_within + DRAIN < lease);
        assert!(renew_within + LOST_DRAIN < lease);
    }

    #[test]
    fn a_quiet_watch_ends_before_its_connection_is_taken_for_dead() {
        assert!(Duration::from_secs(watches::WATCH_SECONDS.into()) < SILENCE);
    }
}
