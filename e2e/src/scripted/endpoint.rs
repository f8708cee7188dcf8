//! The scripted server's MCP endpoint: records a request, then answers it by the script. What a tool does is in `call`.

use std::{future::pending, sync::Arc};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use super::{
    Changes, Shared, call,
    record::{Seen, Session, State, Stream},
    script::{
        Get, Interference, LostSession, NotificationAnswer, RawAnswer, Script, Sessions, Tool, Version,
    },
};
use crate::{
    http::{BodySender, Cut, Handler, Reply, ReplyBody, empty, event_stream, json, reply},
    jsonrpc,
};

/// The endpoint, shared by its connections and the test.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) state: Shared,
    changes: Changes,
    releases: watch::Sender<u64>,
}

/// Counts a request as waiting until its answer's headers go out, or its client goes.
struct Waiting<'a>(&'a Endpoint);

// === impl Endpoint ===

impl Endpoint {
    pub(super) fn new(script: Script) -> Self {
        Self {
            state: Shared::new(State::new(script)),
            changes: Changes::new(0),
            releases: watch::Sender::new(0),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(super) fn release(&self) {
        self.releases.send_modify(|count| *count += 1);
    }

    /// The ordinary answer to a request.
    async fn answer(self: &Arc<Self>, seen: Seen, released: watch::Receiver<u64>) -> Reply {
        if seen.method() == Some("initialize") {
            return self.initialize(&seen);
        }
        if let Some(refusal) = self.refuse(&seen) {
            return refusal;
        }
        if seen.verb == Method::GET {
            return self.open_stream(&seen).await;
        }
        if seen.verb == Method::DELETE {
            self.state.lock().end(seen.session.as_deref());
            return empty(StatusCode::OK);
        }
        match (seen.id(), seen.method()) {
            (Some(id), Some("ping")) => json(StatusCode::OK, jsonrpc::result(id, "{}")),
            (Some(id), Some("tools/list")) => self.list(id, &seen, "tools"),
            (Some(id), Some("prompts/list")) => self.list(id, &seen, "prompts"),
            (Some(id), Some("resources/list")) => self.list(id, &seen, "resources"),
            (Some(id), Some("resources/templates/list")) => self.list(id, &seen, "resourceTemplates"),
            (Some(_), Some("tools/call")) => call::call(self, &seen, released).await,
            (Some(id), Some(method)) => {
                let known = self.state.lock().script.results.get(method).map(Value::to_string);
                let answer = known.map_or_else(
                    || jsonrpc::error(id, -32601, &format!("no method {method}")),
                    |known| jsonrpc::result(id, &known),
                );
                json(StatusCode::OK, answer)
            }
            (None | Some(_), None) => {
                let mut state = self.state.lock();
                state.answered(&seen);
                acknowledge(state.script.notifications)
            }
            (None, Some(_)) => acknowledge(self.state.lock().script.notifications),
        }
    }

    fn initialize(&self, seen: &Seen) -> Reply {
        let mut state = self.state.lock();
        let asked = seen.message.pointer("/params/protocolVersion").and_then(Value::as_str);
        let version = match (&state.script.protocol_version, asked) {
            (Version::Always(version), _) => version.clone(),
            (Version::AsRequested, asked) => asked.unwrap_or("2025-11-25").to_owned(),
        };
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": state.script.capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        });
        if let (Some(result), Some(instructions)) = (result.as_object_mut(), &state.script.instructions) {
            result.insert("instructions".into(), json!(instructions));
        }
        let capabilities = seen.message.pointer("/params/capabilities").cloned().unwrap_or_default();
        let mut reply =
            json(StatusCode::OK, jsonrpc::result(seen.id().unwrap_or(&Value::Null), &result.to_string()));
        if state.script.sessions == Sessions::Issued
            && let Ok(id) = HeaderValue::from_str(&state.begin(capabilities))
        {
            reply.headers_mut().insert("mcp-session-id", id);
        }
        reply
    }

    /// What a request gets that lacks its session, or names one this server does not know.
    fn refuse(&self, seen: &Seen) -> Option<Reply> {
        let state = self.state.lock();
        let id = seen.id().unwrap_or(&Value::Null);
        match (state.script.sessions, &seen.session) {
            (Sessions::Withheld, _) => None,
            (Sessions::Issued, None) => {
                Some(json(StatusCode::BAD_REQUEST, jsonrpc::error(id, -32600, "Mcp-Session-Id is required")))
            }
            (Sessions::Issued, Some(session)) if state.sessions.contains_key(session) => None,
            (Sessions::Issued, Some(_)) => Some(lost(&state.script.lost_session, id)),
        }
    }

    async fn open_stream(&self, seen: &Seen) -> Reply {
        let get = self.state.lock().script.get;
        match get {
            Get::MethodNotAllowed => empty(StatusCode::METHOD_NOT_ALLOWED),
            Get::Silence => pending().await,
            Get::Stream => {
                let (events, reply) = event_stream();
                let mut state = self.state.lock();
                state.prime(&events);
                state.streams.retain(|stream| !stream.events.is_closed());
                state.streams.push(Stream { session: seen.session.clone(), call: None, events });
                reply
            }
        }
    }

    /// A page of a list; the cursor is the index that the page begins with.
    fn list(&self, id: &Value, seen: &Seen, member: &str) -> Reply {
        let state = self.state.lock();
        let cursor = seen.message.pointer("/params/cursor").and_then(Value::as_str);
        let Ok(start) = cursor.map_or(Ok(0), str::parse::<usize>) else {
            return json(StatusCode::OK, jsonrpc::error(id, -32602, "the cursor is none of this server's"));
        };
        let items = match member {
            "prompts" => state.script.prompts.clone(),
            "resources" => state.script.resources.clone(),
            "resourceTemplates" => state.script.templates.clone(),
            _ => state.tools(seen.session.as_deref()).map(listed).collect(),
        };
        let size = state.script.page_size.unwrap_or(items.len());
        let page: Vec<&Value> = items.iter().skip(start).take(size).collect();
        let mut result = json!({member: page});
        if let (Some(result), true) = (result.as_object_mut(), start + size < items.len()) {
            result.insert("nextCursor".into(), json!((start + size).to_string()));
        }
        json(StatusCode::OK, jsonrpc::result(id, &result.to_string()))
    }
}

/// A tool as it is listed.
fn listed(tool: &Tool) -> Value {
    let description = format!("Scripted: {}", tool.name);
    json!({"name": tool.name, "description": description, "inputSchema": {"type": "object"}})
}

impl Handler for Endpoint {
    async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        // Before the request is recorded: a test that sees it may release at once.
        let mut released = self.releases.subscribe();
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return empty(StatusCode::BAD_REQUEST) };
        let body = body.to_bytes();
        let header = parts.headers.get("mcp-session-id").and_then(|value| value.to_str().ok());
        let seen = Seen {
            verb: parts.method,
            path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            session: header.map(ToOwned::to_owned),
            message: serde_json::from_slice(&body).unwrap_or_default(),
            headers: parts.headers,
            body,
        };
        let interference = {
            let mut state = self.state.lock();
            state.seen.push(seen.clone());
            state.interference(seen.kind())
        };
        let _waiting = Waiting::count(&self);
        if parts.uri.path() != "/mcp" {
            return empty(StatusCode::NOT_FOUND);
        }
        match interference {
            Some(Interference::Hang) => return pending().await,
            Some(Interference::Hold) => drop(released.changed().await),
            Some(Interference::Delay(delay)) => drop(timeout(delay, released.changed()).await),
            Some(Interference::Answer(answer)) => return raw(&answer),
            Some(Interference::Cut) => return cut().await,
            None => {}
        }
        self.answer(seen, released).await
    }
}

/// An answer as the test wrote it.
pub(super) fn raw(answer: &RawAnswer) -> Reply {
    let mut built = reply(answer.status, None, Some(Bytes::from(answer.body.clone())));
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
            built.headers_mut().append(name, value);
        }
    }
    built
}

/// A body that fails before its first byte, which cuts the connection before any header is out.
async fn cut() -> Reply {
    let (body, stream) = ReplyBody::stream();
    // The receiver is in our hands, and the channel is empty: this cannot wait.
    drop(body.send(Err(Cut)).await);
    Reply::new(stream)
}

fn acknowledge(answer: NotificationAnswer) -> Reply {
    match answer {
        NotificationAnswer::Accepted => empty(StatusCode::ACCEPTED),
        NotificationAnswer::AcceptedAsJson => reply(StatusCode::ACCEPTED, Some("application/json"), None),
        NotificationAnswer::NoContent => empty(StatusCode::NO_CONTENT),
        NotificationAnswer::EmptyOk => empty(StatusCode::OK),
        NotificationAnswer::NullOk => json(StatusCode::OK, "null"),
    }
}

fn lost(lost: &LostSession, id: &Value) -> Reply {
    match lost {
        LostSession::NotFound => json(StatusCode::NOT_FOUND, jsonrpc::error(id, -32001, "Session not found")),
        LostSession::BadRequest(text) => json(StatusCode::BAD_REQUEST, jsonrpc::error(id, -32000, text)),
        LostSession::Error(status, code, text) => json(*status, jsonrpc::error(id, *code, text)),
    }
}

// === impl Waiting ===

impl<'a> Waiting<'a> {
    fn count(endpoint: &'a Endpoint) -> Self {
        endpoint.state.lock().waiting += 1;
        endpoint.changed();
        Self(endpoint)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
        self.0.changed();
    }
}

// === impl State ===

impl State {
    /// Begins a session and returns its id.
    fn begin(&mut self, capabilities: Value) -> String {
        self.sessions_begun += 1;
        let id = format!("scripted-session-{:06}", self.sessions_begun);
        self.sessions.insert(id.clone(), Session { capabilities, ..Session::default() });
        id
    }

    /// Ends a session and its streams.
    fn end(&mut self, session: Option<&str>) {
        if let Some(session) = session {
            self.sessions.remove(session);
            self.streams.retain(|stream| stream.session.as_deref() != Some(session));
        }
    }

    /// Begins a stream with an empty event where events have ids.
    pub(super) fn prime(&mut self, events: &BodySender) {
        if let Some(id) = self.event_id() {
            // A new stream's channel is empty.
            drop(events.try_send(Ok(Bytes::from(format!("id: {id}\ndata: \n\n")))));
        }
    }
}
