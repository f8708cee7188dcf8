//! Streamable HTTP in front of servers that do not speak it: processes on stdio, and the old HTTP+SSE. A server towards
//! whoever connects; it knows nothing of gateways, their clients and their sessions.
//!
//! A session here is a process, or an event stream, of its own; with [`Isolation::Shared`] one process serves all. It
//! lives in memory: with the bridge's end every process ends.
//!
//! [`Isolation::Shared`]: mooring_crds::config::Isolation::Shared

mod board;
mod conversation;
mod handshake;
mod home;
mod http;
mod lines;
mod outcome;
mod pace;
mod peer;
mod process;
mod queue;
mod refusal;
mod rewrite;
mod sse;
mod subscriptions;
mod table;
mod token;

use std::{
    convert::Infallible,
    fmt,
    pin::pin,
    sync::{Arc, Once},
};

use ::http::Uri;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mooring_crds::config::CommandConfig;
use mooring_runtime::Tasks;
use parking_lot::Mutex;
use tokio::{io::DuplexStream, sync::Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::sse::Http;
use self::{handshake::Joint, table::Table};
use crate::metrics::TargetRefusals;

/// Processes of one bridge at once: each session has one, the catalogue's among them.
const MOST_PROCESSES: usize = 64;
/// What a connection holds that the other end has not read.
const PIPE_BYTES: usize = 64 << 10;

/// What a bridge speaks to.
#[derive(Debug)]
pub enum Source {
    /// A process of this machine, started when it is needed.
    Process(CommandConfig),
    /// An HTTP+SSE server.
    Sse {
        /// How requests are sent to it.
        http: Arc<dyn Http>,
        /// Where its event stream is.
        url: Uri,
    },
}

/// What all parts of a bridge share.
#[derive(Debug)]
struct Around {
    /// The server's name in the log.
    name: Arc<str>,
    tasks: Tasks,
    table: Arc<Table>,
    /// Counts what is refused for want of room.
    refusals: TargetRefusals,
}

/// A bridge.
pub struct Bridge {
    around: Around,
    source: Source,
    processes: Arc<Semaphore>,
    joint: Mutex<Arc<Joint>>,
    used: Once,
    /// The parent of all conversations; cancelled when the bridge is dropped.
    alive: CancellationToken,
    _end: DropGuard,
    /// The daemon drains and no conversation is left.
    drained: CancellationToken,
}

impl Bridge {
    /// A bridge without sessions; `name` is what the log calls its server.
    pub fn new(name: &str, source: Source, tasks: &Tasks, refusals: &TargetRefusals) -> Arc<Self> {
        let alive = CancellationToken::new();
        Arc::new(Self {
            around: Around {
                name: name.into(),
                tasks: tasks.clone(),
                table: Arc::default(),
                refusals: refusals.clone(),
            },
            source,
            processes: Arc::new(Semaphore::new(MOST_PROCESSES)),
            joint: Mutex::default(),
            used: Once::new(),
            _end: alive.clone().drop_guard(),
            alive,
            drained: CancellationToken::new(),
        })
    }

    /// Watches for the drain, once anybody connects.
    fn watch(&self) {
        let (alive, drained) = (self.alive.clone(), self.drained.clone());
        let Around { tasks, table, .. } = &self.around;
        let (drain, table) = (tasks.drain.clone(), Arc::clone(table));
        let runs_processes = matches!(self.source, Source::Process(_));
        tasks.spawn(async move {
            if runs_processes {
                // What cannot be removed is said in the log.
                drop(tokio::task::spawn_blocking(home::sweep).await);
            }
            let draining = async {
                drain.cancelled().await;
                table.empty().await;
            };
            let _drained: Option<()> = alive.run_until_cancelled(draining).await;
            drained.cancel();
        });
    }

    /// A connection to this bridge, as over a socket: HTTP/1.1, any number of requests.
    pub fn connect(self: &Arc<Self>) -> DuplexStream {
        self.used.call_once(|| self.watch());
        let (theirs, ours) = tokio::io::duplex(PIPE_BYTES);
        let (bridge, drained) = (Arc::clone(self), self.drained.clone());
        self.around.tasks.spawn(async move {
            let service = service_fn(|request| {
                let bridge = Arc::clone(&bridge);
                async move { Ok::<_, Infallible>(http::handle(&bridge, request).await) }
            });
            let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(ours), service));
            let ended = tokio::select! {
                ended = &mut connection => ended,
                // Not with the drain alone: what is in flight may need a connection still.
                () = drained.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(server = &*bridge.around.name, %error, "connection to a bridge");
            }
        });
        theirs
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("name", &self.around.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
