//! A small MCP server: the target of the quickstart. Streamable HTTP of the legacy era, answers in JSON only, with a few
//! tools that need nothing from outside; see `example/tools.rs`.

mod tools;

use std::{
    collections::{HashSet, VecDeque},
    io,
    net::SocketAddr,
    sync::Arc,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    http::{Handler, Reply, Server, empty, json},
    jsonrpc,
};

/// The versions of the protocol it speaks, the newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// How many sessions it remembers: the oldest makes room for one more.
const SESSIONS_HELD: usize = 1024;

/// How large a request may be.
const REQUEST_BYTES: usize = 1 << 20;

const SESSION_ID: &str = "mcp-session-id";

/// A running example server; it ends when dropped.
#[derive(Debug)]
pub struct ExampleServer(Server);

#[derive(Debug, Default)]
struct Example {
    sessions: Mutex<Sessions>,
    /// Headers that a caller may be shown of its own request.
    shown: Vec<HeaderName>,
}

/// The ids that were issued, and in which order.
#[derive(Debug, Default)]
struct Sessions {
    known: HashSet<String>,
    by_age: VecDeque<String>,
}

// === impl ExampleServer ===

impl ExampleServer {
    /// Listens on an address.
    pub async fn start(address: SocketAddr) -> io::Result<Self> {
        Self::start_showing(address, Vec::new()).await
    }

    /// The same with a tool that shows these headers, for whoever wants to know what a gateway asks with.
    pub async fn start_showing(address: SocketAddr, shown: Vec<HeaderName>) -> io::Result<Self> {
        let example = Example { shown, ..Example::default() };
        Ok(Self(Server::start(address, Arc::new(example)).await?))
    }

    /// The URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.0.address())
    }

    /// Stops listening and waits until all of it has ended.
    pub async fn stop(self) {
        self.0.stop().await;
    }
}

// === impl Example ===

impl Example {
    fn answer(&self, headers: &HeaderMap, verb: &Method, body: &[u8]) -> Reply {
        let message: Value = match *verb {
            Method::POST => match serde_json::from_slice(body) {
                Ok(message) => message,
                Err(_) => return refuse(StatusCode::BAD_REQUEST, &Value::Null, -32700, "this is no JSON"),
            },
            Method::DELETE => Value::Null,
            _ => return empty(StatusCode::METHOD_NOT_ALLOWED),
        };
        let (id, method) = (message.get("id"), message.get("method").and_then(Value::as_str));
        if let (Some(id), Some("initialize")) = (id, method) {
            return self.initialize(id, &message);
        }
        let blame = id.unwrap_or(&Value::Null);
        let Some(session) = headers.get(SESSION_ID).and_then(|session| session.to_str().ok()) else {
            return refuse(
                StatusCode::BAD_REQUEST,
                blame,
                -32600,
                "Mcp-Session-Id is missing: initialize first",
            );
        };
        if !self.sessions.lock().known.contains(session) {
            return refuse(StatusCode::NOT_FOUND, blame, -32001, "no such session: initialize again");
        }
        if verb == Method::DELETE {
            self.sessions.lock().end(session);
            return empty(StatusCode::OK);
        }
        match (id, method) {
            (Some(id), Some("ping")) => json(StatusCode::OK, jsonrpc::result(id, "{}")),
            (Some(id), Some("tools/list")) => {
                json(StatusCode::OK, jsonrpc::result(id, &tools::list(!self.shown.is_empty()).to_string()))
            }
            (Some(id), Some("tools/call")) => {
                let shown = |name: &str| {
                    let shown = self.shown.iter().find(|shown| shown.as_str().eq_ignore_ascii_case(name))?;
                    headers.get(shown)?.to_str().ok().map(str::to_owned)
                };
                let header: Option<&tools::Shown<'_>> =
                    if self.shown.is_empty() { None } else { Some(&shown) };
                let answer = match tools::call(message.get("params").unwrap_or(&Value::Null), header) {
                    Ok(result) => jsonrpc::result(id, &result.to_string()),
                    Err(unknown) => jsonrpc::error(id, -32602, &unknown.to_string()),
                };
                json(StatusCode::OK, answer)
            }
            (Some(id), Some(_)) => refuse(StatusCode::OK, id, -32601, "no such method"),
            // Notifications, and answers to requests that this server never makes.
            (None, _) | (Some(_), None) => empty(StatusCode::ACCEPTED),
        }
    }

    fn initialize(&self, id: &Value, message: &Value) -> Reply {
        let asked = message.pointer("/params/protocolVersion").and_then(Value::as_str);
        let version = VERSIONS.into_iter().find(|version| Some(*version) == asked);
        let result = json!({
            "protocolVersion": version.unwrap_or("2025-11-25"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "example-server", "version": env!("CARGO_PKG_VERSION")},
        });
        let mut random = [0; 16];
        let session = getrandom::fill(&mut random)
            .ok()
            .and_then(|()| HeaderValue::from_str(&format!("{:032x}", u128::from_be_bytes(random))).ok());
        let Some(session) = session else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, id, -32603, "the system gives no random numbers");
        };
        self.sessions.lock().begin(session.to_str().unwrap_or_default());
        let mut reply = json(StatusCode::OK, jsonrpc::result(id, &result.to_string()));
        reply.headers_mut().insert(SESSION_ID, session);
        reply
    }
}

impl Handler for Example {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        if parts.uri.path() != "/mcp" {
            return empty(StatusCode::NOT_FOUND);
        }
        // A page of a browser has no business here; programs send no Origin.
        if parts.headers.contains_key(header::ORIGIN) {
            return empty(StatusCode::FORBIDDEN);
        }
        match Limited::new(body, REQUEST_BYTES).collect().await {
            Ok(body) => self.answer(&parts.headers, &parts.method, &body.to_bytes()),
            Err(_) => empty(StatusCode::PAYLOAD_TOO_LARGE),
        }
    }
}

fn refuse(status: StatusCode, id: &Value, code: i64, message: &str) -> Reply {
    json(status, jsonrpc::error(id, code, message))
}

// === impl Sessions ===

impl Sessions {
    fn begin(&mut self, id: &str) {
        if self.by_age.len() == SESSIONS_HELD
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(id.to_owned());
        self.by_age.push_back(id.to_owned());
    }

    fn end(&mut self, id: &str) {
        self.known.remove(id);
        self.by_age.retain(|known| known != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_session_makes_room_and_an_ended_one_is_forgotten() {
        let mut sessions = Sessions::default();
        for id in 0..=SESSIONS_HELD {
            sessions.begin(&id.to_string());
        }
        assert!(!sessions.known.contains("0") && sessions.known.contains("1"));
        sessions.end("1");
        assert!(!sessions.known.contains("1"));
        assert_eq!((sessions.known.len(), sessions.by_age.len()), (SESSIONS_HELD - 1, SESSIONS_HELD - 1));
    }
}
