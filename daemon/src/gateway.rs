//! One gateway as this replica serves it: its configuration, sessions and catalogue.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use mooring_crds::config::{GatewayConfig, StoreConfig};
use mooring_runtime::{Clock, Tasks};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    auth::{Authenticator, Caller, Cluster},
    capabilities::ClientCapabilities,
    catalog::{Catalog, view::View},
    catalog::{kind, listing::is_per_session},
    config::{secrets::Secrets, snapshot::Snapshot},
    fault::Fault,
    jsonrpc::reply,
    listener::tls::Certificates,
    metrics::{GatewayMetrics, Metrics},
    receive::Budget,
    session::{
        Session,
        places::{Place, Places},
        revoked::{Revoked, denies},
        table::{Around, Hints, Identity, Sessions},
        targets::TargetSession,
    },
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
    /// What bodies of callers whom we do not know may take: little, so that they take nothing from those we know.
    pub strangers: Budget,
    /// What sets this process apart.
    pub identity: Identity,
    /// What a gateway's sessions may take, where they are kept in memory only.
    pub store_bytes: usize,
    /// The API server, whose keys verify ServiceAccounts' tokens; none without a cluster.
    pub cluster: Option<Cluster>,
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
    /// What its listener shows, where it speaks TLS.
    pub certificates: Arc<Certificates>,
    requests: Places,
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
        let sessions = Sessions::start(
            store,
            Around { clock: shared.clock, tasks: &shared.tasks, budget: shared.budget.clone() },
            Arc::clone(&metrics),
            shared.identity.clone(),
        );
        let snapshot = Arc::new(Snapshot::new(config, secrets, None, &shared));
        sessions.configure(&snapshot, revoked(&snapshot));
        let certificates = Arc::<Certificates>::default();
        certificates.take(&snapshot.config, &snapshot.secrets);
        let catalog = Catalog::new(&shared.tasks, &snapshot);
        let snapshot = ArcSwap::new(snapshot);
        let gateway = Arc::new(Self {
            shared,
            sessions,
            metrics,
            certificates,
            requests: Places::default(),
            catalog,
            snapshot,
            changing: Mutex::new(()),
        });
        let weak = Arc::downgrade(&gateway);
        gateway.sessions.tell_hints(Hints(Box::new(move |session, open, method| {
            if let Some(gateway) = weak.upgrade() {
                gateway.lists_changed(session, open, method);
            }
        })));
        // Nearly every client has this version, and the report is made of it.
        drop(gateway.view(LATEST, &ClientCapabilities::default()));
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
        let snapshot = Arc::new(Snapshot::new(config, secrets, Some(older), &self.shared));
        // Sessions first: to them a target that they do not know is one that was removed.
        self.sessions.configure(&snapshot, revoked(&snapshot));
        self.snapshot.store(Arc::clone(&snapshot));
        self.certificates.take(&snapshot.config, &snapshot.secrets);
        self.catalog.configure(&snapshot);
        for gone in
            older.targets.iter().filter(|old| snapshot.targets.iter().all(|new| new.alias() != old.alias()))
        {
            self.shared.metrics.forget_target(&older.config.name, gone.alias());
        }
    }

    /// Whether its endpoint has this path.
    pub fn is_at(&self, path: &str) -> bool {
        self.snapshot.load().config.path == path
    }

    /// The configuration of now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The catalogue for clients of `version` with these capabilities.
    pub fn view(&self, version: Version, capabilities: &ClientCapabilities) -> Arc<View> {
        self.catalog.view(version, capabilities)
    }

    /// The catalogue for the client of a session, which remembers it: the table of all is asked once a session.
    pub fn view_of(&self, session: &Session, now: Instant) -> Arc<View> {
        if let Some(view) = session.view.lock().upgrade() {
            view.touch(now);
            return view;
        }
        let record = session.stored().record;
        let view = self.view(session.version, &record.capabilities);
        // One that stands in for want of room is asked for anew each time.
        if view.capabilities == record.capabilities {
            *session.view.lock() = Arc::downgrade(&view);
        }
        view
    }

    /// A target said in a client's session, by `method`, that lists of it have changed. Where they are the session's own
    /// the client is told; elsewhere the catalogue looks, and tells all whom it concerns.
    fn lists_changed(&self, session: &Session, open: &TargetSession, method: &str) {
        let uid = &open.target.config.uid;
        let own = is_per_session(&open.target);
        for kind in kind::of_notification(method) {
            if own {
                session.lists.forget(uid, kind);
            } else {
                self.view_of(session, Instant::now()).refresh(uid, kind);
            }
        }
        if own && let Some(channel) = session.known_channel() {
            channel.outbox.push(reply::notification(method));
        }
    }

    /// Takes a request's place among those in flight at this gateway.
    ///
    /// # Errors
    /// [`Fault::TooManyRequests`].
    pub fn admit(&self, snapshot: &Snapshot) -> Result<Place, Fault> {
        let most = snapshot.config.limits.requests_in_flight;
        let place = self.requests.enter(most).ok_or(Fault::TooManyRequests(most))?;
        Ok(place.shown(&self.metrics.limits.in_flight))
    }

    /// Who is calling.
    ///
    /// # Errors
    /// As [`crate::auth::Authenticator::authenticate`]; [`Fault::CallerDenied`], where the configuration denies the caller.
    pub async fn authenticate(&self, snapshot: &Snapshot, headers: &HeaderMap) -> Result<Caller, Fault> {
        if matches!(snapshot.auth, Authenticator::Anonymous) {
            return Ok(Caller::anonymous());
        }
        let caller = snapshot.auth.authenticate(headers, self.shared.clock.now()).await?;
        if denies(&snapshot.config.auth.denied, &caller.principal, caller.claims.text("iss")) {
            return Err(Fault::CallerDenied);
        }
        Ok(caller)
    }
}

/// Which sessions a configuration ends.
fn revoked(snapshot: &Snapshot) -> Revoked {
    Revoked::of(&snapshot.config, snapshot.auth.cluster_issuer())
}
