//! What comes of a session's request and of what a server says. Decides nothing; the board does.

use std::sync::Arc;

use bytes::Bytes;

use super::{queue::Queue, subscriptions::Full};

/// Requests in flight at one server.
pub(super) const MOST_FLIGHTS: usize = 1024;

/// A request that is on its way.
#[derive(Debug)]
pub(super) struct Begun {
    /// Its number, for [`Board::leave`].
    pub(super) number: u64,
    /// What the server is sent; nothing where the answer is there already.
    pub(super) message: Option<Bytes>,
    /// Where its answer comes.
    pub(super) queue: Arc<Queue>,
}

/// Why a request does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotBegun {
    /// Another one has its id.
    #[error("a request with this id is in flight")]
    Duplicate,
    /// Enough are in flight.
    #[error("{MOST_FLIGHTS} requests are in flight at this server")]
    TooMany,
    /// Enough is subscribed to.
    #[error(transparent)]
    Subscribed(#[from] Full),
    /// The server has ended.
    #[error("{0}")]
    Over(String),
}

/// What became of a message of the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is where it belongs.
    Done,
    /// It is nowhere.
    Lost(&'static str),
    /// The server gets this answer.
    Answer(Bytes),
}
