//! `/livez`, `/readyz` and `/metrics`, on their own port, thread and runtime: a scrape cannot stall traffic, nor
//! traffic a scrape. `/livez` says that the process runs, and no more. Serves nothing else.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::net::TcpListener;

use crate::Readiness;

/// How long a connection may take to send its request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted: most often no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the three paths answer from.
#[derive(Debug, Clone)]
pub struct Health {
    /// Everything `/metrics` shows.
    pub registry: Registry,
    /// What `/readyz` answers.
    pub readiness: Readiness,
}

impl Health {
    /// Binds `address` and serves from a thread of its own until the process ends. Returns the bound address.
    ///
    /// # Errors
    /// Where the address cannot be bound or the thread cannot be made.
    pub fn serve(self, address: SocketAddr) -> std::io::Result<SocketAddr> {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let bound = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("health".to_owned()).spawn(move || {
            runtime.block_on(async move {
                match TcpListener::from_std(socket) {
                    Ok(listener) => self.accept(listener).await,
                    Err(error) => tracing::error!(%error, "health: the socket cannot be used"),
                }
            });
        })?;
        Ok(bound)
    }

    async fn accept(self, listener: TcpListener) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "health: a connection could not be accepted");
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "a descriptor that comes free is no event"
                    )]
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let health = self.clone();
            let service = service_fn(move |request| {
                let response = health.answer(&request);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            #[expect(
                clippy::disallowed_methods,
                reason = "lives and dies with this thread's runtime, by design"
            )]
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "health: connection");
                }
            });
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n".to_owned());
        }
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => match self.readiness.missing() {
                None => text(StatusCode::OK, "ok\n".to_owned()),
                Some(missing) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{missing}\n")),
            },
            "/metrics" => self.metrics(),
            _ => text(StatusCode::NOT_FOUND, "/livez, /readyz, /metrics\n".to_owned()),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let encoder = TextEncoder::new();
        let mut out = Vec::new();
        match encoder.encode(&self.registry.gather(), &mut out) {
            Ok(()) => {
                let mut response = Response::new(Full::new(Bytes::from(out)));
                let kind = http::HeaderValue::from_static("text/plain; version=0.0.4");
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}
