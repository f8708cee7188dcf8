//! A store that can be told to fail, and a gateway over it that listens on loopback. Holds no test.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use moored::{
    gateway::{Gateway, Shared},
    receive::Budget,
    session::{id::Key, record::Record},
    store::{Change, Deleted, Records, Revision, Store, StoreError, Stored, Written, memory::Memory},
};
use mooring_crds::config::{GatewayConfig, Naming, TargetConfig};
use mooring_runtime::{Tasks, Timestamp};
use prometheus::TextEncoder;
use tokio::sync::broadcast;

pub(crate) use crate::support::config;

type Bytes = bytes::Bytes;

pub(crate) const WELL: u8 = 0;
pub(crate) const SLOW: u8 = 1;
pub(crate) const FULL: u8 = 2;
pub(crate) const AWAY: u8 = 3;

/// A memory store that can be told to fail. Its clones are one store, as several replicas have it.
#[derive(Debug, Clone)]
pub(crate) struct Faulty {
    pub(crate) memory: Arc<Memory>,
    state: Arc<AtomicU8>,
    hanging: Arc<AtomicUsize>,
    given_up: Arc<AtomicUsize>,
}

/// Work that hangs, until nobody waits for it any more.
struct Hanging(Faulty);

impl Hanging {
    fn of(store: &Faulty) -> Self {
        store.hanging.fetch_add(1, Ordering::SeqCst);
        Self(store.clone())
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.given_up.fetch_add(1, Ordering::SeqCst);
    }
}

impl Faulty {
    /// How often it was asked while it was slow.
    pub(crate) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    /// How many of these were given up by whoever asked.
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::SeqCst)
    }

    /// Fails as it was told, or does the work.
    fn then<'a, T: Send + 'a>(
        &self,
        work: BoxFuture<'a, Result<T, StoreError>>,
        is_new: bool,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        match self.state.load(Ordering::SeqCst) {
            SLOW => {
                let hanging = Hanging::of(self);
                Box::pin(async move {
                    let _hanging = hanging;
                    std::future::pending().await
                })
            }
            FULL if is_new => Box::pin(std::future::ready(Err(StoreError::Full))),
            AWAY => Box::pin(std::future::ready(Err(StoreError::Away("cut off".to_owned())))),
            _ => work,
        }
    }
}

impl Records for Faulty {
    fn get(&self, key: Key) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        self.then(self.memory.get(key), false)
    }

    fn compare_and_set(
        &self,
        key: Key,
        expected: Option<Revision>,
        record: Arc<Record>,
    ) -> BoxFuture<'_, Result<Written, StoreError>> {
        self.then(self.memory.compare_and_set(key, expected, record), expected.is_none())
    }

    fn delete(&self, key: Key) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.then(self.memory.delete(key), false)
    }

    fn compare_and_delete(&self, key: Key, expected: Revision) -> BoxFuture<'_, Result<Deleted, StoreError>> {
        self.then(self.memory.compare_and_delete(key, expected), false)
    }

    fn scan_expired(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Key, Stored)>, StoreError>> {
        self.then(self.memory.scan_expired(now, limit), false)
    }

    fn watch(&self) -> broadcast::Receiver<Change> {
        self.memory.watch()
    }
}

/// A replica over a store that others may share.
pub(crate) struct Replica {
    pub(crate) url: String,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
}

pub(crate) fn faulty() -> (Faulty, Arc<AtomicU8>) {
    let state = Arc::new(AtomicU8::new(WELL));
    let store = Faulty {
        memory: Arc::new(Memory::new(1 << 20)),
        state: Arc::clone(&state),
        hanging: Arc::default(),
        given_up: Arc::default(),
    };
    (store, state)
}

impl Replica {
    pub(crate) async fn start(store: &Faulty) -> Self {
        Self::start_with(store, config()).await
    }

    pub(crate) async fn start_with(store: &Faulty, config: GatewayConfig) -> Self {
        let tasks = Tasks::default();
        let shared =
            Shared { tasks: tasks.clone(), budget: Budget::new(1 << 26), ..crate::support::shared() };
        let gateway = Gateway::start_with(config, shared, Store::new(store.clone()));
        let url = crate::listening::listen(&gateway, &tasks).await;
        Self { url, gateway, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    pub(crate) async fn send(
        &self,
        verb: Method,
        session: Option<&str>,
        body: &'static str,
    ) -> (StatusCode, Response<Bytes>) {
        let mut request = Request::builder()
            .method(verb)
            .uri(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
        let response = self.client.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, Response::from_parts(head, body))
    }

    pub(crate) async fn initialize(&self) -> (StatusCode, Response<Bytes>) {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
        self.send(Method::POST, None, initialize).await
    }

    pub(crate) async fn session(&self) -> String {
        let (status, response) = self.initialize().await;
        assert_eq!(status, StatusCode::OK);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// The sum of this replica's samples that begin so.
    pub(crate) fn metric(&self, start: &str) -> f64 {
        let text =
            TextEncoder::new().encode_to_string(&self.gateway.shared.metrics.registry.gather()).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    }

    pub(crate) async fn delete(&self, session: &str) -> StatusCode {
        self.send(Method::DELETE, Some(session), "").await.0
    }

    pub(crate) async fn call(&self, session: &str) -> StatusCode {
        let call =
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a___echo","arguments":{}}}"#;
        self.send(Method::POST, Some(session), call).await.0
    }

    pub(crate) async fn ping(&self, session: &str) -> StatusCode {
        self.send(Method::POST, Some(session), PING).await.0
    }
}

pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// The same with one target, `a`.
pub(crate) fn config_with(url: String) -> GatewayConfig {
    let target = TargetConfig {
        alias: "a".to_owned(),
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        url,
        ..TargetConfig::default()
    };
    let naming = Naming::Prefixed { separator: "___".to_owned() };
    GatewayConfig { naming, targets: vec![target], ..config() }
}

/// Waits, not for ever, until `holds`.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let come = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), come).await.is_ok(), "waited in vain for {what}");
}
