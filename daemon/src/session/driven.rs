//! Who has a stream go on: the connection that reads it, until another takes it over. One whose client reads nothing, or
//! is gone without a word, is stuck, and the stream would stand still with it.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;

use crate::body::Chunks;

/// A stream that a connection has go on, and that can be taken from it.
pub struct Driven(Mutex<State>);

struct State {
    /// None once it has ended, or was taken.
    chunks: Option<Chunks>,
    /// The connection, where it waits.
    waker: Option<Waker>,
}

/// A stream that was taken: it goes on by itself.
pub struct Rest(Chunks);

impl Driven {
    /// One that makes these chunks.
    pub fn new(chunks: Chunks) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { chunks: Some(chunks), waker: None })))
    }

    /// The next chunk for the connection; none where the stream has ended for it.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.0.lock();
        let State { chunks: Some(chunks), waker } = &mut *state else { return Poll::Ready(None) };
        let next = chunks.as_mut().poll_next(cx);
        match &next {
            Poll::Ready(Some(_)) => {}
            Poll::Ready(None) => state.chunks = None,
            Poll::Pending => match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            },
        }
        next
    }

    /// Takes it from the connection, which has reached its end with that.
    pub(super) fn take(&self) -> Option<Rest> {
        let mut state = self.0.lock();
        let (chunks, waker) = (state.chunks.take(), state.waker.take());
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        chunks.map(Rest)
    }
}

impl Rest {
    /// Has it go on. What it makes is for nobody: who took it reads what is kept.
    pub async fn run(mut self) {
        while self.0.next().await.is_some() {}
    }
}

impl std::fmt::Debug for Driven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driven").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{future::poll_fn, poll, stream};
    use tokio::sync::mpsc;

    use super::*;

    fn fed() -> (mpsc::Sender<Bytes>, Arc<Driven>) {
        let (feed, fed) = mpsc::channel::<Bytes>(1);
        let chunks = stream::unfold(fed, |mut fed| async { Some((Ok(fed.recv().await?), fed)) });
        (feed, Driven::new(Box::pin(chunks)))
    }

    #[tokio::test]
    async fn a_stream_that_is_taken_goes_on_though_its_connection_asks_no_more_and_ends_there() {
        let (feed, driven) = fed();
        let mut asks = Box::pin(poll_fn(|cx| driven.poll_next(cx)));
        feed.try_send(Bytes::from_static(b"1")).unwrap();
        assert!(matches!(poll!(&mut asks), Poll::Ready(Some(Ok(chunk))) if chunk == "1"));
        feed.try_send(Bytes::from_static(b"2")).unwrap();
        let rest = driven.take().unwrap();
        assert!(matches!(poll!(&mut asks), Poll::Ready(None)));
        assert!(driven.take().is_none());
        let mut runs = Box::pin(rest.run());
        assert!(poll!(&mut runs).is_pending() && feed.capacity() == 1);
        drop(feed);
        runs.await;
    }

    #[tokio::test]
    async fn a_connection_that_waits_is_told_that_its_stream_was_taken() {
        let (_feed, driven) = fed();
        let mut waits = tokio::task::JoinSet::new();
        let waiting = Arc::clone(&driven);
        waits.spawn(async move { poll_fn(|cx| waiting.poll_next(cx)).await.is_none() });
        tokio::task::yield_now().await;
        let _rest = driven.take().unwrap();
        let told = tokio::time::timeout(std::time::Duration::from_secs(5), waits.join_next()).await;
        assert!(told.unwrap().unwrap().unwrap());
    }

    #[tokio::test]
    async fn one_that_has_ended_is_not_asked_again() {
        let (feed, driven) = fed();
        drop(feed);
        for _ in 0..2 {
            assert!(poll_fn(|cx| driven.poll_next(cx)).await.is_none());
        }
        assert!(driven.take().is_none());
    }
}
