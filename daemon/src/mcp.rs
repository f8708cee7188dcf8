//! The MCP endpoint, one HTTP verb a file; what is refused is refused here, before any stream is opened.
//!
//! `receive → parse envelope → authenticate → find session → route → authorise → forward → relay`

mod batch;
mod cors;
mod delete;
mod destination;
mod forward;
mod get;
mod initialize;
mod list;
mod logging;
mod metadata;
mod notify;
mod post;
mod resume;
mod subscription;
mod tasks;
mod unlisted;

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use hyper::body::Incoming;
use mooring_crds::config::{SessionMode, Streaming};
use tokio::time::Instant;

pub use self::metadata::metadata;

use crate::{
    access::Access,
    auth::{Caller, resource},
    body::{Account, Answer, method_label},
    config::snapshot::Snapshot,
    edge,
    fault::Fault,
    forwarded::{self, External, Peer},
    gateway::Gateway,
    jsonrpc::reply,
    relay::json_response,
    session::{Session, ephemeral::Ephemeral, record::Principal},
    target::{OnBehalf, PROTOCOL_VERSION, SESSION_ID, Target, propagation},
    version::Version,
};

/// One request on its way through.
struct Context<'r> {
    gateway: &'r Arc<Gateway>,
    /// Loaded once: a request sees one configuration.
    snapshot: Arc<Snapshot>,
    head: &'r Parts,
    /// The request as its client sent it.
    external: External<'r>,
    account: Box<Account>,
    /// Who calls; none before that is known.
    caller: Option<Caller>,
    /// The id that a refusal must carry.
    id: Option<Bytes>,
}

/// Answers one request to a gateway's endpoint.
pub async fn handle(gateway: &Arc<Gateway>, request: Request<Incoming>, peer: Peer) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let snapshot = gateway.snapshot();
    let external = forwarded::external(peer, &head.uri, &head.headers, &snapshot.proxies);
    let account = account(gateway, &head, &external);
    let mut context = Context { gateway, snapshot, head: &head, external, account, caller: None, id: None };
    let outcome = verb(&mut context, body).await;
    let Context { mut account, snapshot, id, .. } = context;
    let mut response = match outcome {
        Ok(response) => response,
        Err(fault) => {
            let mut response = refuse(&fault, id.as_deref());
            let url = resource::external_url(&snapshot.config, &external, head.uri.path());
            if let Some(challenge) = resource::challenge(&fault, &snapshot.config.auth, url.as_deref()) {
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            account.fault = Some(fault);
            response
        }
    };
    if let Ok(Some(origin)) = edge::check_origin(&snapshot.config, external.host, &head.headers) {
        cors::expose(origin, response.headers_mut());
    }
    account.status = Some(response.status());
    response.map(|body| body.accounted(account))
}

/// An account of a request of which nothing is known but its head.
fn account(gateway: &Gateway, head: &Parts, external: &External<'_>) -> Box<Account> {
    Account::new(&gateway.metrics, external.client, Instant::now(), method_label(head.method.as_str()))
}

async fn verb(context: &mut Context<'_>, body: Incoming) -> Result<Response<Answer>, Fault> {
    let Parts { method, headers, .. } = context.head;
    let host = context.external.host;
    edge::check_host(&context.snapshot.config, host)?;
    let origin = edge::check_origin(&context.snapshot.config, host, headers)?;
    // Before anything is said of sessions. A browser sends no credentials with a preflight (case 021).
    if matches!(*method, Method::POST | Method::GET | Method::DELETE) {
        match context.gateway.authenticate(&context.snapshot, headers).await {
            Ok(caller) => context.caller = Some(caller),
            Err(fault) => {
                if *method == Method::POST {
                    context.id = Box::pin(post::id_for_refusal(context, body)).await;
                }
                return Err(fault);
            }
        }
    }
    match *method {
        Method::POST => post::post(context, body).await,
        Method::GET => get::get(context).await,
        Method::DELETE => delete::delete(context).await,
        Method::OPTIONS => Ok(cors::preflight(origin)),
        _ => Ok(method_not_allowed(context)),
    }
}

impl Context<'_> {
    /// The context of one message of a batch, whose account is its own.
    fn beside(&self, session: &Session) -> Self {
        let Account { metrics, client, method, .. } = &*self.account;
        let mut account = Account::new(metrics, *client, Instant::now(), method.clone());
        account.session = Some(session.key);
        Self {
            gateway: self.gateway,
            snapshot: Arc::clone(&self.snapshot),
            head: self.head,
            external: self.external,
            caller: self.caller.clone(),
            account,
            id: None,
        }
    }

    /// Takes a request's place among those in flight, until its answer has ended.
    fn admit(&mut self) -> Result<(), Fault> {
        self.account.place = Some(self.gateway.admit(&self.snapshot)?);
        Ok(())
    }

    /// Takes a request's place in its session, until its answer has ended.
    fn admit_to(&mut self, session: &Arc<Session>) -> Result<(), Fault> {
        self.account.in_flight = Some(self.gateway.sessions.admit(session)?);
        Ok(())
    }

    /// Who calls.
    ///
    /// # Errors
    /// [`Fault::MissingToken`], where nobody was asked for: nothing goes on without an answer.
    fn caller(&self) -> Result<&Caller, Fault> {
        self.caller.as_ref().ok_or(Fault::MissingToken)
    }

    /// What the caller sees and may call.
    fn access(&self) -> Result<Access<'_>, Fault> {
        Ok(Access::of(&self.snapshot.config.access, self.caller()?))
    }

    /// The caller, for what is asked of targets in its name whatever they are.
    fn on_behalf(&self) -> Result<OnBehalf, Fault> {
        Ok(OnBehalf { token: self.caller()?.token.clone(), ..OnBehalf::default() })
    }

    /// The caller, and its request as far as `target` is handed it on.
    fn on_behalf_at(&self, target: &Target, caller: Arc<OnBehalf>) -> Arc<OnBehalf> {
        if !propagation::takes(&target.config) {
            return caller;
        }
        let (headers, query) = (&self.head.headers, self.head.uri.query());
        Arc::new(OnBehalf::from_request(headers, query, &target.config, caller.token.clone()))
    }

    /// Finds the session that the request names, and holds it to the version that it says it speaks.
    async fn session(&mut self) -> Result<Arc<Session>, Fault> {
        if self.snapshot.config.session.mode == SessionMode::Stateless {
            let principal = self.caller()?.principal.clone();
            return self.ephemeral(principal);
        }
        let header = self.head.headers.get_all(SESSION_ID).iter().next().is_some();
        let id = if header {
            Some(edge::single(&self.head.headers, &SESSION_ID).unwrap_or_default())
        } else {
            None
        };
        let principal = &self.caller()?.principal;
        let session = self.gateway.sessions.find(id, principal).await?;
        self.account.session = Some(session.key);
        session.called_by(self.caller()?);
        self.gateway.sessions.part_from_hidden(&session, &self.access()?);
        check_version(&self.head.headers)?;
        Ok(session)
    }
}

impl Context<'_> {
    /// The session of this one request: nothing of it is stored, and it ends with the answer.
    fn ephemeral(&mut self, principal: Principal) -> Result<Arc<Session>, Fault> {
        check_version(&self.head.headers)?;
        let version = edge::single(&self.head.headers, &PROTOCOL_VERSION).and_then(Version::parse);
        // What a client without the header speaks (2025-11-25, transports, protocol version header).
        let version = version.unwrap_or(Version::V2025_03_26);
        let session = self.gateway.sessions.ephemeral(principal, version)?;
        self.account.ephemeral = Some(Ephemeral::new(&self.gateway.sessions, &session));
        Ok(session)
    }
}

/// A version header that is there must name a version that we speak (2025-11-25, transports, protocol version header);
/// absent, the session knows.
fn check_version(headers: &HeaderMap) -> Result<(), Fault> {
    if !headers.contains_key(PROTOCOL_VERSION) {
        return Ok(());
    }
    let version = edge::single(headers, &PROTOCOL_VERSION).and_then(Version::parse);
    version.map(|_| ()).ok_or(Fault::UnsupportedVersion)
}

/// The refusal of a request.
fn refuse(fault: &Fault, id: Option<&[u8]>) -> Response<Answer> {
    let body = reply::error(id, fault.code(), &fault.message(), fault.data().as_ref());
    let mut response = json_response(Answer::whole(body));
    *response.status_mut() = fault.status();
    if let Some(seconds) = fault.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A notification or an answer was taken (2025-11-25, transports, sending messages 4): no body and no content type.
fn accepted() -> Response<Answer> {
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn method_not_allowed(context: &Context<'_>) -> Response<Answer> {
    let config = &context.snapshot.config;
    let allowed = match (config.session.mode, config.streaming) {
        (SessionMode::Stateful, Streaming::Enabled) => "GET, POST, DELETE, OPTIONS",
        (SessionMode::Stateful, Streaming::Disabled) => "POST, DELETE, OPTIONS",
        (SessionMode::Stateless, Streaming::Enabled | Streaming::Disabled) => "POST, OPTIONS",
    };
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
