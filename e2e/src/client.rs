//! A raw MCP client over HTTP: it sends what a test says and returns what came, as it came. It corrects nothing,
//! repeats nothing, and every wait of it is bounded.

mod answer;
mod session;
mod sse;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

pub use self::{
    answer::Answer,
    session::Session,
    sse::{Event, Events},
};

/// The protocol version that a client asks for unless told otherwise.
pub const PROTOCOL_VERSION: &str = "2025-11-25";

/// How long an answer may take unless the client is told otherwise.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be read.
    #[error("{0} is not a URL")]
    Url(String),
    /// What was to be sent is no HTTP request.
    #[error("the request cannot be built")]
    Request(#[from] http::Error),
    /// The connection failed before the answer's headers.
    #[error("no answer came")]
    Send(#[from] legacy::Error),
    /// The connection failed within the answer's body.
    #[error("the answer broke off")]
    Body(#[from] hyper::Error),
    /// The answer, or the next event, took too long.
    #[error("nothing came within {0:?}")]
    Deadline(Duration),
    /// The answer is not the one that the call is for.
    #[error("{status} with {body:?} is not what was asked for")]
    Unexpected {
        /// The answer's status.
        status: http::StatusCode,
        /// The answer's body as text.
        body: String,
    },
}

/// A client of one endpoint.
#[derive(Debug, Clone)]
pub struct Client {
    url: Uri,
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    headers: HeaderMap,
    deadline: Duration,
}

// === impl Client ===

impl Client {
    /// A client that keeps its connections.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_idle_connections(url, usize::MAX)
    }

    /// A client that opens a new connection for every request.
    pub fn with_fresh_connections(url: &str) -> Result<Self, ClientError> {
        Self::with_idle_connections(url, 0)
    }

    fn with_idle_connections(url: &str, idle: usize) -> Result<Self, ClientError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let http =
            legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(idle).build(connector);
        let url = url.parse().map_err(|_| ClientError::Url(url.to_owned()))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { url, http, headers, deadline: DEADLINE })
    }

    /// The same client with a header on all requests, in place of its own of that name.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Result<Self, ClientError> {
        self.headers.insert(name, HeaderValue::from_str(value).map_err(http::Error::from)?);
        Ok(self)
    }

    /// The same client with none of its own headers of that name.
    pub fn without_header(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    /// The same client with another deadline on every wait.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// A request to the endpoint with the client's headers, to be completed.
    pub fn request(&self, verb: Method) -> http::request::Builder {
        let mut request = Request::builder().method(verb).uri(self.url.clone());
        if let Some(headers) = request.headers_mut() {
            headers.clone_from(&self.headers);
        }
        request
    }

    /// Sends a request and returns when the answer's headers are there.
    pub async fn open(&self, request: Request<Bytes>) -> Result<Events, ClientError> {
        let answer = self.http.request(request.map(Full::new));
        let answer = tokio::time::timeout(self.deadline, answer).await;
        Ok(Events::new(answer.map_err(|_| ClientError::Deadline(self.deadline))??, self.deadline))
    }

    /// Sends a request and returns the whole answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Answer, ClientError> {
        self.open(request).await?.collect().await
    }

    /// Posts a body outside of any session.
    pub async fn post(&self, body: impl Into<Bytes>) -> Result<Answer, ClientError> {
        self.send(self.request(Method::POST).body(body.into())?).await
    }

    /// Posts an `initialize` and returns its answer, whatever it is.
    pub async fn post_initialize(&self, version: &str, capabilities: Value) -> Result<Answer, ClientError> {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        }});
        self.post(message.to_string()).await
    }

    /// Begins a session as clients do: `initialize`, then `notifications/initialized`.
    pub async fn initialize(&self) -> Result<Session, ClientError> {
        let session = self.initialize_only().await?;
        session.notify("notifications/initialized", json!({})).await?;
        Ok(session)
    }

    /// Begins a session as a client with these capabilities does.
    pub async fn initialize_as(&self, capabilities: Value) -> Result<Session, ClientError> {
        let session = self.begin(capabilities).await?;
        session.notify("notifications/initialized", json!({})).await?;
        Ok(session)
    }

    /// Begins a session as a client of that protocol version does.
    pub async fn initialize_at(&self, version: &str) -> Result<Session, ClientError> {
        let session = self.begin_at(version, json!({})).await?;
        session.notify("notifications/initialized", json!({})).await?;
        Ok(session)
    }

    /// Begins a session without a `notifications/initialized`.
    pub async fn initialize_only(&self) -> Result<Session, ClientError> {
        self.begin(json!({})).await
    }

    async fn begin(&self, capabilities: Value) -> Result<Session, ClientError> {
        self.begin_at(PROTOCOL_VERSION, capabilities).await
    }

    async fn begin_at(&self, version: &str, capabilities: Value) -> Result<Session, ClientError> {
        let answer = self.post_initialize(version, capabilities).await?;
        let response = answer.response();
        let version = response.pointer("/result/protocolVersion").and_then(Value::as_str);
        match (answer.header("mcp-session-id"), version) {
            (Some(id), Some(version)) => Ok(Session::new(self.clone(), id, version)),
            (Some(_) | None, None) | (None, Some(_)) => Err(answer.unexpected()),
        }
    }

    /// A session under an id that did not come from `initialize`.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self.clone(), id, PROTOCOL_VERSION)
    }
}
