//! A client's session: the requests that carry its id. It holds no truth about the session; the gateway does.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Answer, Client, ClientError, Events};

/// How many pages a list may have before the client takes it for endless.
const PAGES: usize = 100;

/// A session, as its client sees it.
#[derive(Debug, Clone)]
pub struct Session {
    client: Client,
    id: String,
    protocol_version: String,
    next: Arc<AtomicU64>,
}

impl Session {
    pub(super) fn new(client: Client, id: &str, protocol_version: &str) -> Self {
        let next = Arc::new(AtomicU64::new(1));
        Self { client, id: id.to_owned(), protocol_version: protocol_version.to_owned(), next }
    }

    /// The `Mcp-Session-Id`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The protocol version that was negotiated.
    pub fn protocol_version(&self) -> &str {
        &self.protocol_version
    }

    /// The same session through another client: its headers, its connections, perhaps its URL.
    pub fn through(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// A request with the session's headers, to be completed.
    pub fn request(&self, verb: Method) -> http::request::Builder {
        self.client
            .request(verb)
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.protocol_version)
    }

    /// Posts a body as it is.
    pub async fn post(&self, body: impl Into<Bytes>) -> Result<Answer, ClientError> {
        self.client.send(self.request(Method::POST).body(body.into())?).await
    }

    /// Posts a body as it is and returns when the answer's headers are there.
    pub async fn open(&self, body: impl Into<Bytes>) -> Result<Events, ClientError> {
        self.client.open(self.request(Method::POST).body(body.into())?).await
    }

    /// Sends a request under the next id.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Answer, ClientError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Result<Answer, ClientError> {
        self.post(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ClientError> {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The names of all tools, page by page.
    pub async fn tools(&self) -> Result<Vec<String>, ClientError> {
        self.names("tools/list", "tools", "name").await
    }

    /// The names of all prompts, page by page.
    pub async fn prompts(&self) -> Result<Vec<String>, ClientError> {
        self.names("prompts/list", "prompts", "name").await
    }

    /// The URIs of all resources, page by page.
    pub async fn resources(&self) -> Result<Vec<String>, ClientError> {
        self.names("resources/list", "resources", "uri").await
    }

    /// The URI templates of all resource templates, page by page.
    pub async fn templates(&self) -> Result<Vec<String>, ClientError> {
        self.names("resources/templates/list", "resourceTemplates", "uriTemplate").await
    }

    /// What a list names its items by, page by page.
    async fn names(&self, method: &str, member: &str, key: &str) -> Result<Vec<String>, ClientError> {
        let (mut names, mut params) = (Vec::new(), json!({}));
        for _ in 0..PAGES {
            let answer = self.ask(method, params).await?;
            let response = answer.response();
            let items =
                response.get("result").and_then(|result| result.get(member)).and_then(Value::as_array);
            let Some(items) = items else { return Err(answer.unexpected()) };
            names.extend(items.iter().filter_map(|item| Some(item.get(key)?.as_str()?.to_owned())));
            match response.pointer("/result/nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(names),
            }
        }
        Err(ClientError::Unexpected { status: StatusCode::OK, body: format!("more than {PAGES} pages") })
    }

    /// Opens the GET stream, or returns what was answered in its place.
    pub async fn get(&self) -> Result<Events, ClientError> {
        self.client.open(self.request(Method::GET).body(Bytes::new())?).await
    }

    /// Takes a stream up again behind the event of this id, or returns what was answered in its place.
    pub async fn get_behind(&self, event_id: &str) -> Result<Events, ClientError> {
        self.client
            .open(self.request(Method::GET).header("last-event-id", event_id).body(Bytes::new())?)
            .await
    }

    /// Ends the session.
    pub async fn delete(&self) -> Result<Answer, ClientError> {
        self.client.send(self.request(Method::DELETE).body(Bytes::new())?).await
    }
}
