//! One MCP server behind a gateway, as we speak to it. Knows nothing of clients.

pub mod address;
pub mod body;
pub mod connect;
pub mod credentials;
mod endpoints;
pub mod exchange;
pub mod handshake;
pub mod outcome;
pub mod propagation;
mod reach;
pub mod stream;
pub mod trust;
pub mod unary;
mod wire;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::{Either, FutureExt, ready};
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, USER_AGENT},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mooring_crds::config::{TargetConfig, ToolFilter};
use mooring_runtime::Tasks;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

pub use self::wire::{OnBehalf, Wire};
use self::{
    body::Outgoing,
    connect::{Connector, Forbidden, describe},
    credentials::{Credentials, Tokens},
    endpoints::Endpoints,
    exchange::NoAnswer,
    reach::{NO_URL, Reach},
};
use crate::{config::secrets::Secrets, fault::TargetFailure, glob, metrics::TargetMetrics};

/// `Mcp-Session-Id`.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `Last-Event-ID`.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// `MCP-Protocol-Version`.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const AGENT: HeaderValue = HeaderValue::from_static(concat!("mooring/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How long a DELETE to a target may take: it is a courtesy, and nobody waits for it.
const FAREWELL: Duration = Duration::from_secs(5);
/// DELETEs to one target under way at once.
const FAREWELLS: usize = 64;
/// Answers to a target's own requests under way at once, beside the streams that they came on.
const ANSWERS: usize = 8;
/// What is read of an answer that nobody reads, so that its connection can be used again.
const DRAINED_BYTES: usize = 64 << 10;

/// A target and its connections.
#[derive(Debug)]
pub struct Target {
    /// What the configuration says of it.
    pub config: TargetConfig,
    /// Its metric handles.
    pub metrics: TargetMetrics,
    /// The values that its configuration names by key.
    secrets: Secrets,
    credentials: Credentials,
    uri: Uri,
    reach: Reach,
    connector: Connector,
    tls: Option<Arc<rustls::ClientConfig>>,
    endpoints: Endpoints,
    /// Its own, so that a target whose DELETEs hang keeps no other target's waiting (case 010).
    farewells: Semaphore,
    answers: Arc<Semaphore>,
}

/// The head of what a target answers, or why there is none.
pub(crate) type Sent = Result<Response<Incoming>, TargetFailure>;

/// Headers that a request to a target has.
const HEADERS: usize = 10;

/// A target whose URL cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTarget {
    /// Not a URL.
    #[error("target {0}: its URL cannot be read")]
    Url(String),
    /// An address that requests may not go to.
    #[error("target {0}: {1}")]
    Forbidden(String, #[source] Forbidden),
}

impl Target {
    /// A target without connections yet.
    ///
    /// # Errors
    /// [`BadTarget`], where its URL cannot be used.
    pub fn new(
        config: TargetConfig,
        secrets: &Secrets,
        connector: &Connector,
        metrics: TargetMetrics,
    ) -> Result<Arc<Self>, BadTarget> {
        Self::after(None, config, secrets, connector, metrics)
    }

    /// As [`Self::new`]; a bridge to the same server is `older`'s, since its sessions would end with it.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn after(
        older: Option<&Self>,
        mut config: TargetConfig,
        secrets: &Secrets,
        connector: &Connector,
        metrics: TargetMetrics,
    ) -> Result<Arc<Self>, BadTarget> {
        let url = if config.command.is_some() { NO_URL } else { config.url.as_str() };
        let uri: Uri = url.parse().map_err(|_| BadTarget::Url(config.alias.clone()))?;
        let host = uri.host().ok_or_else(|| BadTarget::Url(config.alias.clone()))?;
        connector
            .check_literal(host)
            .map_err(|forbidden| BadTarget::Forbidden(config.alias.clone(), forbidden))?;
        let secrets = secrets.only(&config.secret_keys());
        let connect_time = Duration::from_secs(config.timeouts.connect_seconds.into());
        // A target that cannot be asked as it should be is asked nothing; it heals when its values come.
        let (tls, trusted, credentials) = match trust::settings(&config.tls, &secrets) {
            Ok(tls) => (tls, true, Credentials::new(&config, &secrets, connector)),
            Err(trouble) => (None, false, Credentials::broken(trouble)),
        };
        let pool = connector.pool_with(tls.as_ref(), None, connect_time);
        let older = older.filter(|older| older.is_reached_as(&config));
        let reach = older.and_then(|older| older.reach.again(&pool, trusted));
        let reach =
            reach.unwrap_or_else(|| Reach::new(&config, &uri, pool, connector.tasks(), &metrics.refusals));
        let addresses = std::mem::take(&mut config.endpoints);
        let (connector, endpoints) = (connector.clone(), Endpoints::default());
        let (farewells, answers) = (Semaphore::new(FAREWELLS), Arc::new(Semaphore::new(ANSWERS)));
        let target = Self {
            config,
            metrics,
            secrets,
            credentials,
            uri,
            reach,
            connector,
            tls,
            endpoints,
            farewells,
            answers,
        };
        target.set_endpoints(&addresses);
        Ok(Arc::new(target))
    }

    /// Takes the ready addresses behind its Service: `address:port`. Those that requests may not go to are left out; all
    /// are, where it is only reached through a bridge, which has the way to its server to itself.
    pub fn set_endpoints(&self, addresses: &[String]) {
        if self.reach.is_bridge() {
            return;
        }
        let usable = addresses.iter().filter_map(|address| address.parse::<SocketAddr>().ok());
        let usable = usable.filter(|address| self.connector.check_literal(&address.ip().to_string()).is_ok());
        self.endpoints.set(usable.collect());
    }

    /// Where a new session begins; none where the Service decides.
    pub fn pick_endpoint(&self) -> Option<SocketAddr> {
        self.endpoints.pick(Instant::now())
    }

    /// Whether requests go to that address now, and not where the Service says.
    pub fn has_endpoint(&self, address: SocketAddr) -> bool {
        self.endpoints.usable(address, Instant::now())
    }

    /// Whether a server that answers `initialize` so may be of the old transport, and the target one of either.
    pub fn may_be_old(&self, answer: &NoAnswer) -> bool {
        let NoAnswer::Failure(TargetFailure::Status(status)) = answer else { return false };
        self.reach.is_either() && StatusCode::from_u16(*status).is_ok_and(reach::is_old_status)
    }

    /// Whether a target of this configuration, whatever its endpoints, and with these values is this one.
    pub fn is(&self, config: &TargetConfig, secrets: &Secrets) -> bool {
        let lasting = TargetConfig { endpoints: Vec::new(), ..config.clone() };
        self.config == lasting && self.secrets == secrets.only(&config.secret_keys())
    }

    /// Whether its sessions are a bridge's, as far as is known.
    pub fn is_bridged(&self) -> bool {
        self.reach.is_bridged()
    }

    /// Whether one of this configuration is the same server, spoken to in the same way and under the same name.
    fn is_reached_as(&self, config: &TargetConfig) -> bool {
        let TargetConfig { uid, alias, url, command, protocol, .. } = &self.config;
        (uid, alias, url) == (&config.uid, &config.alias, &config.url)
            && (command, protocol) == (&config.command, &config.protocol)
    }

    /// Its alias: its name in errors, logs and metrics.
    pub fn alias(&self) -> &str {
        &self.config.alias
    }

    /// Whether its tool of this own name is there at all: deny wins, and no allow allows all.
    pub fn offers_tool(&self, own: &str) -> bool {
        let ToolFilter { allow, deny } = &self.config.tools;
        (allow.is_empty() || glob::any(allow, own)) && !glob::any(deny, own)
    }

    /// How long it may take to connect and to answer `initialize`.
    pub fn connect_bound(&self) -> Duration {
        Duration::from_secs(self.config.timeouts.connect_seconds.into())
    }

    /// Leave to answer a request of the target's beside other work; none where enough is under way.
    pub fn answers(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.answers).try_acquire_owned().ok()
    }

    /// POSTs one message. The caller bounds the wait.
    ///
    /// # Errors
    /// [`TargetFailure::Unreachable`] and [`TargetFailure::Forbidden`].
    pub fn post<'a>(&'a self, wire: &'a Wire, body: Outgoing) -> impl Future<Output = Sent> + use<'a> {
        let mut request = self.request(Method::POST, wire, body);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        request.headers_mut().insert(ACCEPT, JSON_OR_EVENTS);
        self.send(request, wire)
    }

    /// Opens the GET stream of a session, behind `last_event` where there is one. The caller bounds the wait.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub fn get<'a>(
        &'a self,
        wire: &'a Wire,
        last_event: Option<&Bytes>,
    ) -> impl Future<Output = Sent> + use<'a> {
        let mut request = self.request(Method::GET, wire, Outgoing::default());
        if let Some(id) = last_event.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            request.headers_mut().insert(LAST_EVENT_ID, id);
        }
        request.headers_mut().insert(ACCEPT, EVENTS);
        self.send(request, wire)
    }

    /// Ends a session at the target. Best effort: a target may answer 405, or not at all.
    pub async fn delete(&self, wire: &Wire) {
        if wire.id.is_none() {
            return;
        }
        // Never closed; a permit only bounds how many run at once.
        let _permit = self.farewells.acquire().await;
        let request = self.request(Method::DELETE, wire, Outgoing::default());
        match timeout(FAREWELL, self.send(request, wire)).await {
            Ok(Ok(response)) => tracing::debug!(
                target = self.alias(),
                status = response.status().as_u16(),
                "target session deleted"
            ),
            Ok(Err(failure)) => {
                tracing::debug!(target = self.alias(), %failure, "target session not deleted");
            }
            Err(_) => tracing::debug!(target = self.alias(), "target session not deleted: no answer"),
        }
    }

    /// As [`Self::delete`], in a task of its own: whoever waits for something else must not wait for this.
    pub fn delete_later(self: &Arc<Self>, wire: Wire, tasks: &Tasks) {
        let target = Arc::clone(self);
        tasks.spawn(async move { target.delete(&wire).await });
    }

    fn request(&self, method: Method, wire: &Wire, body: Outgoing) -> Request<Outgoing> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri_with(wire.of.query.as_deref());
        let headers = request.headers_mut();
        // Room for all of them, those of the connection as well: to grow costs more than they do.
        headers.reserve(HEADERS);
        headers.insert(USER_AGENT, AGENT);
        headers.extend(wire.of.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(version) = wire.version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        if let Some(id) = &wire.id {
            headers.insert(SESSION_ID, id.clone());
        }
        request
    }

    /// Its URL, with a client's query parameters behind its own.
    fn uri_with(&self, query: Option<&str>) -> Uri {
        let Some(query) = query else { return self.uri.clone() };
        let mut parts = self.uri.clone().into_parts();
        let path = self.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let joint = if path.contains('?') { '&' } else { '?' };
        // It came in a URL, so it can stand in one.
        if let Ok(with) = format!("{path}{joint}{query}").parse() {
            parts.path_and_query = Some(with);
        }
        Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone())
    }

    /// Sends it with the target's credentials.
    ///
    /// No `async fn`, as all on the way to the pool: each would carry the room for a request, and move it once more.
    fn send<'a>(
        &'a self,
        mut request: Request<Outgoing>,
        wire: &'a Wire,
    ) -> impl Future<Output = Sent> + use<'a> {
        match (self.credentials.add(request.headers_mut()), self.credentials.tokens()) {
            (Err(trouble), _) => Either::Left(ready(Err(trouble.into()))),
            (Ok(()), None) => Either::Right(Either::Left(self.dispatch(request, wire.endpoint))),
            (Ok(()), Some(tokens)) => {
                Either::Right(Either::Right(self.send_with(tokens, request, wire).boxed()))
            }
        }
    }

    /// Sends it with a token; a second time where it was refused with one that may be worth nothing any more.
    async fn send_with(&self, tokens: &Tokens, mut request: Request<Outgoing>, wire: &Wire) -> Sent {
        let mut again = request.clone();
        let shown = tokens.add(&wire.of, request.headers_mut(), None).await?;
        let response = self.dispatch(request, wire.endpoint).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !shown.is_old() {
            return Ok(response);
        }
        tokens.add(&wire.of, again.headers_mut(), Some(&shown)).await?;
        self.dispatch(again, wire.endpoint).await
    }

    fn dispatch(&self, request: Request<Outgoing>, at: Option<SocketAddr>) -> impl Future<Output = Sent> {
        match at {
            None => Either::Left(self.reach.request(request)),
            Some(at) => Either::Right(self.dispatch_to(request, at).boxed()),
        }
    }

    /// To the address that has the session, or, where it is gone or takes no connection, where the Service says.
    async fn dispatch_to(&self, request: Request<Outgoing>, at: SocketAddr) -> Sent {
        let open = || self.connector.pool_with(self.tls.as_ref(), Some(at), self.connect_bound());
        let Some(pool) = self.endpoints.pool(at, Instant::now(), open) else {
            return self.reach.request(request).await;
        };
        match pool.request(request.clone()).await {
            // Without a connection nothing was sent, so that this is no repetition.
            Err(error) if error.is_connect() => {
                self.endpoints.failed(at, Instant::now());
                self.reach.request(request).await
            }
            answered => answered.map_err(|error| describe(&error)),
        }
    }
}

/// Reads a body that nobody is interested in to its end, so that its connection can be used again; one that is larger
/// than it should be costs the connection. The caller bounds the wait.
pub async fn drain(mut body: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > DRAINED_BYTES {
            return;
        }
    }
}

/// A session id of a target, copied: a `HeaderValue` cloned out of a response keeps its whole read buffer alive.
pub fn own_header(value: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(value.as_bytes())).ok()
}
