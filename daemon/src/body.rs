//! The body of an answer, and the account that ends with it: the access log line and the request's metrics.

use std::{
    borrow::Cow,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::{
    fault::{Blame, Fault},
    metrics::{GatewayMetrics, METHODS, Outcome},
    session::{admission::InFlight, ephemeral::Ephemeral, id::Key, places::Place},
};

/// Chunks as they come. An error breaks the connection off: the only way left to say that an answer is not whole.
pub type Chunks = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// What went wrong behind an answer's head, told by whoever makes its chunks.
pub type Late = Arc<OnceLock<Fault>>;

/// An answer's body.
pub struct Answer {
    content: Content,
    late: Option<Late>,
    account: Option<Box<Account>>,
}

enum Content {
    Whole(Bytes),
    Chunks { chunks: Chunks, length: Option<u64> },
}

/// What is said of a request when its answer has ended, or when the caller has left before it began.
///
/// Made when the request's head arrives and filled as more is learnt, so that no request goes without its line.
#[derive(Debug)]
pub struct Account {
    /// The gateway's metric handles.
    pub metrics: Arc<GatewayMetrics>,
    /// When the request's head had arrived.
    pub started: Instant,
    /// Who sent it, as far as trusted proxies know.
    pub client: IpAddr,
    /// Its HTTP method, or the JSON-RPC method of its message; see [`method_label`].
    pub method: Cow<'static, str>,
    /// Its session, where it had one.
    pub session: Option<Key>,
    /// A session that is of this request only, and ends with its answer.
    pub ephemeral: Option<Ephemeral>,
    /// The target that it went to, where it did.
    pub target: Option<String>,
    /// The answer's status; none where the caller left before there was one.
    pub status: Option<StatusCode>,
    /// Why it was refused, where it was.
    pub fault: Option<Fault>,
    /// Bytes of the answer so far.
    pub sent: u64,
    /// Its place in its session, until its answer has ended.
    pub in_flight: Option<InFlight>,
    /// The other place that it takes until then: among the gateway's requests, or its session's streams.
    pub place: Option<Place>,
}

/// A method for metrics and log: ours as they are, any other cut short, since it is the caller's text.
pub fn method_label(method: &str) -> Cow<'static, str> {
    match METHODS.iter().find(|known| **known == method) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(method.get(..method.floor_char_boundary(64)).unwrap_or_default().to_owned()),
    }
}

impl Account {
    /// An account of a request of which nothing is known yet but who sent it, when, and as what.
    pub fn new(
        metrics: &Arc<GatewayMetrics>,
        client: IpAddr,
        started: Instant,
        method: Cow<'static, str>,
    ) -> Box<Self> {
        Box::new(Self {
            metrics: Arc::clone(metrics),
            started,
            client,
            method,
            session: None,
            ephemeral: None,
            target: None,
            status: None,
            fault: None,
            sent: 0,
            in_flight: None,
            place: None,
        })
    }
}

impl Answer {
    /// A body that is there.
    pub fn whole(bytes: Bytes) -> Self {
        Self { content: Content::Whole(bytes), late: None, account: None }
    }

    /// No body.
    pub fn empty() -> Self {
        Self::whole(Bytes::new())
    }

    /// A body that is still coming, of this length where it is known.
    pub fn chunks(chunks: Chunks, length: Option<u64>) -> Self {
        Self { content: Content::Chunks { chunks, length }, late: None, account: None }
    }

    /// Its bytes, where they are all there.
    pub fn as_whole(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Whole(bytes) => Some(bytes),
            Content::Chunks { .. } => None,
        }
    }

    /// Has what goes wrong behind the head stand in the account, too.
    #[must_use]
    pub fn failing(mut self, late: Late) -> Self {
        self.late = Some(late);
        self
    }

    /// Has `account` closed when this body has ended, however it ends.
    #[must_use]
    pub fn accounted(mut self, account: Box<Account>) -> Self {
        self.account = Some(account);
        self
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let next = match &mut this.content {
            Content::Whole(bytes) if bytes.is_empty() => None,
            Content::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Chunks { chunks, length: _ } => std::task::ready!(chunks.as_mut().poll_next(cx)),
        };
        if let Some(account) = &mut this.account {
            if let Some(Ok(data)) = &next {
                account.sent += data.len() as u64;
            }
            if account.fault.is_none() {
                account.fault = this.late.as_ref().and_then(|late| late.get().cloned());
            }
        }
        Poll::Ready(next.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Chunks { length: Some(length), .. } => SizeHint::with_exact(*length),
            Content::Chunks { length: None, .. } => SizeHint::default(),
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let took: Duration = self.started.elapsed();
        let outcome = match (self.status, self.fault.as_ref().map(Fault::blame)) {
            (None, _) => Outcome::Abandoned,
            (Some(_), None) => Outcome::Ok,
            (Some(_), Some(Blame::Client)) => Outcome::Client,
            (Some(_), Some(Blame::Target)) => Outcome::Target,
            (Some(_), Some(Blame::Us | Blame::Store | Blame::Provider)) => Outcome::Us,
        };
        self.metrics.request(&self.method, outcome, took);
        if let Some(fault) = &self.fault {
            self.metrics.limits.fault(fault);
        }
        tracing::info!(
            target: "access",
            gateway = self.metrics.gateway(),
            client = %self.client,
            method = &*self.method,
            session = self.session.map(tracing::field::display),
            to = self.target.as_deref(),
            status = self.status.map(|status| status.as_u16()),
            outcome = outcome.label(),
            fault = self.fault.as_ref().map(Fault::label),
            bytes = self.sent,
            micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "request"
        );
    }
}
