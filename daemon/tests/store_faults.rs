//! A store that is slow, full or away, under a gateway that listens on loopback: what clients are answered then.
//! The only tests of the daemon that are not black boxes: no engine can be told from outside to fail.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use moored::{
    gateway::{Gateway, Shared},
    listener::{self, Routes},
    metrics::Metrics,
    receive::Budget,
    session::{id::Key, record::Record},
    store::{Change, Records, Revision, Store, StoreError, Stored, Written, memory::Memory},
    target::{address::Rules, connect::Connector},
};
use mooring_crds::config::{DrainConfig, GatewayConfig, Naming, Principals, StoreConfig};
use mooring_runtime::{Clock, Tasks, Timestamp};
use tokio::sync::broadcast;

type Bytes = bytes::Bytes;

const WELL: u8 = 0;
const SLOW: u8 = 1;
const FULL: u8 = 2;
const AWAY: u8 = 3;

/// A memory store that can be told to fail. Its clones are one store, as several replicas have it.
#[derive(Debug, Clone)]
struct Faulty {
    memory: Arc<Memory>,
    state: Arc<AtomicU8>,
}

impl Faulty {
    /// Fails as it was told, or does the work.
    fn then<'a, T: Send + 'a>(
        &self,
        work: BoxFuture<'a, Result<T, StoreError>>,
        is_new: bool,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        match self.state.load(Ordering::SeqCst) {
            SLOW => Box::pin(std::future::pending()),
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
struct Replica {
    url: String,
    gateway: Arc<Gateway>,
    client: Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>,
}

fn config() -> GatewayConfig {
    GatewayConfig {
        name: "tools".to_owned(),
        namespace: String::new(),
        uid: String::new(),
        path: "/mcp".to_owned(),
        principals: Principals::Anonymous,
        store: StoreConfig::Memory,
        session_timeout_seconds: 3600,
        naming: Naming::Plain,
        hosts: Vec::new(),
        origins: Vec::new(),
        request_bytes: 1 << 20,
        drain: DrainConfig { delay_seconds: 0, deadline_seconds: 1 },
        targets: Vec::new(),
    }
}

fn faulty() -> (Faulty, Arc<AtomicU8>) {
    let state = Arc::new(AtomicU8::new(WELL));
    (Faulty { memory: Arc::new(Memory::new(100)), state: Arc::clone(&state) }, state)
}

impl Replica {
    async fn start(store: &Faulty) -> Self {
        let tasks = Tasks::default();
        let shared = Shared {
            tasks: tasks.clone(),
            clock: Clock::system(),
            metrics: Metrics::new().unwrap(),
            connector: Connector::new(Rules { loopback: true, refused: Vec::new() }).unwrap(),
            budget: Budget::new(1 << 26),
        };
        let gateway = Gateway::start_with(config(), shared, Store::new(store.clone()));
        let socket = listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = format!("http://{}/mcp", socket.local_addr().unwrap());
        tasks.spawn(listener::serve(socket, Routes::one(Arc::clone(&gateway)), tasks.clone()));
        Self { url, gateway, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    async fn send(
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

    async fn initialize(&self) -> (StatusCode, Response<Bytes>) {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
        self.send(Method::POST, None, initialize).await
    }

    async fn session(&self) -> String {
        let (status, response) = self.initialize().await;
        assert_eq!(status, StatusCode::OK);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn ping(&self, session: &str) -> StatusCode {
        self.send(Method::POST, Some(session), PING).await.0
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

#[tokio::test]
async fn a_store_that_cannot_be_asked_is_503_never_404_and_sessions_in_memory_go_on() {
    let (store, state) = faulty();
    let here = Replica::start(&store).await;
    let session = here.session().await;
    for fault in [AWAY, SLOW] {
        let there = Replica::start(&store).await;
        state.store(fault, Ordering::SeqCst);
        let (status, response) = there.send(Method::POST, Some(&session), PING).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        let error: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(error["id"], 2);
        assert_eq!(here.ping(&session).await, StatusCode::OK, "this replica holds it");
        state.store(WELL, Ordering::SeqCst);
        assert_eq!(there.ping(&session).await, StatusCode::OK, "it is read through once the store is back");
    }
}

#[tokio::test]
async fn a_full_or_absent_store_takes_no_new_session_and_leaves_nothing_behind() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    for fault in [FULL, AWAY, SLOW] {
        state.store(fault, Ordering::SeqCst);
        let (status, response) = replica.initialize().await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        assert!(!response.headers().contains_key("mcp-session-id"));
        assert!(replica.gateway.sessions.is_empty());
    }
    state.store(WELL, Ordering::SeqCst);
    assert_eq!(replica.initialize().await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_delete_that_cannot_be_stored_is_503_and_the_session_goes_on() {
    let (store, state) = faulty();
    let replica = Replica::start(&store).await;
    let session = replica.session().await;
    state.store(AWAY, Ordering::SeqCst);
    assert_eq!(replica.send(Method::DELETE, Some(&session), "").await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(replica.ping(&session).await, StatusCode::OK);
    state.store(WELL, Ordering::SeqCst);
    assert_eq!(replica.send(Method::DELETE, Some(&session), "").await.0, StatusCode::NO_CONTENT);
    assert_eq!(replica.ping(&session).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_serves_on_any_replica_of_a_shared_store_and_ends_on_all_of_them() {
    let (store, _) = faulty();
    let (here, there) = (Replica::start(&store).await, Replica::start(&store).await);
    let session = here.session().await;
    assert_eq!(there.ping(&session).await, StatusCode::OK);
    assert_eq!(here.send(Method::DELETE, Some(&session), "").await.0, StatusCode::NO_CONTENT);
    // The removal reaches the other replica by the store's watch.
    let gone = async {
        while !there.gateway.sessions.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.unwrap();
    assert_eq!(there.ping(&session).await, StatusCode::NOT_FOUND);
}
