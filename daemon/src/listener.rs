//! Accepts connections and hands their requests to gateways by path. One task a connection; all of them drain.

pub mod tls;

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use mooring_runtime::Tasks;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use self::tls::Accepted;
use crate::{
    auth::resource::{WELL_KNOWN, is_protected, public_path},
    body::Answer,
    forwarded::{Peer, Scheme},
    gateway::Gateway,
    mcp,
};

/// How long a connection may take to send a head, and how long it may be idle between requests.
const HEAD_TIME: Duration = Duration::from_secs(75);
/// How long what was written may stay unread.
const UNREAD_TIME: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted: most often no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which gateway answers which path.
#[derive(Debug, Clone)]
pub struct Routes {
    gateways: Arc<[Arc<Gateway>]>,
    /// Whether `/NAME/mcp` is served, too.
    named: bool,
}

impl Routes {
    /// One gateway, at its own path.
    pub fn one(gateway: Arc<Gateway>) -> Self {
        Self { gateways: Arc::new([gateway]), named: false }
    }

    /// Each gateway at `/NAME/mcp`; where there is one, at its own path as well.
    pub fn named(gateways: Vec<Arc<Gateway>>) -> Self {
        Self { gateways: gateways.into(), named: true }
    }

    /// All of them.
    pub fn gateways(&self) -> &[Arc<Gateway>] {
        &self.gateways
    }

    fn find(&self, path: &str) -> Option<&Arc<Gateway>> {
        if let [only] = &*self.gateways
            && only.is_at(path)
        {
            return Some(only);
        }
        if !self.named {
            return None;
        }
        let (name, rest) = path.strip_prefix('/')?.split_once('/')?;
        self.gateways.iter().find(|gateway| {
            let snapshot = gateway.snapshot();
            snapshot.config.name == name && snapshot.config.path.strip_prefix('/') == Some(rest)
        })
    }

    /// Makes of a connection what its gateway says. Several share a listener in plain HTTP only.
    async fn accept(&self, stream: TcpStream) -> Option<Accepted> {
        match &*self.gateways {
            [only] => only.certificates.accept(stream, &only.metrics.limits).await,
            _ => Some(Accepted::Plain(stream)),
        }
    }

    /// The gateway that answers for the metadata of the endpoint at `path`, and the path that clients know it by. The
    /// root is the one gateway's (RFC 9728 §3.1; MCP 2025-11-25, authorization).
    fn find_metadata(&self, path: &str) -> Option<(&Arc<Gateway>, String)> {
        let public =
            |gateway: &&Arc<Gateway>| public_path(&gateway.snapshot().config).as_deref() == Some(path);
        let only = || match &*self.gateways {
            [only] if path.is_empty() => Some((only, only.snapshot().config.path.clone())),
            _ => None,
        };
        let named = || Some((self.find(path)?, path.to_owned()));
        let public = || Some((self.gateways.iter().find(public)?, path.to_owned()));
        named()
            .or_else(public)
            .or_else(only)
            .filter(|(gateway, _)| is_protected(&gateway.snapshot().config.auth))
    }

    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Answer> {
        let metadata =
            request.uri().path().strip_prefix(WELL_KNOWN).and_then(|path| self.find_metadata(path));
        if let Some((gateway, path)) = metadata {
            return mcp::metadata(gateway, request, &path, peer);
        }
        match self.find(request.uri().path()) {
            Some(gateway) => mcp::handle(gateway, request, peer).await,
            None => nothing_here(),
        }
    }
}

fn nothing_here() -> Response<Answer> {
    let mut response = Response::new(Answer::whole(Bytes::from_static(b"no gateway has this path\n")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Binds `address`; says in the log where it listens.
///
/// # Errors
/// Where it cannot be bound.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = TcpListener::bind(address).await?;
    let bound = socket.local_addr()?;
    tracing::info!(address = %bound, "listening");
    Ok(socket)
}

/// Accepts until the drain.
pub async fn serve(socket: TcpListener, routes: Routes, tasks: Tasks) {
    loop {
        let accepted = tokio::select! {
            () = tasks.drain.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (routes, drain) = (routes.clone(), tasks.clone());
                tasks.spawn(async move { connection(stream, peer.ip(), routes, drain).await });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                if timeout(ACCEPT_PAUSE, tasks.drain.cancelled()).await.is_ok() {
                    return;
                }
            }
        }
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    // Without it an event stream's second write waits for the first one's acknowledgement: 40 ms a call, measured.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    // A client that reads nothing, or is gone without a word, holds its call and its session no longer than this.
    socket.set_tcp_user_timeout(Some(UNREAD_TIME))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNREAD_TIME).with_interval(UNREAD_TIME / 4))
}

async fn connection(stream: TcpStream, address: IpAddr, routes: Routes, tasks: Tasks) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a connection's options");
    }
    let accepted = tasks.drain.run_until_cancelled(routes.accept(stream)).await;
    match accepted.flatten() {
        Some(Accepted::Plain(stream)) => {
            requests(stream, Peer { address, scheme: Scheme::Http }, routes, tasks).await;
        }
        Some(Accepted::Tls(stream)) => {
            requests(stream, Peer { address, scheme: Scheme::Https }, routes, tasks).await;
        }
        None => {}
    }
}

/// Answers the requests of one connection.
async fn requests<S>(stream: S, peer: Peer, routes: Routes, tasks: Tasks)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Of this connection alone, as is the token below: what all cores share they fight for at each request.
    let routes = Arc::new(routes);
    let service = service_fn(move |request| {
        let routes = Arc::clone(&routes);
        async move { Ok::<_, Infallible>(routes.answer(request, peer).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .serve_connection(TokioIo::new(stream), service)
    );
    let drain = tasks.drain.child_token();
    let ended = tokio::select! {
        biased;
        ended = &mut connection => ended,
        () = drain.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection");
    }
}
