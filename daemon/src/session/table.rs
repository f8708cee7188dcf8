//! Finds and creates sessions. A table over the store: what is not here is read through, and no guard leaves this file.

use std::{
    hash::BuildHasherDefault,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::{DashMap, Entry};
use mooring_crds::config::LimitsConfig;
use mooring_runtime::{Clock, Tasks, Timestamp};
use tokio::sync::{Notify, mpsc};

use super::{
    Session, elsewhere,
    finished::Finished,
    id::{Key, KeyHasher, SessionId},
    principals::Principals,
    reaper::{self, Command},
    record::{Principal, Record},
    revoked::Revoked,
    targets::TargetSession,
};
use crate::{
    capabilities::ClientCapabilities,
    catalog::merge::Marks,
    config::snapshot::Snapshot,
    fault::{EndReason, Fault},
    metrics::GatewayMetrics,
    receive::Budget,
    seal::{NoSeal, Seal},
    store::{Store, Stored, Written},
    target::Target,
    version::Version,
};

/// Commands that the reaper may lag behind; more wait.
const REAPER_QUEUE: usize = 1024;

/// The sessions of one gateway on this replica.
#[derive(Debug)]
pub struct Sessions {
    pub(super) table: DashMap<Key, Arc<Session>, BuildHasherDefault<KeyHasher>>,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(crate) metrics: Arc<GatewayMetrics>,
    /// What bodies held whole may take: large messages that wait for a client are among them.
    pub(crate) budget: Budget,
    /// This process, in ids that must find it again.
    pub replica: u32,
    /// Seals what clients carry for us.
    pub seal: Arc<Seal>,
    /// Ids of requests of our own in clients' sessions.
    own: AtomicU64,
    /// Who wants to know that a list of a target's may have changed.
    hints: OnceLock<Hints>,
    /// The targets of the current configuration: whom a record's ties lead to.
    pub(super) targets: ArcSwap<Vec<Arc<Target>>>,
    /// What a session may have at once, by the current configuration.
    pub(super) limits: ArcSwap<LimitsConfig>,
    principals: Principals,
    /// Streams that have their answer.
    pub(crate) finished: Finished,
    /// Which sessions the current configuration ends.
    pub(super) revoked: ArcSwap<Revoked>,
    /// Fires when these are others.
    pub(super) revoked_anew: Notify,
    reaper: mpsc::Sender<Command>,
}

/// What sets this process apart from the others of its gateway.
#[derive(Debug, Clone)]
pub struct Identity {
    /// In ids that must find it again.
    pub replica: u32,
    /// Its seal.
    pub seal: Arc<Seal>,
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// [`NoSeal`].
    pub fn new() -> Result<Self, NoSeal> {
        let mut replica = [0; 4];
        getrandom::fill(&mut replica).map_err(|_| NoSeal)?;
        Ok(Self { replica: u32::from_be_bytes(replica), seal: Arc::new(Seal::new()?) })
    }
}

/// What sessions share with all that runs in this process.
#[derive(Debug)]
pub struct Around<'a> {
    /// The time.
    pub clock: Clock,
    /// What is spawned, and the drain.
    pub tasks: &'a Tasks,
    /// What bodies held whole may take.
    pub budget: Budget,
}

/// Who is told that a target says a list has changed.
pub struct Hints(pub Box<Hint>);

/// Told of the session, the target session, and the notification's method.
pub type Hint = dyn Fn(&Session, &TargetSession, &str) + Send + Sync;

impl std::fmt::Debug for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hints")
    }
}

/// What a new session is made of.
#[derive(Debug)]
pub struct Opening {
    /// Who asks.
    pub principal: Principal,
    /// What was negotiated.
    pub version: Version,
    /// The client's `clientInfo`, raw.
    pub client_info: Box<str>,
    /// What the client announced.
    pub capabilities: ClientCapabilities,
    /// Until its absolute end.
    pub timeout: Duration,
    /// The lists as they are at this moment.
    pub seen: Marks,
    /// How long it may go unused; for ever where none.
    pub idle: Option<Duration>,
    /// How many sessions the principal may have; any number where none.
    pub most: Option<u32>,
}

impl Sessions {
    /// An empty table over `store`; starts the reaper and the watch.
    pub fn start(
        store: Store,
        Around { clock, tasks, budget }: Around<'_>,
        metrics: Arc<GatewayMetrics>,
        Identity { replica, seal }: Identity,
    ) -> Arc<Self> {
        let (reaper, commands) = mpsc::channel(REAPER_QUEUE);
        let changes = store.watch();
        let sessions = Arc::new(Self {
            table: DashMap::default(),
            store,
            clock,
            tasks: tasks.clone(),
            metrics,
            budget,
            replica,
            seal,
            own: AtomicU64::new(0),
            hints: OnceLock::new(),
            targets: ArcSwap::default(),
            limits: ArcSwap::default(),
            principals: Principals::default(),
            finished: Finished::default(),
            revoked: ArcSwap::default(),
            revoked_anew: Notify::new(),
            reaper,
        });
        tasks.spawn(reaper::run(Arc::clone(&sessions), commands));
        tasks.spawn(elsewhere::watch(Arc::clone(&sessions), changes));
        sessions
    }

    /// Takes the targets and limits of a new configuration, and ends the sessions that it revokes.
    pub fn configure(self: &Arc<Self>, snapshot: &Snapshot, revoked: Revoked) {
        let older = self.targets.swap(Arc::new(snapshot.targets.clone()));
        self.limits.store(Arc::new(snapshot.config.limits.clone()));
        // Before the sweep: a session that is entered meanwhile is judged by whoever enters it.
        self.revoked.store(Arc::new(revoked));
        self.revoked_anew.notify_one();
        self.end_revoked();
        let stays = |old: &Arc<Target>| snapshot.targets.iter().any(|new| Arc::ptr_eq(old, new));
        if !older.iter().all(stays) {
            self.all().iter().for_each(|session| self.follow_targets(session));
        }
    }

    /// The time, as sessions count it.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many are held here.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether none is held here.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Stores a new session and only then tells its id.
    ///
    /// # Errors
    /// [`Fault::TooManySessions`], [`Fault::StoreAway`] and [`Fault::StoreFull`]; nothing is left behind then.
    /// [`Fault::CallerDenied`], where its owner was denied while it began: it ends at once.
    pub async fn create(self: &Arc<Self>, opening: Opening) -> Result<SessionId, Fault> {
        let Opening { principal, version, client_info, capabilities, timeout, idle, most, seen } = opening;
        let reserved = self.principals.reserve(&principal, most)?;
        let id = SessionId::mint().map_err(|_| Fault::StoreAway)?;
        let (key, now) = (id.key(), self.now());
        let record = Arc::new(Record {
            principal,
            created: now,
            expires: now.plus(timeout),
            idle,
            used: now,
            version,
            client_info,
            capabilities,
            log_level: None,
            targets: std::collections::BTreeMap::new(),
        });
        match self.store.compare_and_set(key, None, Arc::clone(&record)).await? {
            Written::Stored(revision) => {
                let session = Arc::new(Session::new(key, Stored { record, revision }, now, seen));
                if self.table.insert(key, Arc::clone(&session)).is_none() {
                    reserved.keep();
                }
                self.metrics.sessions_held(self.table.len());
                self.metrics.session_started();
                tracing::info!(target: "audit", gateway = self.metrics.gateway(), session = %key, event = "session started");
                self.rearm(key).await;
                if self.revokes(&session) {
                    self.revoke(session);
                    return Err(Fault::CallerDenied);
                }
                Ok(id)
            }
            // 128 random bits that are taken: the store, or the randomness, is broken.
            Written::Conflict(_) => Err(Fault::StoreAway),
        }
    }

    /// Finds the session that `header` names, for `principal`.
    ///
    /// Missing is 400; unknown, expired, ended and somebody else's are one and the same 404, and somebody else's takes
    /// the same steps as unknown. A store that cannot be asked is 503.
    ///
    /// # Errors
    /// [`Fault::MissingSession`], [`Fault::UnknownSession`], [`Fault::StoreAway`].
    pub async fn find(
        self: &Arc<Self>,
        header: Option<&str>,
        principal: &Principal,
    ) -> Result<Arc<Session>, Fault> {
        let header = header.ok_or(Fault::MissingSession)?;
        let key = SessionId::parse(header).ok_or(Fault::UnknownSession)?.key();
        let now = self.now();
        // One that is somebody else's is nobody's here, so that the store is asked as for an id that never was.
        let session = match self.held(key).filter(|session| session.principal == *principal) {
            // It may have ended while its record could not be removed, and is not read through again then.
            Some(session) if session.alive(now) && !self.revokes(&session) => session,
            Some(_) => return Err(Fault::UnknownSession),
            None => Box::pin(self.read_through(key, principal, now)).await?,
        };
        session.touch(now);
        Ok(session)
    }

    /// Asks the store for a session that `principal` has not here. Whoever it is not for changes nothing by asking.
    async fn read_through(
        self: &Arc<Self>,
        key: Key,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Arc<Session>, Fault> {
        let theirs = |stored: &Stored| stored.record.principal == *principal && !stored.record.expired(now);
        let stored = self.store.get(key).await?.filter(theirs).ok_or(Fault::UnknownSession)?;
        let session = self.hold(Arc::new(Session::new(key, stored, now, Marks::default())));
        if self.revokes(&session) {
            self.revoke(session);
            return Err(Fault::UnknownSession);
        }
        self.rearm(key).await;
        Ok(session)
    }

    /// Whether the configuration of now ends this session.
    pub(super) fn revokes(&self, session: &Session) -> bool {
        let revoked = self.revoked.load();
        !revoked.is_nothing() && revoked.covers(&session.stored().record, self.now())
    }

    /// Enters a session; of two that race, the first is the one.
    pub(super) fn hold(&self, session: Arc<Session>) -> Arc<Session> {
        let held = match self.table.entry(session.key) {
            Entry::Occupied(occupied) => Arc::clone(occupied.get()),
            Entry::Vacant(vacant) => {
                self.principals.enter(&session.principal);
                Arc::clone(&vacant.insert(session))
            }
        };
        self.metrics.sessions_held(self.table.len());
        held
    }

    /// Takes a session out.
    pub(super) fn release(&self, key: Key) {
        if let Some((_, session)) = self.table.remove(&key) {
            self.principals.leave(&session.principal);
        }
        self.metrics.sessions_held(self.table.len());
    }

    pub(super) fn held(&self, key: Key) -> Option<Arc<Session>> {
        self.table.get(&key).map(|entry| Arc::clone(entry.value()))
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.table.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// Those that ended while their records could not be removed.
    pub(super) fn ended(&self) -> Vec<(Arc<Session>, EndReason)> {
        let ended = |session: &Arc<Session>| Some((Arc::clone(session), session.end_reason()?));
        self.table.iter().filter_map(|entry| ended(entry.value())).collect()
    }

    /// Has the reaper look at this session, and again when its time may have come.
    pub(super) async fn rearm(&self, key: Key) {
        self.command(Command::Arm(key)).await;
    }

    pub(super) async fn command(&self, command: Command) {
        if self.reaper.send(command).await.is_err() {
            tracing::debug!("the reaper has ended with the drain; expiry is still checked at each request");
        }
    }

    /// An id for a request of our own in a client's session, raw JSON. Clients' ids do not look so.
    pub fn own_id(&self) -> String {
        let number = self.own.fetch_add(1, Ordering::Relaxed);
        format!("\"mooring-{:08x}.{number}\"", self.replica)
    }

    /// Has `hints` told of every list that a target says has changed in a client's session.
    pub fn tell_hints(&self, hints: Hints) {
        if self.hints.set(hints).is_err() {
            tracing::error!("hints are told to one only");
        }
    }

    /// Tells that `method`, a notification of a target in a client's session, says that a list has changed.
    pub fn hint(&self, session: &Session, open: &TargetSession, method: &str) {
        if let Some(Hints(tell)) = self.hints.get() {
            tell(session, open, method);
        }
    }

    /// What is spawned, and the drain.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Spawns work that the shutdown waits for.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }
}
