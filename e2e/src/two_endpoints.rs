//! An MCP server over HTTP+SSE, the transport of 2024-11-05 with two endpoints: answers come on the event stream that a
//! session began with, never on the POST that asked. Records what it was asked with.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    http::{BodySender, Handler, Reply, Server, empty, event_stream},
    jsonrpc, process,
};

/// How long a condition may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the `endpoint` event says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Named {
    /// A path.
    #[default]
    Path,
    /// A whole URL of this server.
    Url,
    /// A URL of somebody else.
    Foreign,
    /// There is no such event.
    Never,
}

/// A request that was made.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The verb.
    pub verb: Method,
    /// Path and query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// The message that it carried, or null.
    pub message: Value,
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct TwoEndpoints {
    server: Server,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    named: Named,
    asked: Mutex<Vec<Asked>>,
    /// By session, the sender of its stream and how often it has counted.
    sessions: Mutex<HashMap<String, (BodySender, u64)>>,
}

// === impl TwoEndpoints ===

impl TwoEndpoints {
    /// Listens on a free port of the loopback address.
    pub async fn start(named: Named) -> io::Result<Self> {
        let state = Arc::new(State { named, ..State::default() });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self { server: Server::start(address, Arc::clone(&state)).await?, state })
    }

    /// The URL of the event stream.
    pub fn url(&self) -> String {
        format!("http://{}/sse", self.server.address())
    }

    /// The requests so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().clone()
    }

    /// How many messages of a method came.
    pub fn count(&self, method: &str) -> usize {
        self.state.asked.lock().iter().filter(|asked| method_of(&asked.message) == method).count()
    }

    /// Says a message on the stream of the session that called last; false where that has none.
    pub fn say(&self, message: &Value) -> bool {
        let asked = self.asked();
        let called = asked.iter().rev().find(|asked| method_of(&asked.message) == "tools/call");
        let session = called.and_then(|called| called.path.split_once('=')).map(|(_, session)| session);
        let sessions = self.state.sessions.lock();
        let sender = session.and_then(|session| sessions.get(session)).map(|(sender, _)| sender);
        let event = jsonrpc::event(None, &message.to_string());
        sender.is_some_and(|sender| sender.try_send(Ok(event)).is_ok())
    }

    /// Ends every event stream.
    pub fn end_streams(&self) {
        self.state.sessions.lock().clear();
    }

    /// Waits until so many messages of a method came.
    pub async fn until_seen(&self, method: &str, times: usize) -> Option<()> {
        process::poll(PATIENCE, async || (self.count(method) >= times).then_some(())).await
    }

    /// Waits until so many streams are open.
    pub async fn until_streams(&self, count: usize) -> Option<()> {
        let open = async || {
            let mut sessions = self.state.sessions.lock();
            sessions.retain(|_, (sender, _)| !sender.is_closed());
            (sessions.len() == count).then_some(())
        };
        process::poll(PATIENCE, open).await
    }
}

fn method_of(message: &Value) -> &str {
    message.get("method").and_then(Value::as_str).unwrap_or_default()
}

fn text_at<'a>(message: &'a Value, pointer: &str) -> &'a str {
    message.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

// === impl State ===

impl Handler for State {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return empty(StatusCode::BAD_REQUEST) };
        let message: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let host =
            head.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
        self.asked.lock().push(Asked {
            verb: head.method.clone(),
            path,
            headers: head.headers,
            message: message.clone(),
        });
        match (head.method, head.uri.path()) {
            (Method::GET, "/sse") => self.open(&host).await,
            (Method::POST, "/messages") => {
                let session =
                    head.uri.query().and_then(|query| query.strip_prefix("session=")).unwrap_or_default();
                self.take(session, &message).await
            }
            (Method::POST, _) => empty(StatusCode::METHOD_NOT_ALLOWED),
            _ => empty(StatusCode::NOT_FOUND),
        }
    }
}

impl State {
    async fn open(&self, host: &str) -> Reply {
        let (sender, reply) = event_stream();
        let session = format!("s{}", self.asked.lock().len());
        let path = format!("/messages?session={session}");
        let named = match self.named {
            Named::Path => path,
            Named::Url => format!("http://{host}{path}"),
            Named::Foreign => format!("http://elsewhere.example{path}"),
            Named::Never => String::new(),
        };
        let event = if named.is_empty() {
            ": hello\n\n".to_owned()
        } else {
            format!("event: endpoint\ndata: {named}\n\n")
        };
        // A reader that has left is seen at the next message.
        drop(sender.send(Ok(Bytes::from(event))).await);
        self.sessions.lock().insert(session, (sender, 0));
        reply
    }

    async fn take(&self, session: &str, message: &Value) -> Reply {
        let Some(sender) = self.sessions.lock().get(session).map(|(sender, _)| sender.clone()) else {
            return empty(StatusCode::NOT_FOUND);
        };
        for said in self.answers(session, message) {
            drop(sender.send(Ok(jsonrpc::event(None, &said))).await);
        }
        empty(StatusCode::ACCEPTED)
    }

    /// What is said on the stream to a message.
    fn answers(&self, session: &str, message: &Value) -> Vec<String> {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            return Vec::new();
        };
        match (method_of(message), text_at(message, "/params/name")) {
            ("initialize", _) => vec![jsonrpc::result(
                id,
                &json!({
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "two endpoints", "version": "1"},
                })
                .to_string(),
            )],
            ("tools/list", _) => {
                let tools = ["count", "progress", "ping", "vanish", "hold"]
                    .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
                vec![jsonrpc::result(id, &json!({"tools": tools}).to_string())]
            }
            ("tools/call", "count") => {
                let mut sessions = self.sessions.lock();
                let count = sessions.get_mut(session).map_or(0, |(_, count)| {
                    *count += 1;
                    *count
                });
                vec![jsonrpc::result(id, &jsonrpc::text(&count.to_string()))]
            }
            ("tools/call", "progress") => {
                let token = message.pointer("/params/_meta/progressToken");
                let progress = json!({"progressToken": token, "progress": 1});
                vec![
                    jsonrpc::notification("notifications/progress", &progress),
                    jsonrpc::result(id, &jsonrpc::text("done")),
                ]
            }
            ("tools/call", "ping") => {
                let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}).to_string();
                vec![ping, jsonrpc::result(id, &jsonrpc::text("pinged"))]
            }
            // The test says the answer.
            ("tools/call", "hold") => Vec::new(),
            ("tools/call", "vanish") => {
                self.sessions.lock().remove(session);
                Vec::new()
            }
            _ => vec![jsonrpc::error(id, -32601, "Method not found")],
        }
    }
}
