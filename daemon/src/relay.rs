//! Forwards a request to a target session and relays the answer: bytes as they come, every wait bounded, and never
//! an end without an answer or an error for the request (DESIGN §3.8).

pub mod events;
pub mod json;
pub mod progress;
mod turn;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Response, header};
use tokio::time::{Instant, timeout_at};

use crate::{
    body::{Answer as Body, Late},
    edge::Accepts,
    fault::{Fault, TargetFailure},
    jsonrpc::{Kind, Message, envelope::same_id, reply},
    receive::Share,
    session::{calls::Call, table::Sessions, targets::TargetSession},
    target::{
        OnBehalf,
        body::Outgoing,
        exchange::{self, Answer, NoAnswer, exchange},
        outcome::error_forgot_session,
        propagation,
    },
};

/// A call that is silent for so long is opened as an event stream, so that proxies between do not cut it; and an open
/// stream that is silent for so long gets a comment.
pub const SILENCE: Duration = Duration::from_secs(15);

/// A request on its way to a target.
#[derive(Debug)]
pub struct Forward {
    /// It, in its session.
    pub call: Call,
    /// Where it goes.
    pub open: Arc<TargetSession>,
    /// On whose behalf.
    pub of: Arc<OnBehalf>,
    /// The sessions, for what its failure means to them.
    pub sessions: Arc<Sessions>,
    /// When its head arrived: what it may take in all counts from here.
    pub started: Instant,
    /// When it was sent: the target's silence counts from here, not from what came before.
    pub sent: Instant,
    /// What is held of its answer.
    pub held: Share,
    /// What goes wrong once the answer's head has left.
    pub late: Late,
    /// The token by which the client wants to hear of progress, where it does.
    pub token: Option<Box<str>>,
}

/// What is sent to the target, and its share of the budget until the target has it.
#[derive(Debug)]
pub struct Request {
    /// The message.
    pub body: Outgoing,
    /// Its share.
    pub share: Share,
}

/// The head of an answer, while it is waited for.
pub(crate) type Pending = BoxFuture<'static, Result<Answer, NoAnswer>>;

enum Head {
    Answer(Result<Answer, NoAnswer>),
    Ended(Fault),
    Silent,
    TooLate,
}

/// Forwards `body` and answers with what the target answers.
///
/// # Errors
/// [`Fault`], where nothing of the answer was sent yet.
pub async fn relay(
    mut forward: Forward,
    Request { body, share }: Request,
    accepts: Accepts,
) -> Result<Response<Body>, Fault> {
    let (open, wire) = (Arc::clone(&forward.open), forward.open.wire.by(&forward.of));
    let mut pending: Pending = Box::pin(async move {
        let answer = exchange(&open.target, &wire, body).await;
        drop(share);
        answer
    });
    let deadline = forward.deadline(forward.sent);
    let silence = match accepts {
        Accepts::JsonOrStream => deadline.min(forward.sent + SILENCE),
        Accepts::Json => deadline,
    };
    let head = tokio::select! {
        biased;
        // First: a call that has ended already is not sent.
        ended = &mut forward.call.ended => Head::Ended(ended.unwrap_or(Fault::ShuttingDown)),
        head = timeout_at(silence, &mut pending) => match head {
            Ok(answer) => Head::Answer(answer),
            Err(_) if silence < deadline => Head::Silent,
            Err(_) => Head::TooLate,
        },
    };
    match head {
        Head::Answer(Ok(answer)) => {
            let handed_back = propagation::handed_back(&answer.headers, &forward.open.target.config);
            let mut response = match (answer.events, accepts) {
                (false, _) => json::relay(forward, answer).await,
                (true, Accepts::JsonOrStream) => Ok(events::relay(forward, answer)),
                (true, Accepts::Json) => events::collect(forward, answer).await,
            }?;
            response.headers_mut().extend(handed_back);
            Ok(response)
        }
        Head::Answer(Err(none)) => forward.refusal(none).await.map(|error| json_response(Body::whole(error))),
        Head::Ended(fault) => Err(fault),
        Head::Silent => Ok(events::relay_pending(forward, pending)),
        Head::TooLate => Err(forward.too_late()),
    }
}

impl Forward {
    /// Until when the target may be silent, if it was last heard of at `heard`.
    pub(crate) fn deadline(&self, heard: Instant) -> Instant {
        let config = &self.open.target.config;
        let silent = heard + Duration::from_secs(config.timeouts.request_seconds.into());
        silent.min(self.started + Duration::from_secs(config.timeouts.maximum_seconds.into()))
    }

    /// Tells the target that nobody waits any more, and says what the client is told.
    pub(crate) fn too_late(&self) -> Fault {
        let config = &self.open.target.config;
        let waited = self.started.elapsed().as_secs();
        let bound = if waited >= config.timeouts.maximum_seconds.into() {
            config.timeouts.maximum_seconds
        } else {
            config.timeouts.request_seconds
        };
        let notice = reply::cancelled(self.call.id(), "no answer in time");
        let open = Arc::clone(&self.open);
        self.sessions.spawn(async move { open.notify(notice).await });
        exchange::fault(&self.open.target, TargetFailure::Timeout(bound))
    }

    /// The JSON-RPC error that is the request's answer whatever the HTTP status was, or what the client is told.
    pub(crate) async fn refusal(&self, none: NoAnswer) -> Result<Bytes, Fault> {
        match none {
            NoAnswer::Lost => Err(self.lost().await),
            NoAnswer::Failure(failure) => Err(exchange::fault(&self.open.target, failure)),
            NoAnswer::Error(body) if is_answer(&body, self.call.id()) => Ok(body),
            NoAnswer::Error(body) => Err(exchange::fault(&self.open.target, NoAnswer::Error(body).failure())),
        }
    }

    /// Looks at a whole answer: one that says that the target forgot the session is no answer to relay.
    pub(crate) async fn settle(&self, answer: Bytes) -> Result<Bytes, Fault> {
        // Errors are rare and small; only they are looked into.
        if memchr::memmem::find(&answer, br#""error""#).is_some()
            && let Some(error) = exchange::error_object(&answer)
            && self.open.wire.id.is_some()
            && error_forgot_session(error.code, &error.message)
        {
            return Err(self.lost().await);
        }
        Ok(answer)
    }

    /// Notes that the target forgot the session.
    pub(crate) async fn lost(&self) -> Fault {
        self.sessions.target_session_lost(self.call.session(), &self.open).await;
        Fault::TargetSessionLost { target: self.open.target.alias().to_owned() }
    }

    /// A failure of this call's target.
    pub(crate) fn failed(&self, what: &'static str) -> Fault {
        exchange::fault(&self.open.target, TargetFailure::Protocol(what))
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.open.target.metrics.call(self.started.elapsed());
    }
}

/// Whether `body` answers the request of this id.
fn is_answer(body: &Bytes, id: &[u8]) -> bool {
    matches!(Message::parse(body.clone()).map(|m| m.kind), Ok(Kind::Response { id: of }) if same_id(&of, id))
}

/// An answer in JSON.
pub fn json_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer as an event stream, which no proxy may hold back.
pub fn event_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The event that refuses the request of this id on a stream that is open already.
pub(crate) fn fault_event(id: &[u8], fault: &Fault) -> Bytes {
    let error = reply::error(Some(id), fault.code(), &fault.message(), fault.data().as_ref());
    crate::jsonrpc::sse::message(&error)
}
