//! An MCP server that does what a test tells it, in the test's own process, and records every request it gets.
//! It speaks Streamable HTTP of the legacy era on 127.0.0.1 and never reaches out.

mod call;
mod endpoint;
mod record;
mod script;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::endpoint::Endpoint;
pub use self::{
    record::{Counts, Seen},
    script::{
        Behaviour, EventIds, Get, Interference, LostSession, NotificationAnswer, RawAnswer, Script, Sessions,
        Tool, Version,
    },
};
use crate::{http::Server, jsonrpc};

/// How long a test waits at most for something it expects a server to see.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What a test waited for did not come.
#[derive(Debug, thiserror::Error)]
#[error("waited {PATIENCE:?} in vain for {what}; seen were {seen:?}")]
pub struct Overdue {
    what: String,
    seen: Vec<String>,
}

/// A scripted MCP server; it ends when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    server: Server,
    endpoint: Arc<Endpoint>,
}

impl ScriptedServer {
    /// Starts a server on a free port of 127.0.0.1.
    pub async fn start(script: Script) -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        #[expect(clippy::expect_used, reason = "a test cannot go on without a free port of the loopback")]
        Self::start_at(loopback, script).await.expect("a free port on 127.0.0.1")
    }

    /// Starts a server on an address, such as the one of a server that was stopped.
    pub async fn start_at(address: SocketAddr, script: Script) -> std::io::Result<Self> {
        let endpoint = Arc::new(Endpoint::new(script));
        let server = Server::start(address, Arc::clone(&endpoint)).await?;
        Ok(Self { server, endpoint })
    }

    /// The URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Stops listening, cuts what is open, and returns the address, where nothing answers any more.
    pub async fn stop(self) -> SocketAddr {
        self.server.stop().await;
        self.address()
    }

    /// Cuts all connections, as a crash does, and goes on listening.
    pub fn cut_connections(&self) {
        self.server.cut_connections();
    }

    /// Changes the script; what is being answered goes on as it began.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state().script);
    }

    /// Replaces the tools and says `notifications/tools/list_changed` on every open GET stream.
    pub fn set_tools(&self, tools: Vec<Tool>) {
        self.change(|script| script.tools = tools);
        self.push(&jsonrpc::notification("notifications/tools/list_changed", &json!({})));
    }

    /// Forgets every session, as a restarted server does.
    pub fn forget_sessions(&self) {
        let mut state = self.state();
        state.sessions.clear();
        state.streams.clear();
        drop(state);
        self.endpoint.changed();
    }

    /// Treats requests of a JSON-RPC method, or of an HTTP verb such as `DELETE`, this way until told otherwise.
    pub fn interfere(&self, kind: &str, interference: Interference) {
        self.state().always.insert(kind.into(), interference);
    }

    /// Treats the next request of a kind this way; several wait in line.
    pub fn interfere_once(&self, kind: &str, interference: Interference) {
        self.state().once.entry(kind.into()).or_default().push_back(interference);
    }

    /// Answers requests of a kind ordinarily again.
    pub fn behave(&self, kind: &str) {
        let mut state = self.state();
        state.always.remove(kind);
        state.once.remove(kind);
    }

    /// Lets go every request that is held or slow at this moment.
    pub fn release(&self) {
        self.endpoint.release();
    }

    /// Sends a message on every open GET stream and says how many that were.
    pub fn push(&self, message: &str) -> usize {
        self.push_where(message, |_| true)
    }

    /// Sends a message on the GET streams of one session and says how many that were.
    pub fn push_to(&self, session: &str, message: &str) -> usize {
        self.push_where(message, |of| of == Some(session))
    }

    fn push_where(&self, message: &str, wanted: impl Fn(Option<&str>) -> bool) -> usize {
        let mut state = self.state();
        let id = state.event_id();
        let event = jsonrpc::event(id.as_deref(), message);
        let streams = state.streams.iter().filter(|stream| wanted(stream.session.as_deref()));
        streams.filter(|stream| stream.events.try_send(Ok(event.clone())).is_ok()).count()
    }

    /// Sends text on every stream that is fed, as it is, and says how many that were.
    pub fn feed(&self, text: impl Into<Bytes>) -> usize {
        self.feed_where(&text.into(), |_| true)
    }

    /// The same on the streams of one session.
    pub fn feed_to(&self, session: &str, text: impl Into<Bytes>) -> usize {
        self.feed_where(&text.into(), |feed| feed.session.as_deref() == Some(session))
    }

    /// The same on the stream of one call of a session, by its id.
    pub fn feed_call(&self, session: &str, id: &Value, text: impl Into<Bytes>) -> usize {
        let is = |feed: &record::Stream| {
            feed.session.as_deref() == Some(session) && feed.call.as_ref() == Some(id)
        };
        self.feed_where(&text.into(), is)
    }

    fn feed_where(&self, text: &Bytes, wanted: impl Fn(&record::Stream) -> bool) -> usize {
        let state = self.state();
        let feeds = state.feeds.iter().filter(|feed| wanted(feed));
        feeds.filter(|feed| feed.events.try_send(Ok(text.clone())).is_ok()).count()
    }

    /// Ends every stream that is fed as HTTP asks for, whatever it was to carry.
    pub fn end_feeds(&self) {
        self.state().feeds.clear();
    }

    /// Ends every GET stream as HTTP asks for.
    pub fn end_streams(&self) {
        self.state().streams.clear();
    }

    /// Every request, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// The requests of a JSON-RPC method (`tools/call`), or without one of an HTTP verb (`DELETE`), oldest first.
    pub fn seen(&self, kind: &str) -> Vec<Seen> {
        self.state().seen.iter().filter(|seen| seen.kind() == kind).cloned().collect()
    }

    /// The answers that were posted to requests of this server.
    pub fn answers(&self) -> Vec<Value> {
        let is_answer = |seen: &&Seen| seen.verb == Method::POST && seen.method().is_none();
        self.state().seen.iter().filter(is_answer).map(|seen| seen.message.clone()).collect()
    }

    /// How often a JSON-RPC method or an HTTP verb was seen.
    pub fn count(&self, kind: &str) -> usize {
        self.state().count(kind)
    }

    /// The ids of the sessions that are open, in order of their issue.
    pub fn open_sessions(&self) -> Vec<String> {
        self.state().sessions.keys().cloned().collect()
    }

    /// The numbers, now.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            initializes: state.count("initialize"),
            open_sessions: state.sessions.len(),
            deletes: state.count("DELETE"),
            connections: self.server.accepted(),
            open_connections: self.server.open(),
            streams: state.streams.iter().filter(|stream| !stream.events.is_closed()).count(),
            feeds: state.feeds.iter().filter(|feed| !feed.events.is_closed()).count(),
            fed: state.fed,
            waiting: state.waiting,
        }
    }

    /// Waits until requests of a kind were seen so many times.
    pub async fn until_seen(&self, kind: &str, times: usize) -> Result<(), Overdue> {
        self.until(&format!("{times} × {kind}"), |server| server.count(kind) >= times).await
    }

    /// Waits until so many GET streams are open.
    pub async fn until_streams(&self, streams: usize) -> Result<(), Overdue> {
        self.until(&format!("{streams} streams"), |server| server.counts().streams == streams).await
    }

    /// Waits until so many streams of calls are fed.
    pub async fn until_feeds(&self, feeds: usize) -> Result<(), Overdue> {
        self.until(&format!("{feeds} feeds"), |server| server.counts().feeds == feeds).await
    }

    /// Waits until so many streams of calls were ever fed.
    pub async fn until_fed(&self, fed: usize) -> Result<(), Overdue> {
        self.until(&format!("{fed} feeds in all"), |server| server.counts().fed >= fed).await
    }

    /// Waits until a condition on this server holds; `what` names it where it never does.
    pub async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) -> Result<(), Overdue> {
        let mut changes = self.endpoint.changes();
        let come = async {
            // Connections and streams end without a request that would tell: look again now and then.
            let mut again = tokio::time::interval(Duration::from_millis(20));
            while !condition(self) {
                tokio::select! {
                    _ = again.tick() => {}
                    changed = changes.changed() => if changed.is_err() { return },
                }
            }
        };
        let overdue = || Overdue {
            what: what.to_owned(),
            seen: self.requests().iter().map(|seen| seen.kind().to_owned()).collect(),
        };
        tokio::time::timeout(PATIENCE, come).await.map_err(|_| overdue())
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, record::State> {
        self.endpoint.state.lock()
    }
}

/// Tells those who wait that something was recorded.
type Changes = watch::Sender<u64>;

/// What the endpoint shares with the test.
type Shared = Mutex<record::State>;
