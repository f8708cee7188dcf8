//! One gateway as this replica serves it: its configuration, sessions and catalogue.

use std::sync::Arc;

use arc_swap::ArcSwap;
use mooring_crds::config::{GatewayConfig, StoreConfig};
use mooring_runtime::{Clock, Tasks};
use parking_lot::Mutex;

use crate::{
    catalog::{Catalog, View},
    config::{secrets::Secrets, snapshot::Snapshot},
    metrics::{GatewayMetrics, Metrics},
    receive::Budget,
    session::{record::Principal, table::Sessions},
    store::{Store, memory::Memory},
    target::connect::Connector,
    version::{LATEST, Version},
};

/// What all gateways of a process share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// What is spawned, and the drain.
    pub tasks: Tasks,
    /// The time.
    pub clock: Clock,
    /// The metric families.
    pub metrics: Metrics,
    /// How targets are reached.
    pub connector: Connector,
    /// What bodies held whole may take.
    pub budget: Budget,
    /// What a gateway's sessions may take, where they are kept in memory only.
    pub store_bytes: usize,
}

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    /// What it shares with the others.
    pub shared: Shared,
    /// Its sessions.
    pub sessions: Arc<Sessions>,
    /// Its metric handles.
    pub metrics: Arc<GatewayMetrics>,
    catalog: Catalog,
    snapshot: ArcSwap<Snapshot>,
    /// Configuration and secrets change one at a time: each is made of the other's newest.
    changing: Mutex<()>,
}

impl Gateway {
    /// Starts a gateway: its catalogue begins to learn at once.
    pub fn start(config: GatewayConfig, secrets: Secrets, shared: Shared) -> Arc<Self> {
        let store = match config.store {
            StoreConfig::Memory => Store::new(Memory::new(shared.store_bytes)),
        };
        Self::begin(config, secrets, shared, store)
    }

    /// As [`Self::start`], over a given store and without secrets.
    pub fn start_with(config: GatewayConfig, shared: Shared, store: Store) -> Arc<Self> {
        Self::begin(config, Secrets::default(), shared, store)
    }

    fn begin(config: GatewayConfig, secrets: Secrets, shared: Shared, store: Store) -> Arc<Self> {
        let metrics = Arc::new(shared.metrics.gateway(&config.name));
        let sessions = Sessions::start(store, shared.clock, &shared.tasks, Arc::clone(&metrics));
        let snapshot = Arc::new(Snapshot::new(config, secrets, None, &shared.connector, &shared.metrics));
        sessions.configure(&snapshot.targets);
        let catalog = Catalog::new(&shared.tasks, &snapshot);
        let snapshot = ArcSwap::new(snapshot);
        let changing = Mutex::new(());
        let gateway = Arc::new(Self { shared, sessions, metrics, catalog, snapshot, changing });
        // Nearly every client has this version, and the report is made of it.
        drop(gateway.view(LATEST));
        gateway
    }

    /// Takes a new configuration: new requests see it, sessions go on.
    pub fn configure(&self, config: GatewayConfig) {
        let _changing = self.changing.lock();
        let older = self.snapshot();
        self.take(config, older.secrets.clone(), &older);
    }

    /// Takes new values of the secrets: new requests are made with them, sessions go on.
    pub fn rotate(&self, secrets: Secrets) {
        let _changing = self.changing.lock();
        let older = self.snapshot();
        if older.secrets != secrets {
            self.take(older.config.clone(), secrets, &older);
        }
    }

    fn take(&self, config: GatewayConfig, secrets: Secrets, older: &Snapshot) {
        let snapshot = Arc::new(Snapshot::new(
            config,
            secrets,
            Some(older),
            &self.shared.connector,
            &self.shared.metrics,
        ));
        self.snapshot.store(Arc::clone(&snapshot));
        self.sessions.configure(&snapshot.targets);
        self.catalog.configure(&snapshot);
        for gone in
            older.targets.iter().filter(|old| snapshot.targets.iter().all(|new| new.alias() != old.alias()))
        {
            self.shared.metrics.forget_target(&older.config.name, gone.alias());
        }
    }

    /// The configuration of now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The catalogue for clients of `version`.
    pub fn view(&self, version: Version) -> Arc<View> {
        self.catalog.view(version)
    }

    /// Who is calling.
    pub fn authenticate(&self, _snapshot: &Snapshot) -> Principal {
        Principal::Anonymous
    }
}
