//! What tests of requests to clients begin with: two scripted targets whose calls the test feeds, and the messages that
//! both sides write. It judges nothing.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    client::{ClientError, Events, Session},
    manifest,
    moored::{Moored, MooredError},
    scripted::{Behaviour, Overdue, Script, ScriptedServer, Tool},
};

/// Two targets, `a` and `b`, behind a gateway. Their tools `fed`, `slow` and `echo` do what their names say.
#[derive(Debug)]
pub struct Scene {
    /// One target.
    pub a: ScriptedServer,
    /// The other.
    pub b: ScriptedServer,
    /// The daemon.
    pub moored: Moored,
}

impl Scene {
    /// Starts all three; `timeouts` is what the targets' `timeouts` say, as YAML within its braces.
    pub async fn start(timeouts: &str) -> Result<Self, MooredError> {
        let script = || {
            let mut tools = Script::default().tools;
            tools.push(Tool::new("fed", Behaviour::Fed));
            let capabilities = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
            Script { capabilities, tools, ..Script::default() }
        };
        let (a, b) = (ScriptedServer::start(script()).await, ScriptedServer::start(script()).await);
        let targets = manifest::target("a", "tools", &a.url()) + &manifest::target("b", "tools", &b.url());
        let targets = targets.replace("spec: {", &format!("spec: {{timeouts: {{{timeouts}}}, "));
        let moored = Moored::serve(manifest::gateway("tools") + &targets).await?;
        Ok(Self { a, b, moored })
    }

    /// A session whose client announces that it can be asked everything.
    pub async fn session(&self) -> Result<Session, ClientError> {
        self.moored.client()?.initialize_as(everything()).await
    }
}

/// What a client announces that can be asked everything.
pub fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}})
}

/// Begins a fed call of `target`, of that alias, and returns its stream and the target's session.
pub async fn begin(
    session: &Session,
    target: (&ScriptedServer, &str),
    id: &Value,
    token: Option<&Value>,
) -> Result<(Events, String), Box<dyn std::error::Error>> {
    let (server, alias) = target;
    let fed = server.counts().fed;
    let events = session.open(call(id, &format!("{alias}___fed"), token)).await?;
    if events.status != StatusCode::OK {
        return Err(events.collect().await?.unexpected().into());
    }
    server.until_fed(fed + 1).await?;
    let called = server.seen("tools/call").pop().and_then(|seen| seen.session);
    Ok((events, called.ok_or("a call outside of any session")?))
}

/// Uses a target once, so that it has a session of this client's; its id.
pub async fn use_once(
    session: &Session,
    (server, alias): (&ScriptedServer, &str),
) -> Result<String, Box<dyn std::error::Error>> {
    session.post(call(&json!("first"), &format!("{alias}___echo"), None)).await?;
    Ok(server.seen("tools/call").pop().and_then(|seen| seen.session).ok_or("no session")?)
}

/// Says a message on the GET stream of a session of `server`'s, once it is open.
pub async fn say(server: &ScriptedServer, session: &str, message: &Value) -> Result<(), Overdue> {
    let message = message.to_string();
    server.until("a GET stream of the session", |server| server.push_to(session, &message) == 1).await
}

/// A call under an id, with the progress token that it may have.
pub fn call(id: &Value, tool: &str, token: Option<&Value>) -> String {
    let meta = token.map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    request(id, "tools/call", &json!({"name": tool, "arguments": {}, "_meta": meta})).to_string()
}

/// A request.
pub fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A notification.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A report of progress.
pub fn progress(token: &Value, step: u64) -> Value {
    notification("notifications/progress", &json!({"progressToken": token, "progress": step}))
}

/// A result that tells itself from others by `text`.
pub fn result(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

/// An event that carries a message.
pub fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// The next message of a GET stream that is not of lists, which are other tests' matter.
pub async fn news(events: &mut Events) -> Result<Value, ClientError> {
    loop {
        let message = events.next_message().await?.unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        if !method.is_some_and(|method| method.ends_with("/list_changed")) {
            return Ok(message);
        }
    }
}

/// Nothing but comments comes on a stream for so long.
pub async fn hears_nothing(stream: &mut Events, within: Duration) -> Result<(), ClientError> {
    loop {
        match stream.next_within(within).await {
            Ok(Some(event)) if event.data.as_deref().unwrap_or_default().is_empty() => {}
            // Something, or the end.
            Ok(event) => {
                return Err(ClientError::Unexpected { status: stream.status, body: format!("{event:?}") });
            }
            Err(ClientError::Deadline(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// The messages until the stream's end.
pub async fn rest(mut events: Events) -> Result<Vec<Value>, ClientError> {
    let mut messages = Vec::new();
    while let Some(message) = events.next_message().await? {
        messages.push(message);
    }
    Ok(messages)
}

/// The id of a request to the client, where it is one of the gateway's own: eight hexadecimal digits, a point, a number.
pub fn id_of(asked: &Value) -> Option<Value> {
    let (process, number) = asked.get("id")?.as_str()?.split_once('.')?;
    let hex = process.len() == 8 && process.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (hex && number.parse::<u64>().is_ok()).then(|| asked.get("id").cloned())?
}
