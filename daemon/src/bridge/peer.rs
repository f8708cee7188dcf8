//! The other end of a conversation, whatever carries it: what can be said to it, and what it says.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use tokio::{sync::mpsc, time::timeout};

use super::{lines, sse::Posts};
use crate::jsonrpc::Message;

/// Messages on their way, each way, before the one who sends waits.
pub(super) const UNDER_WAY: usize = 64;
/// How long a server may take to take one message.
const TAKE_TIME: Duration = Duration::from_secs(10);

/// A server that was reached.
#[derive(Debug)]
pub(super) struct Peer {
    /// The way to it.
    pub(super) outlet: Outlet,
    /// What it says. At the end `why` is set.
    pub(super) incoming: mpsc::Receiver<Message>,
    /// Why it says nothing any more.
    pub(super) why: Arc<OnceLock<String>>,
}

/// The way to a server.
#[derive(Debug)]
pub(super) enum Outlet {
    /// A process's standard input, line by line.
    Lines(mpsc::Sender<Bytes>),
    /// POSTs to an HTTP+SSE server's endpoint.
    Posts(Arc<Posts>),
}

/// Why a server could not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreached {
    /// Its process cannot be started.
    #[error("the server's process cannot be started: {0}")]
    Spawn(String),
    /// Enough processes run.
    #[error("{0} processes of this server run already")]
    TooMany(usize),
    /// Its event stream cannot be opened.
    #[error("the server's event stream cannot be opened: {0}")]
    Stream(String),
}

/// Why a message did not go out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotSent {
    /// The server is gone.
    #[error("the server has ended")]
    Gone,
    /// It takes nothing.
    #[error("the server takes no messages")]
    Stuck,
    /// It refused the message.
    #[error("the server refused the message: {0}")]
    Refused(String),
}

impl Outlet {
    /// Says something to the server; over HTTP, with these headers of whoever asked for it.
    pub(super) async fn send(&self, headers: &HeaderMap, message: Bytes) -> Result<(), NotSent> {
        let sending = async {
            match self {
                Self::Lines(lines) => lines.send(lines::line(&message)).await.map_err(|_| NotSent::Gone),
                Self::Posts(posts) => posts.post(headers, message).await,
            }
        };
        timeout(TAKE_TIME, sending).await.unwrap_or(Err(NotSent::Stuck))
    }

    /// Answers the server in our own name. Never waits: whoever listens to the server must go on listening.
    pub(super) fn answer(&self, name: &str, message: Bytes) {
        match self {
            Self::Lines(lines) => {
                if lines.try_send(lines::line(&message)).is_err() {
                    tracing::debug!(server = name, "an answer of the bridge was not taken");
                }
            }
            Self::Posts(posts) => posts.answer(message),
        }
    }
}
