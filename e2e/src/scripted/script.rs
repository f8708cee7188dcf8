//! What a scripted server is told to do. Only data; a test writes the fields that matter to it and takes the rest
//! from `Script::default()`.

use std::{collections::BTreeMap, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};

/// How a scripted server behaves.
#[derive(Debug, Clone)]
pub struct Script {
    /// Whether `initialize` is answered with an `Mcp-Session-Id`, which then every request must carry.
    pub sessions: Sessions,
    /// Which protocol version `initialize` is answered with.
    pub protocol_version: Version,
    /// What a GET gets.
    pub get: Get,
    /// What a request with a forgotten, ended or unknown session gets.
    pub lost_session: LostSession,
    /// What a notification or a response that is posted gets.
    pub notifications: NotificationAnswer,
    /// Whether events carry ids, and streams begin with a priming event.
    pub event_ids: EventIds,
    /// The capabilities announced, as they go into the answer.
    pub capabilities: Value,
    /// The tools, in the order of the list.
    pub tools: Vec<Tool>,
    /// Tools that are listed in sessions whose client announced a capability, behind the others.
    pub conditional_tools: Vec<(String, Tool)>,
    /// Tools that are listed in one session only, by its id, behind the others.
    pub session_tools: Vec<(String, Tool)>,
    /// The prompts, as they are listed.
    pub prompts: Vec<Value>,
    /// The resources, as they are listed.
    pub resources: Vec<Value>,
    /// The resource templates, as they are listed.
    pub templates: Vec<Value>,
    /// What requests of methods that the server does not know by itself are answered with, by method.
    pub results: BTreeMap<String, Value>,
    /// What `initialize` says to models, if anything.
    pub instructions: Option<String>,
    /// How many items a page of a list holds; all of them if none is given.
    pub page_size: Option<usize>,
}

/// Whether the server issues session ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// A new id for every `initialize`.
    Issued,
    /// No id: the server is stateless.
    Withheld,
}

/// The protocol version a server negotiates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// The one that was asked for.
    AsRequested,
    /// This one, whatever was asked for.
    Always(String),
}

/// What a GET on the endpoint gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Get {
    /// An event stream on which the test pushes.
    Stream,
    /// 405, as of a server without such a stream.
    MethodNotAllowed,
    /// Nothing at all, not even headers.
    Silence,
}

/// How a server says that it does not know a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostSession {
    /// 404, as the specification says.
    NotFound,
    /// 400 with a text, as some servers do.
    BadRequest(String),
    /// A status with a JSON-RPC error of a code and a text.
    Error(StatusCode, i64, String),
}

/// How a server acknowledges what needs no answer; only the first is by the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationAnswer {
    /// 202 without a body.
    Accepted,
    /// 202 without a body, but with a content type.
    AcceptedAsJson,
    /// 204.
    NoContent,
    /// 200 without a body.
    EmptyOk,
    /// 200 with the JSON text `null`.
    NullOk,
}

/// Whether events have ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventIds {
    /// None.
    Absent,
    /// Each has one, and a stream begins with an empty event that has one.
    Present,
}

/// A tool of the list.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The name it is listed and called by.
    pub name: String,
    /// What a call of it does.
    pub behaviour: Behaviour,
}

/// What a call of a tool does.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Answers in JSON, the arguments spelt as they came (`structuredContent.arguments`).
    Echo,
    /// The same as an event stream, after so many log notifications (argument `notifications` overrides).
    EchoStream(usize),
    /// Answers after `milliseconds` of the arguments, or when the test releases; without the argument only then.
    Slow,
    /// Never answers, not even with headers.
    Hang,
    /// Opens a stream and never says a word on it.
    HangOnStream,
    /// Opens a stream on which comes what the test feeds, until the test ends it.
    Fed,
    /// Sends a request of this id and method on the call's stream, waits for the answer, and returns it as text.
    Ask(Value, String),
    /// Reports so many steps of progress on the token of the call, then answers.
    Progress(usize),
    /// Answers how many times it was called in this session.
    Counter,
    /// Answers with a text of so many bytes (argument `bytes` overrides).
    Big(usize),
    /// Cuts the connection in the middle of a JSON answer.
    Die,
    /// Cuts the connection after one event of a stream.
    DieOnStream,
    /// Answers with this result, in JSON.
    Result(Value),
    /// Answers with a JSON-RPC error.
    Fail(i64, String),
    /// Answers with exactly this, whatever was asked.
    Raw(RawAnswer),
}

/// An answer given as it is, for servers that lie.
#[derive(Debug, Clone)]
pub struct RawAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers, `Content-Type` among them if there shall be one.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// What happens to a request in place of its ordinary answer.
#[derive(Debug, Clone)]
pub enum Interference {
    /// No answer, ever.
    Hang,
    /// The ordinary answer, once the test releases.
    Hold,
    /// The ordinary answer, but so much later (or when the test releases).
    Delay(Duration),
    /// This answer.
    Answer(RawAnswer),
    /// The connection is cut before any answer.
    Cut,
}

// === impl Script ===

impl Default for Script {
    fn default() -> Self {
        let tools = [
            ("echo", Behaviour::Echo),
            ("echo_sse", Behaviour::EchoStream(3)),
            ("slow", Behaviour::Slow),
            ("hang", Behaviour::Hang),
            ("hang_sse", Behaviour::HangOnStream),
            ("ask", Behaviour::Ask(json!(0), "sampling/createMessage".into())),
            ("progress", Behaviour::Progress(3)),
            ("counter", Behaviour::Counter),
            ("big", Behaviour::Big(1 << 20)),
            ("die", Behaviour::Die),
            ("die_sse", Behaviour::DieOnStream),
            ("fail", Behaviour::Fail(-32000, "the tool failed on purpose".into())),
        ];
        Self {
            sessions: Sessions::Issued,
            protocol_version: Version::AsRequested,
            get: Get::Stream,
            lost_session: LostSession::NotFound,
            notifications: NotificationAnswer::Accepted,
            event_ids: EventIds::Absent,
            capabilities: json!({"tools": {"listChanged": true}}),
            tools: tools.map(|(name, behaviour)| Tool::new(name, behaviour)).into(),
            conditional_tools: Vec::new(),
            session_tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            results: BTreeMap::new(),
            instructions: None,
            page_size: None,
        }
    }
}

impl Script {
    /// A server whose tools are these names, each an echo.
    pub fn echoing(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tools = names.into_iter().map(|name| Tool::new(name, Behaviour::Echo)).collect();
        Self { tools, ..Self::default() }
    }

    /// A server that announces tools, prompts and resources and their changes, with one prompt, one resource and one
    /// template under these names.
    pub fn offering(tool: &str, prompt: &str, resource: &str, template: &str) -> Self {
        let changes = json!({"listChanged": true});
        Self {
            capabilities: json!({"tools": changes, "prompts": changes, "resources": changes}),
            prompts: vec![json!({"name": prompt})],
            resources: vec![json!({"uri": resource, "name": "r"})],
            templates: vec![json!({"uriTemplate": template, "name": "t"})],
            ..Self::echoing([tool])
        }
    }
}

// === impl Tool ===

impl Tool {
    /// A tool of this name and behaviour.
    pub fn new(name: impl Into<String>, behaviour: Behaviour) -> Self {
        Self { name: name.into(), behaviour }
    }
}

// === impl RawAnswer ===

impl RawAnswer {
    /// A bare status.
    pub fn status(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    /// 200 with this text as JSON.
    pub fn json(body: impl Into<String>) -> Self {
        let headers = vec![("content-type".into(), "application/json".into())];
        Self { status: StatusCode::OK, headers, body: body.into() }
    }

    /// The same with another header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}
