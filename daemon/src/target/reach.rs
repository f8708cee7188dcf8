//! How a target is reached: over the network, or through a bridge in this process, which has no socket.

use std::{
    future::{Ready, ready},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, FutureExt, TryFutureExt};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header::CONTENT_TYPE};
use hyper::{
    body::Incoming,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use mooring_crds::config::{Protocol, TargetConfig};
use mooring_runtime::Tasks;
use tokio::io::DuplexStream;
use tower_service::Service;

use super::{
    PROTOCOL_VERSION, Sent,
    body::Outgoing,
    connect::{IDLE_CONNECTIONS, IDLE_TIMEOUT, Pool},
    describe,
};
use crate::bridge::{Bridge, Http, Source};

/// The way to a target.
#[derive(Debug)]
pub(super) enum Reach {
    /// Sockets.
    Network(Pool),
    /// A bridge that speaks Streamable HTTP for what does not.
    Bridge(Client<Inside, Outgoing>),
    /// Whichever of the two the server answers to.
    Either {
        /// Sockets.
        network: Pool,
        /// For a server that does not speak Streamable HTTP.
        bridge: Client<Inside, Outgoing>,
        /// Whether the last session began through the bridge.
        old: AtomicBool,
    },
}

/// The URL of a target that has none of its own; it is never resolved.
pub(super) const NO_URL: &str = "http://stdio.invalid/";

impl Reach {
    /// The way to the target of `config`; `pool` is its own.
    pub(super) fn new(config: &TargetConfig, uri: &Uri, pool: Pool, tasks: &Tasks) -> Self {
        let sse = |pool| Source::Sse { http: Arc::new(Network(pool)), url: uri.clone() };
        let inside = |source| {
            Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_timer(TokioTimer::new())
                .build(Inside(Bridge::new(&config.alias, source, tasks)))
        };
        match (&config.command, config.protocol) {
            (Some(command), _) => Self::Bridge(inside(Source::Process(command.clone()))),
            (None, Protocol::Sse) => Self::Bridge(inside(sse(pool))),
            (None, Protocol::StreamableHttp) => Self::Network(pool),
            (None, Protocol::Auto) => {
                Self::Either { network: pool.clone(), bridge: inside(sse(pool)), old: AtomicBool::new(false) }
            }
        }
    }

    /// Whether nothing goes past a bridge.
    pub(super) fn is_bridge(&self) -> bool {
        matches!(self, Self::Bridge(_))
    }

    /// Whether the server decides which of the two.
    pub(super) fn is_either(&self) -> bool {
        matches!(self, Self::Either { .. })
    }

    /// Sends a request.
    pub(super) fn request(&self, request: Request<Outgoing>) -> impl Future<Output = Sent> {
        let answer = match self {
            Self::Network(pool) => Either::Left(pool.request(request)),
            Self::Bridge(client) => Either::Left(client.request(request)),
            Self::Either { network, bridge, old } => {
                // Only `initialize` comes before a version is negotiated.
                let begins =
                    request.method() == Method::POST && !request.headers().contains_key(PROTOCOL_VERSION);
                match (begins, old.load(Ordering::Relaxed)) {
                    (false, true) => Either::Left(bridge.request(request)),
                    (false, false) => Either::Left(network.request(request)),
                    // Asked anew for each session: the server may have been replaced by a newer one.
                    (true, _) => Either::Right(begin(network, bridge, old, request).boxed()),
                }
            }
        };
        answer.map_err(|error| describe(&error))
    }
}

async fn begin(
    network: &Pool,
    bridge: &Client<Inside, Outgoing>,
    old: &AtomicBool,
    request: Request<Outgoing>,
) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
    let first = network.request(request.clone()).await?;
    if !may_be_old(&first) {
        if first.status().is_success() {
            old.store(false, Ordering::Relaxed);
        }
        return Ok(first);
    }
    match bridge.request(request).await {
        Ok(second) if second.status().is_success() => {
            old.store(true, Ordering::Relaxed);
            Ok(second)
        }
        // What the server said itself tells more.
        Ok(_) | Err(_) => Ok(first),
    }
}

/// Whether a server that answers so may be of the old transport (2025-11-25, transports, backwards compatibility): it
/// has no endpoint for POSTs there. One that says in JSON what it does not like understands them.
fn may_be_old(answer: &Response<Incoming>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_json = kind.to_ascii_lowercase().starts_with(b"application/json");
    is_old_status(answer.status()) && !is_json
}

/// Whether a POST to a server of the old transport is refused so.
pub(super) fn is_old_status(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
}

/// What a bridge sends by: the target's own pool, with its rules on addresses.
#[derive(Debug)]
struct Network(Pool);

impl Http for Network {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, String>> {
        let answer = self.0.request(request.map(Outgoing::from));
        Box::pin(async move { answer.await.map_err(|error| describe(&error).to_string()) })
    }
}

/// Connects to a bridge.
#[derive(Debug, Clone)]
pub(super) struct Inside(Arc<Bridge>);

/// A connection to one.
#[derive(Debug)]
pub(super) struct Pipe(TokioIo<DuplexStream>);

impl Service<Uri> for Inside {
    type Response = Pipe;
    type Error = io::Error;
    type Future = Ready<io::Result<Pipe>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(Ok(Pipe(TokioIo::new(self.0.connect()))))
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl Write for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
