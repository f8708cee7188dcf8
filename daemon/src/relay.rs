//! Forwards a request to a target session and relays the answer: bytes as they come, every wait bounded, and never
//! an end without an answer or an error for the request (DESIGN §3.8).

mod attached;
mod client_stream;
mod collect;
mod events;
mod json;
pub mod judge;
pub mod limits;
pub mod pause;
pub mod progress;
mod source;
mod turn;

use std::{
    pin::pin,
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Response, header};
use memchr::memmem::Finder;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use self::{
    client_stream::ClientStream,
    events::Events,
    limits::CallLimits,
    pause::{Clock, Pause},
    source::Source,
};
use crate::{
    body::Answer as Body,
    edge::Accepts,
    fault::{Fault, TargetFailure},
    jsonrpc::{Kind, Message, envelope::same_id, reply},
    receive::Share,
    session::{asking::Way, calls::Call, places::Place, table::Sessions, targets::TargetSession, task_ids},
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

/// Sought in every answer.
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""error""#));

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
    /// The place of its event stream, once it is one.
    pub stream: Option<Place>,
    /// The token by which the client wants to hear of progress, where it does.
    pub token: Option<Box<str>>,
    /// How long it may take.
    pub limits: CallLimits,
    /// Its clock, which stands while the client is asked something.
    pub pause: Arc<Pause>,
    /// Fires when it is over; made when something depends on that.
    pub over: OnceLock<CancellationToken>,
    /// Whether its answer speaks of tasks, whose ids are shown as ours.
    pub tasks: bool,
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
    /// It becomes a stream: the target is silent, or asks the client something on another one.
    Stream,
    TooLate,
}

/// Forwards `body` and answers with what the target answers.
///
/// # Errors
/// [`Fault`], where nothing of the answer was sent yet.
pub async fn relay(
    mut forward: Box<Forward>,
    Request { body, share }: Request,
    accepts: Accepts,
) -> Result<Response<Body>, Fault> {
    let (open, wire) = (Arc::clone(&forward.open), forward.open.wire.by(&forward.of));
    let mut pending: Pending = Box::pin(async move {
        let answer = exchange(&open.target, &wire, body).await;
        drop(share);
        answer
    });
    let mut asked = pin!(asked(&forward, accepts));
    let mut may_stream = accepts == Accepts::JsonOrStream;
    let head = loop {
        // Before the clock is looked at, so that none of its changes is missed.
        let resumes = forward.pause.resumes();
        let stands = forward.pause.clock() == Clock::Stands;
        let silence = forward.sent + SILENCE;
        let deadline = forward.deadline(forward.sent);
        let wake = if may_stream { deadline.min(silence) } else { deadline };
        let head = tokio::select! {
            biased;
            // First: a call that has ended already is not sent.
            ended = &mut forward.call.ended => Head::Ended(ended.unwrap_or(Fault::ShuttingDown)),
            head = timeout_at(wake, &mut pending) => match head {
                Ok(answer) => Head::Answer(answer),
                // Looked at anew: the client may be asked something by now.
                Err(_) if may_stream && silence <= Instant::now() => Head::Stream,
                Err(_) if Instant::now() < forward.deadline(forward.sent) => continue,
                Err(_) => Head::TooLate,
            },
            () = &mut asked, if may_stream => Head::Stream,
            () = resumes, if stands => continue,
        };
        match head {
            // Without a place for its stream it is answered in JSON, as late as it may be.
            Head::Stream if !forward.open_stream() => may_stream = false,
            Head::Stream | Head::Answer(_) | Head::Ended(_) | Head::TooLate => break head,
        }
    };
    match head {
        Head::Answer(Ok(answer)) => answered(forward, answer, accepts).await,
        Head::Answer(Err(none)) => {
            let error = Box::pin(forward.refusal(none)).await?;
            forward.call.answered();
            Ok(json_response(Body::whole(error)))
        }
        Head::Ended(fault) => {
            forward.call.answered();
            Err(fault)
        }
        Head::Stream => Ok(Box::pin(attached::respond(events(forward, Source::Head(pending)))).await),
        Head::TooLate => {
            forward.call.answered();
            Err(forward.too_late())
        }
    }
}

/// Relays an answer whose head has come, with those of its headers that the target's configuration hands back.
async fn answered(
    mut forward: Box<Forward>,
    answer: Answer,
    accepts: Accepts,
) -> Result<Response<Body>, Fault> {
    let handed_back = propagation::handed_back(&answer.headers, &forward.open.target.config);
    let mut response = match (answer.events, accepts) {
        (false, _) => json::relay(forward, answer).await,
        (true, Accepts::JsonOrStream) if forward.open_stream() => {
            Ok(Box::pin(attached::respond(events(forward, Source::Body(answer.body)))).await)
        }
        (true, Accepts::Json | Accepts::Part | Accepts::JsonOrStream) => {
            let events = Events::new(forward, ClientStream::none(), Source::Body(answer.body));
            Box::pin(events.collect(accepts)).await.map(|answer| json_response(Body::whole(answer)))
        }
    }?;
    response.headers_mut().extend(handed_back);
    Ok(response)
}

fn events(forward: Box<Forward>, source: Source) -> Events {
    let client = ClientStream::open(&forward.sessions, forward.call.session(), forward.call.id());
    Events::new(forward, client, source)
}

/// Returns when another stream of the target's has something for this call; never, where that cannot be.
fn asked(forward: &Forward, accepts: Accepts) -> impl Future<Output = ()> + use<> {
    let session = forward.call.session();
    let deliveries = match accepts {
        Accepts::JsonOrStream if session.wants_word() => Some(forward.call.deliveries()),
        Accepts::JsonOrStream | Accepts::Part | Accepts::Json => None,
    };
    events::delivered(deliveries)
}

impl Forward {
    /// Whether its answer may be an event stream: whether its session has a place for one.
    fn open_stream(&mut self) -> bool {
        if self.stream.is_some() {
            return true;
        }
        match self.sessions.open_stream(self.call.session()) {
            Ok(place) => {
                self.stream = Some(place);
                self.call.stream();
            }
            // The call goes on without; that it did is counted as what refuses other streams, once, though a place is
            // sought again when its answer comes.
            Err(fault) if self.call.no_stream() => self.sessions.metrics.limits.fault(&fault),
            Err(_) => {}
        }
        self.stream.is_some()
    }

    /// Until when the target may be silent, if it was last heard of at `heard`.
    pub(crate) fn deadline(&self, heard: Instant) -> Instant {
        let maximum = self.started + self.limits.maximum;
        match self.pause.clock() {
            Clock::Stands => maximum,
            Clock::Runs(resumed) => {
                let heard = resumed.map_or(heard, |resumed| resumed.max(heard));
                maximum.min(heard + self.limits.silent)
            }
        }
    }

    /// How a request of the target's reaches the client on this call's stream.
    pub(crate) fn way(&self) -> Way {
        Way::Call { id: self.call.id().into(), pause: Arc::clone(&self.pause), over: self.over() }
    }

    /// How one reaches a client that takes `accepts`, where this call has no stream.
    pub(crate) fn way_beside(&self, accepts: Accepts) -> Way {
        match accepts {
            Accepts::Json => Way::None,
            Accepts::Part | Accepts::JsonOrStream => {
                Way::Beside { pause: Arc::clone(&self.pause), over: self.over() }
            }
        }
    }

    fn over(&self) -> CancellationToken {
        self.over.get_or_init(CancellationToken::new).clone()
    }

    /// The answer of the target, as the client is to read it.
    pub(crate) fn exposed(&self, json: &Bytes) -> Bytes {
        if self.tasks { task_ids::expose(json, self.open.target.alias()) } else { json.clone() }
    }

    /// Tells the target that nobody will come back for the answer.
    pub(crate) fn abandoned(&self) -> Fault {
        self.cancel("nobody waits for the answer any more");
        Fault::Cancelled
    }

    /// Tells the target, where `fault` is that its answer cannot be taken: what other faults end, it knows of.
    pub(crate) fn gave_up(&self, fault: &Fault) {
        let untold =
            matches!(fault, Fault::Overloaded | Fault::Target { failure: TargetFailure::Protocol(_), .. });
        if untold {
            self.cancel("the answer could not be taken");
        }
    }

    fn cancel(&self, why: &str) {
        let notice = reply::cancelled(self.call.id(), why);
        let open = Arc::clone(&self.open);
        self.sessions.spawn(async move { open.notify(notice).await });
    }

    /// Tells the target that nobody waits any more, and says what the client is told.
    pub(crate) fn too_late(&self) -> Fault {
        let bound = if self.started.elapsed() >= self.limits.maximum {
            self.limits.maximum
        } else {
            self.limits.silent
        };
        self.cancel("no answer in time");
        exchange::fault(
            &self.open.target,
            TargetFailure::Timeout(u32::try_from(bound.as_secs()).unwrap_or(u32::MAX)),
        )
    }

    /// The JSON-RPC error that is the request's answer whatever the HTTP status was, or what the client is told.
    pub(crate) async fn refusal(&self, none: NoAnswer) -> Result<Bytes, Fault> {
        match none {
            NoAnswer::Lost => Err(Box::pin(self.lost()).await),
            NoAnswer::Failure(failure) => Err(exchange::fault(&self.open.target, failure)),
            NoAnswer::Error(body) if is_answer(&body, self.call.id()) => Ok(body),
            NoAnswer::Error(body) => Err(exchange::fault(&self.open.target, NoAnswer::Error(body).failure())),
        }
    }

    /// Looks at a whole answer: one that says that the target forgot the session is no answer to relay.
    pub(crate) async fn settle(&self, answer: Bytes) -> Result<Bytes, Fault> {
        // Errors are rare and small; only they are looked into.
        if ERROR.find(&answer).is_some()
            && let Some(error) = exchange::error_object(&answer)
            && self.open.wire.id.is_some()
            && error_forgot_session(error.code, &error.message)
        {
            // Boxed, as every rare way out of a call: the others do not carry the room for it.
            return Err(Box::pin(self.lost()).await);
        }
        Ok(answer)
    }

    /// Notes that the target forgot the session.
    pub(crate) async fn lost(&self) -> Fault {
        self.sessions.target_session_forgotten(self.call.session(), &self.open).await;
        Fault::TargetSessionLost { target: self.open.target.alias().to_owned(), ran: false }
    }

    /// A failure of this call's target.
    pub(crate) fn failed(&self, what: &'static str) -> Fault {
        exchange::fault(&self.open.target, TargetFailure::Protocol(what))
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.open.target.metrics.call(self.started.elapsed());
        if let Some(over) = self.over.get() {
            over.cancel();
        }
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

/// The error that refuses the request of this id on a stream that is open already.
fn fault_json(id: &[u8], fault: &Fault) -> Bytes {
    reply::error(Some(id), fault.code(), &fault.message(), fault.data().as_ref())
}
