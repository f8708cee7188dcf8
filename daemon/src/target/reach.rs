//! How a target is reached: over the network, or through a bridge in this process, which has no socket.

use std::{
    future::{Ready, ready},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
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
    body::Outgoing,
    connect::{IDLE_CONNECTIONS, IDLE_TIMEOUT, Pool},
    describe,
};
use crate::{
    bridge::{Bridge, Http, Source},
    fault::TargetFailure,
};

/// The way to a target.
#[derive(Debug)]
pub(super) enum Reach {
    /// Sockets.
    Network(Pool),
    /// A bridge that speaks Streamable HTTP for what does not.
    Bridge(Client<Inside, Outgoing>),
}

/// The URL of a target that has none of its own; it is never resolved.
pub(super) const NO_URL: &str = "http://stdio.invalid/";

impl Reach {
    /// The way to the target of `config`; `pool` is its own.
    pub(super) fn new(config: &TargetConfig, uri: &Uri, pool: Pool, tasks: &Tasks) -> Self {
        let source = match (&config.command, config.protocol) {
            (Some(command), _) => Source::Process(command.clone()),
            (None, Protocol::Sse) => Source::Sse { http: Arc::new(Network(pool)), url: uri.clone() },
            (None, Protocol::StreamableHttp) => return Self::Network(pool),
        };
        let inside = Inside(Bridge::new(&config.alias, source, tasks));
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(inside);
        Self::Bridge(client)
    }

    /// Sends a request.
    pub(super) async fn request(
        &self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, TargetFailure> {
        let answer = match self {
            Self::Network(pool) => pool.request(request).await,
            Self::Bridge(client) => client.request(request).await,
        };
        answer.map_err(|error| describe(&error))
    }
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
