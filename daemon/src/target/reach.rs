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

use arc_swap::ArcSwap;
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
    connect::{IDLE_CONNECTIONS, IDLE_TIMEOUT, Pool, describe},
};
use crate::{
    bridge::{Bridge, Http, Source},
    metrics::TargetRefusals,
};

/// The way to a target.
#[derive(Debug)]
pub(super) enum Reach {
    /// Sockets.
    Network(Pool),
    /// A bridge that speaks Streamable HTTP for what does not.
    Bridge(Bridged),
    /// Whichever of the two the server answers to.
    Either {
        /// Sockets.
        network: Pool,
        /// For a server that does not speak Streamable HTTP.
        bridge: Bridged,
        /// Whether the last session began through the bridge.
        old: Arc<AtomicBool>,
    },
}

/// A bridge, and what it sends by. Outlives the configuration that it was made for: its sessions are in its memory.
#[derive(Debug, Clone)]
pub(super) struct Bridged {
    client: Client<Inside, Outgoing>,
    /// None where it speaks to processes.
    network: Option<Arc<Network>>,
}

/// The URL of a target that has none of its own; it is never resolved.
pub(super) const NO_URL: &str = "http://stdio.invalid/";

impl Reach {
    /// The way to the target of `config`; `pool` is its own.
    pub(super) fn new(
        config: &TargetConfig,
        uri: &Uri,
        pool: Pool,
        tasks: &Tasks,
        refusals: &TargetRefusals,
    ) -> Self {
        let inside = |source, network| {
            let client = Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(IDLE_CONNECTIONS)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_timer(TokioTimer::new())
                .build(Inside(Bridge::new(&config.alias, source, tasks, refusals)));
            Bridged { client, network }
        };
        let sse = |pool| {
            let network = Arc::new(Network(ArcSwap::from_pointee(pool)));
            let http: Arc<dyn Http> = Arc::<Network>::clone(&network);
            inside(Source::Sse { http, url: uri.clone() }, Some(network))
        };
        match (&config.command, config.protocol) {
            (Some(command), _) => Self::Bridge(inside(Source::Process(command.clone()), None)),
            (None, Protocol::Sse) => Self::Bridge(sse(pool)),
            (None, Protocol::StreamableHttp) => Self::Network(pool),
            (None, Protocol::Auto) => {
                Self::Either { network: pool.clone(), bridge: sse(pool), old: Arc::default() }
            }
        }
    }

    /// The way to the same server through the same bridge, which knows its sessions, with what was learnt of the server.
    /// None where there is no bridge: then nothing is lost with a new way.
    ///
    /// Whatever the bridge sends from now on goes by `pool`, also for those who have the older way still. One that is
    /// not `trusted` is not taken: it does not trust as it should, and a bridge answers its server unasked.
    pub(super) fn again(&self, pool: &Pool, trusted: bool) -> Option<Self> {
        let by = |bridge: &Bridged| {
            if let Some(network) = bridge.network.as_ref().filter(|_| trusted) {
                network.0.store(Arc::new(pool.clone()));
            }
            bridge.clone()
        };
        match self {
            Self::Network(_) => None,
            Self::Bridge(bridge) => Some(Self::Bridge(by(bridge))),
            Self::Either { network: _, bridge, old } => {
                Some(Self::Either { network: pool.clone(), bridge: by(bridge), old: Arc::clone(old) })
            }
        }
    }

    /// Whether nothing goes past a bridge.
    pub(super) fn is_bridge(&self) -> bool {
        matches!(self, Self::Bridge(_))
    }

    /// Whether new sessions are a bridge's, as far as is known.
    pub(super) fn is_bridged(&self) -> bool {
        match self {
            Self::Network(_) => false,
            Self::Bridge(_) => true,
            Self::Either { old, .. } => old.load(Ordering::Relaxed),
        }
    }

    /// Whether the server decides which of the two.
    pub(super) fn is_either(&self) -> bool {
        matches!(self, Self::Either { .. })
    }

    /// Sends a request.
    pub(super) fn request(&self, request: Request<Outgoing>) -> impl Future<Output = Sent> {
        let answer = match self {
            Self::Network(pool) => Either::Left(pool.request(request)),
            Self::Bridge(bridge) => Either::Left(bridge.client.request(request)),
            Self::Either { network, bridge, old } => {
                // Only `initialize` comes before a version is negotiated.
                let begins =
                    request.method() == Method::POST && !request.headers().contains_key(PROTOCOL_VERSION);
                match (begins, old.load(Ordering::Relaxed)) {
                    (false, true) => Either::Left(bridge.client.request(request)),
                    (false, false) => Either::Left(network.request(request)),
                    // Asked anew for each session: the server may have been replaced by a newer one.
                    (true, _) => Either::Right(begin(network, &bridge.client, old, request).boxed()),
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

/// What a bridge sends by: the target's own pool, with its rules on addresses. The newest one, as the target is
/// configured now.
#[derive(Debug)]
pub(super) struct Network(ArcSwap<Pool>);

impl Http for Network {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, String>> {
        let answer = self.0.load().request(request.map(Outgoing::from));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::{shared, target_config};

    #[tokio::test]
    async fn a_bridge_goes_by_the_newest_pool_that_trusts_as_it_should() {
        let shared = shared();
        let (connector, refusals) = (shared.connector, shared.metrics.target("tools", "a").refusals);
        let pool = || connector.pool(Duration::from_secs(1));
        let config = TargetConfig { protocol: Protocol::Auto, ..target_config("a") };
        let first =
            Reach::new(&config, &Uri::from_static("http://a.example/"), pool(), connector.tasks(), &refusals);
        let network = |reach: &Reach| {
            let Reach::Either { bridge, .. } = reach else { panic!("{reach:?}") };
            bridge.network.as_ref().unwrap().0.load_full()
        };
        let begun = network(&first);
        let second = first.again(&pool(), false).unwrap();
        assert!(Arc::ptr_eq(&network(&second), &begun));
        let third = second.again(&pool(), true).unwrap();
        assert!(!Arc::ptr_eq(&network(&third), &begun));
        assert!(Arc::ptr_eq(&network(&third), &network(&first)), "those under way go by it, too");
    }
}
