//! What a scripted server saw: every request as it came, sessions, and counters. It decides no answer.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::sync::oneshot;

use super::script::{Interference, Script, Tool};
use crate::http::BodySender;

/// A request that reached the server, as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// GET, POST, DELETE or whatever it was.
    pub verb: Method,
    /// Path and query.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, byte by byte.
    pub body: Bytes,
    /// The body read as JSON, or null where it is none.
    pub message: Value,
    /// The `Mcp-Session-Id` it carried.
    pub session: Option<String>,
}

/// Numbers about what a server saw, taken at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// `initialize` requests, answered or not.
    pub initializes: usize,
    /// Sessions that were issued and neither deleted nor forgotten.
    pub open_sessions: usize,
    /// DELETE requests.
    pub deletes: usize,
    /// Connections ever accepted.
    pub connections: usize,
    /// Connections open now.
    pub open_connections: usize,
    /// GET streams open now.
    pub streams: usize,
    /// Streams of calls that are fed and open now. One that has ended counts until that is noticed.
    pub feeds: usize,
    /// Streams of calls that were ever fed.
    pub fed: usize,
    /// Requests whose answer's headers are not out yet.
    pub waiting: usize,
}

/// All that changes while a scripted server runs.
#[derive(Debug)]
pub(super) struct State {
    pub(super) script: Script,
    pub(super) seen: Vec<Seen>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) sessions_begun: usize,
    pub(super) streams: Vec<Stream>,
    pub(super) asked: Vec<Asked>,
    pub(super) feeds: Vec<Stream>,
    pub(super) fed: usize,
    pub(super) waiting: usize,
    pub(super) events: u64,
    pub(super) always: BTreeMap<String, Interference>,
    pub(super) once: BTreeMap<String, VecDeque<Interference>>,
}

/// A session that the server issued.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) counter: u64,
    /// What its client announced.
    pub(super) capabilities: Value,
}

/// An open stream: a GET's, or that of a call which the test feeds.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session: Option<String>,
    /// The id of the call; none of a GET.
    pub(super) call: Option<Value>,
    pub(super) events: BodySender,
}

/// A request to the client whose answer is awaited.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) session: Option<String>,
    pub(super) id: Value,
    pub(super) answer: oneshot::Sender<Value>,
}

// === impl Seen ===

impl Seen {
    /// The JSON-RPC method, if it has one.
    pub fn method(&self) -> Option<&str> {
        self.message.get("method").and_then(Value::as_str)
    }

    /// The JSON-RPC id, if it has one.
    pub fn id(&self) -> Option<&Value> {
        self.message.get("id")
    }

    /// A header's value as text, if it is there once and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// What this request is looked up by: its JSON-RPC method, else its verb.
    pub(super) fn kind(&self) -> &str {
        self.method().unwrap_or(self.verb.as_str())
    }
}

// === impl State ===

impl State {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            seen: Vec::new(),
            sessions: BTreeMap::new(),
            sessions_begun: 0,
            streams: Vec::new(),
            asked: Vec::new(),
            feeds: Vec::new(),
            fed: 0,
            waiting: 0,
            events: 0,
            always: BTreeMap::new(),
            once: BTreeMap::new(),
        }
    }

    /// The tools that there are in a session.
    pub(super) fn tools(&self, session: Option<&str>) -> impl Iterator<Item = &Tool> {
        let script = &self.script;
        let capabilities = session.and_then(|id| self.sessions.get(id)).map(|session| &session.capabilities);
        let announced = move |name: &str| capabilities.is_some_and(|announced| announced.get(name).is_some());
        let conditional = script.conditional_tools.iter().filter(move |(needs, _)| announced(needs));
        let own = script.session_tools.iter().filter(move |(of, _)| session == Some(of));
        script.tools.iter().chain(conditional.chain(own).map(|(_, tool)| tool))
    }

    /// How often a JSON-RPC method or an HTTP verb was seen.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.seen.iter().filter(|seen| seen.kind() == kind).count()
    }

    /// What to do with a request of this kind in place of its ordinary answer.
    pub(super) fn interference(&mut self, kind: &str) -> Option<Interference> {
        let once = self.once.get_mut(kind).and_then(VecDeque::pop_front);
        once.or_else(|| self.always.get(kind).cloned())
    }

    /// Takes an answer of the client to the one request that waits for it; others are only recorded.
    pub(super) fn answered(&mut self, seen: &Seen) {
        let asked = self.asked.iter().position(|asked| {
            asked.session == seen.session && Some(&asked.id) == seen.id() && !asked.answer.is_closed()
        });
        if let Some(asked) = asked.map(|index| self.asked.swap_remove(index)) {
            // The call that asked may be gone: then nobody wants the answer, and it stays in the record.
            drop(asked.answer.send(seen.message.clone()));
        }
    }
}
