//! A conversation with one server: one task listens to it, sessions speak to it. Who gets what is the board's decision.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Around,
    board::{Board, Party},
    outcome::{Begun, Delivery, NotBegun},
    peer::{NotSent, Outlet, Peer, Place},
    queue::{Queue, Reader},
    refusal::Refusal,
    subscriptions,
    table::Table,
};
use crate::jsonrpc::Message;

/// How long a request of a server waits for a stream to be given to.
const UNREAD: Duration = Duration::from_secs(10);
/// How long nothing may be in flight before a draining daemon takes it for the end.
const QUIET: Duration = Duration::from_millis(200);

/// A conversation.
pub(super) struct Conversation {
    /// The server's name in the log.
    name: Arc<str>,
    outlet: Outlet,
    shared: bool,
    board: Mutex<Board>,
    /// How many requests are in flight.
    busy: watch::Sender<usize>,
    /// Whether the server has been told `notifications/initialized`.
    initialized: AtomicBool,
    /// The server has to end.
    pub(super) end: CancellationToken,
}

/// A session that says something, and the headers of the request that it says it with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'a> {
    /// The session.
    pub(super) party: Party,
    /// The headers.
    pub(super) headers: &'a HeaderMap,
}

/// A request in flight; once dropped, nobody waits for it.
#[derive(Debug)]
pub(super) struct Flight {
    conversation: Arc<Conversation>,
    number: u64,
    sent: bool,
}

impl Conversation {
    /// Begins to listen to a server; until it ends, `table` counts the conversation.
    pub(super) fn begin(around: &Around, peer: Peer, shared: bool, end: CancellationToken) -> Arc<Self> {
        let Around { name, tasks, table, .. } = around;
        let Peer { outlet, incoming, why } = peer;
        let conversation = Arc::new(Self {
            name: Arc::clone(name),
            outlet,
            shared,
            board: Mutex::new(Board::new(shared)),
            busy: watch::Sender::new(0),
            initialized: AtomicBool::new(false),
            end,
        });
        let (listening, table, drain) = (Arc::clone(&conversation), Arc::clone(table), tasks.drain.clone());
        let counted = table.count();
        tasks.spawn(async move {
            listening.listen(incoming, &drain).await;
            listening.over(&why, &table);
            drop(counted);
        });
        conversation
    }

    /// Whether several sessions have this conversation.
    pub(super) fn is_shared(&self) -> bool {
        self.shared
    }

    /// A new session; none where the server has ended.
    pub(super) fn join(&self) -> Option<(Party, Arc<Queue>)> {
        self.board.lock().join()
    }

    /// A session is over.
    pub(super) fn part(&self, party: Party) {
        // Within the change: what it takes back may not reach the server behind what another subscribes to meanwhile.
        self.change(|board| self.outlet.answer(&self.name, &board.part(party)));
    }

    /// A request of a session; its answer comes from the reader. `aside` says whether more than that may come there.
    pub(super) async fn ask(
        self: &Arc<Self>,
        caller: Caller<'_>,
        message: &Message,
        id: &Bytes,
        aside: bool,
    ) -> Result<(Reader, Flight), Refusal> {
        let Caller { party, headers } = caller;
        let place = self.place(message).await?;
        let mut sent = false;
        let Begun { number, message, queue } = self.change(|board| {
            let mut begun = board.begin(party, message, id, aside)?;
            if let Some(place) = place
                && let Some(message) = begun.message.take()
            {
                place.fill(&message);
                sent = true;
            }
            Ok::<_, NotBegun>(begun)
        })?;
        let reader = queue.read();
        let mut flight = Flight { conversation: Arc::clone(self), number, sent };
        let Some(message) = message else { return Ok((reader, flight)) };
        match self.outlet.send(headers, message).await {
            Ok(()) => {
                flight.sent = true;
                Ok((reader, flight))
            }
            Err(not_sent) => Err(unsent(not_sent)),
        }
    }

    /// Room for what takes a subscription back at a shared server, which leaves as soon as it is decided: else another
    /// session might subscribe to the same, and be heard first.
    async fn place(&self, message: &Message) -> Result<Option<Place<'_>>, Refusal> {
        if !self.shared || !subscriptions::takes_back(message) {
            return Ok(None);
        }
        self.outlet.place(message.bytes.len()).await.map_err(unsent)
    }

    /// A notification of a session.
    pub(super) async fn tell(&self, caller: Caller<'_>, message: &Message) -> Result<(), Refusal> {
        let Caller { party, headers } = caller;
        let Some(text) = self.board.lock().notified(party, message) else { return Ok(()) };
        Ok(self.outlet.send(headers, text).await?)
    }

    /// Tells the server `notifications/initialized`, unless a session it shares with others has done so.
    pub(super) async fn initialized(&self, caller: Caller<'_>, message: &Message) -> Result<(), Refusal> {
        if self.initialized.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.tell(caller, message).await
    }

    /// An answer of a session. One to a request that the session was never given goes nowhere.
    pub(super) async fn respond(
        &self,
        caller: Caller<'_>,
        message: &Message,
        id: &[u8],
    ) -> Result<(), Refusal> {
        let Caller { party, headers } = caller;
        if !self.board.lock().answered(party, id) {
            tracing::debug!(server = &*self.name, "an answer to nothing that was asked");
            return Ok(());
        }
        Ok(self.outlet.send(headers, message.bytes.clone()).await?)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Board) -> T) -> T {
        let mut board = self.board.lock();
        let changed = change(&mut board);
        let in_flight = board.in_flight();
        // Under the lock, so that the newest number is the last that is said.
        self.busy.send_if_modified(|busy| std::mem::replace(busy, in_flight) != in_flight);
        drop(board);
        changed
    }

    async fn listen(&self, mut incoming: mpsc::Receiver<Message>, drain: &CancellationToken) {
        let mut quiet = pin!(self.quiet(drain));
        let mut quieted = false;
        loop {
            let waiting = self.board.lock().streams().filter_map(|stream| stream.waiting_since()).min();
            let hearing = async {
                match waiting {
                    Some(since) => timeout_at(since + UNREAD, incoming.recv()).await,
                    // Whatever may wait from now on is heard here first.
                    None => Ok(incoming.recv().await),
                }
            };
            let heard = tokio::select! {
                heard = hearing => heard,
                () = &mut quiet, if !quieted => {
                    quieted = true;
                    self.end.cancel();
                    continue;
                }
            };
            match heard {
                Ok(Some(message)) => self.heard(&message),
                Ok(None) => return,
                Err(_) => self.give_back(),
            }
        }
    }

    fn heard(&self, message: &Message) {
        match self.change(|board| board.deliver(message, Instant::now())) {
            Delivery::Done => {}
            Delivery::Lost(what) => tracing::debug!(server = &*self.name, what, "not delivered"),
            Delivery::Answer(answer) => self.outlet.answer(&self.name, &[answer]),
        }
    }

    /// Answers the server's requests that no client came for.
    fn give_back(&self) {
        let now = Instant::now();
        let mut board = self.board.lock();
        let overdue: Vec<Bytes> = board.streams().flat_map(|stream| stream.overdue(now, UNREAD)).collect();
        let answers: Vec<Bytes> = overdue.iter().map(|id| board.unanswered(id)).collect();
        drop(board);
        self.outlet.answer(&self.name, &answers);
    }

    /// Waits until the daemon drains and nothing is in flight here, nor begins soon.
    async fn quiet(&self, drain: &CancellationToken) {
        drain.cancelled().await;
        let mut busy = self.busy.subscribe();
        loop {
            // Its sender is ours: it does not go away.
            drop(busy.wait_for(|busy| *busy == 0).await);
            if timeout(QUIET, busy.wait_for(|busy| *busy > 0)).await.is_err() {
                return;
            }
        }
    }

    fn over(self: &Arc<Self>, why: &OnceLock<String>, table: &Table) {
        self.change(|board| board.end(why.get().map_or("the server has ended", String::as_str)));
        self.end.cancel();
        table.forget(self);
    }
}

fn unsent(error: NotSent) -> Refusal {
    match error {
        // It was not executed, and no later one will be: the session is gone.
        NotSent::Gone => Refusal::UnknownSession,
        other @ (NotSent::Stuck | NotSent::Refused(_)) => other.into(),
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let left =
            |board: &mut Board| if self.sent { board.leave(self.number) } else { board.unsent(self.number) };
        self.conversation.change(left);
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
