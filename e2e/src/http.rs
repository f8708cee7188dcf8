//! The HTTP/1.1 server under the scripted and the example server: accepts, counts connections, streams bodies.
//! It knows nothing of MCP, and every task of it ends with the server.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// An answer to one request.
pub(crate) type Reply = Response<ReplyBody>;

/// The sender's half of a streamed body; an error cuts the connection.
pub(crate) type BodySender = mpsc::Sender<Result<Bytes, Cut>>;

/// How many chunks a streamed body holds before its sender waits.
const CHUNKS_HELD: usize = 64;

/// Ends a body, and its connection, without the end that HTTP asks for.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on purpose")]
pub(crate) struct Cut;

/// A body that is known whole, or comes in chunks through a bounded channel.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Result<Bytes, Cut>>),
}

/// What answers the requests of a server.
pub(crate) trait Handler: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Reply> + Send;
}

/// A listening server; dropping it ends its tasks and cuts its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
    connections: Arc<Connections>,
}

/// The connections of a server: how many there were, how many are open, and the token that cuts those.
#[derive(Debug, Default)]
struct Connections {
    accepted: AtomicUsize,
    open: AtomicUsize,
    cut: Mutex<CancellationToken>,
}

/// Counts one open connection for as long as it lives.
struct Open(Arc<Connections>);

// === impl Server ===

impl Server {
    /// Listens on `address` and answers with `handler` until dropped or stopped.
    pub(crate) async fn start(address: SocketAddr, handler: Arc<impl Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let connections = Arc::new(Connections::default());
        tasks.spawn({
            let (tasks, stop, connections) = (tasks.clone(), stop.clone(), Arc::clone(&connections));
            async move {
                while let Some(Ok((socket, _))) = stop.run_until_cancelled(listener.accept()).await {
                    let open = Open::count(&connections);
                    let cut = stop.child_token();
                    let epoch = connections.cut.lock().clone();
                    let handler = Arc::clone(&handler);
                    tasks.spawn(async move {
                        let _open = open;
                        let both = epoch.run_until_cancelled(cut.run_until_cancelled(serve(socket, handler)));
                        both.await;
                    });
                }
            }
        });
        Ok(Self { address, tasks, stop, connections })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were ever accepted.
    pub(crate) fn accepted(&self) -> usize {
        self.connections.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now.
    pub(crate) fn open(&self) -> usize {
        self.connections.open.load(Ordering::SeqCst)
    }

    /// Cuts every open connection and goes on listening.
    pub(crate) fn cut_connections(&self) {
        std::mem::take(&mut *self.connections.cut.lock()).cancel();
    }

    /// Stops listening, cuts what is open and waits until all of it has ended.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(socket: TcpStream, handler: Arc<impl Handler>) {
    // A peer that goes away in the middle is its own affair: what was asked is recorded by the handler.
    if socket.set_nodelay(true).is_ok() {
        let service = service_fn(move |request| {
            let handler = Arc::clone(&handler);
            async move { Ok::<_, Infallible>(handler.handle(request).await) }
        });
        drop(http1::Builder::new().serve_connection(TokioIo::new(socket), service).await);
    }
}

// === impl Open ===

impl Open {
    fn count(connections: &Arc<Connections>) -> Self {
        connections.accepted.fetch_add(1, Ordering::SeqCst);
        connections.open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(connections))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

// === impl ReplyBody ===

impl ReplyBody {
    /// A body that is sent piece by piece.
    pub(crate) fn stream() -> (BodySender, Self) {
        let (sender, receiver) = mpsc::channel(CHUNKS_HELD);
        (sender, Self::Stream(receiver))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(chunks) => {
                chunks.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer with a status and no body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    reply(status, None, None)
}

/// An answer with a body of a content type, both optional.
pub(crate) fn reply(status: StatusCode, content_type: Option<&'static str>, body: Option<Bytes>) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(body.filter(|body| !body.is_empty())));
    *reply.status_mut() = status;
    if let Some(content_type) = content_type {
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    reply
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    reply(status, Some("application/json"), Some(body.into()))
}

/// An open event stream and the sender of its events.
pub(crate) fn event_stream() -> (BodySender, Reply) {
    let (sender, body) = ReplyBody::stream();
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    (sender, reply)
}
