//! The other end of a conversation, whatever carries it: what can be said to it, and what it says.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use super::{lines, sse::Posts};
use crate::jsonrpc::Message;

/// Messages on their way, each way, before the one who sends waits.
pub(super) const UNDER_WAY: usize = 64;
/// Bytes on their way to a process: of what it has not read yet, this much is held.
const UNREAD_BYTES: u32 = 4 << 20;
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
    Lines(Input),
    /// POSTs to an HTTP+SSE server's endpoint.
    Posts(Arc<Posts>),
}

/// The way to a process's standard input.
#[derive(Debug)]
pub(super) struct Input {
    lines: mpsc::Sender<Written>,
    room: Arc<Semaphore>,
}

/// What is written to a process: whole lines. Counted until it is dropped.
#[derive(Debug)]
pub(super) struct Written {
    /// The lines.
    pub(super) text: Bytes,
    _room: OwnedSemaphorePermit,
}

/// Room for one message, taken before it is decided what it says.
#[derive(Debug)]
pub(super) struct Place<'a> {
    line: mpsc::Permit<'a, Written>,
    room: OwnedSemaphorePermit,
}

impl Place<'_> {
    /// Sends it, without waiting.
    pub(super) fn fill(self, message: &[u8]) {
        self.line.send(Written { text: lines::line(message), _room: self.room });
    }
}

impl Input {
    /// The way, and where it leads.
    pub(super) fn new() -> (Self, mpsc::Receiver<Written>) {
        let (lines, written) = mpsc::channel(UNDER_WAY);
        (Self { lines, room: Arc::new(Semaphore::new(UNREAD_BYTES as usize)) }, written)
    }

    /// Waits for room; a message that is larger than all of it takes it whole.
    async fn place(&self, bytes: usize) -> Result<Place<'_>, NotSent> {
        let room = Arc::clone(&self.room).acquire_many_owned(needed(bytes + 1)).await;
        let room = room.map_err(|_| NotSent::Gone)?;
        let line = self.lines.reserve().await.map_err(|_| NotSent::Gone)?;
        Ok(Place { line, room })
    }

    async fn send(&self, message: &[u8]) -> Result<(), NotSent> {
        self.place(message.len()).await?.fill(message);
        Ok(())
    }

    /// Whether there was room for all of them, as one.
    fn try_send(&self, messages: &[Bytes]) -> bool {
        let text =
            Bytes::from(messages.iter().map(|message| lines::line(message)).collect::<Vec<_>>().concat());
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(needed(text.len())) else {
            return false;
        };
        self.lines.try_send(Written { text, _room: room }).is_ok()
    }
}

fn needed(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).min(UNREAD_BYTES)
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
                Self::Lines(input) => input.send(&message).await,
                Self::Posts(posts) => posts.post(headers, message).await,
            }
        };
        timeout(TAKE_TIME, sending).await.unwrap_or(Err(NotSent::Stuck))
    }

    /// Waits for room for a message of about this size; none where nothing says in which order messages arrive.
    pub(super) async fn place(&self, bytes: usize) -> Result<Option<Place<'_>>, NotSent> {
        match self {
            Self::Lines(input) => {
                let place = timeout(TAKE_TIME, input.place(bytes)).await.unwrap_or(Err(NotSent::Stuck))?;
                Ok(Some(place))
            }
            Self::Posts(_) => Ok(None),
        }
    }

    /// Answers the server in our own name. Never waits: whoever listens to the server must go on listening.
    pub(super) fn answer(&self, name: &str, messages: &[Bytes]) {
        match self {
            Self::Lines(input) => {
                if !messages.is_empty() && !input.try_send(messages) {
                    tracing::debug!(server = name, "an answer of the bridge was not taken");
                }
            }
            Self::Posts(posts) => messages.iter().for_each(|message| posts.answer(message.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_process_does_not_read_is_bounded_by_its_bytes() {
        let (input, mut written) = Input::new();
        let (outlet, headers) = (Outlet::Lines(input), HeaderMap::new());
        let send = |bytes: usize| outlet.send(&headers, Bytes::from(vec![b'x'; bytes]));
        let quarter = UNREAD_BYTES as usize / 4 - 1;
        for _ in 0..4 {
            assert_eq!(send(quarter).await, Ok(()));
        }
        assert_eq!(send(quarter).await, Err(NotSent::Stuck));
        let being_written = written.recv().await.unwrap();
        assert_eq!(send(quarter).await, Err(NotSent::Stuck), "it is held until it is written");
        drop(being_written);
        assert_eq!(send(quarter).await, Ok(()));
        for _ in 0..4 {
            assert_eq!(written.recv().await.unwrap().text.len(), quarter + 1);
        }
        // One that is larger than all the room passes, alone.
        let large = UNREAD_BYTES as usize * 2;
        assert_eq!(send(large).await, Ok(()));
        assert_eq!(send(1).await, Err(NotSent::Stuck));
        drop(written);
        assert_eq!(send(1).await, Err(NotSent::Gone));
    }
}
