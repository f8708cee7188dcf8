//! One turn of the scheduler: what was woken before it has run when it is over. No clock, no sleep.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Says that the scheduler came round, and passes the word on.
struct CameRound {
    round: AtomicBool,
    task: Waker,
}

impl Wake for CameRound {
    fn wake(self: Arc<Self>) {
        self.round.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

/// Returns when every task that is ready now has run.
///
/// A bare `yield_now` does not do: an HTTP connection polls its body again at once, up to sixteen times, and the yield
/// counts any poll as its turn.
pub(super) async fn turn() {
    let mut yielding = pin!(tokio::task::yield_now());
    let mut came: Option<Arc<CameRound>> = None;
    std::future::poll_fn(move |cx| {
        if let Some(came) = &came {
            return if came.round.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending };
        }
        let new = Arc::new(CameRound { round: AtomicBool::new(false), task: cx.waker().clone() });
        let waker = Waker::from(Arc::clone(&new));
        came = Some(new);
        yielding.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test]
    async fn however_often_it_is_polled_a_turn_ends_only_behind_what_was_ready() {
        let ran = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&ran);
        #[expect(clippy::disallowed_methods, reason = "no tracker in a test")]
        let task = tokio::spawn(async move { other.fetch_add(1, Ordering::SeqCst) });
        let mut turn = pin!(turn());
        std::future::poll_fn(|cx| {
            for _ in 0..16 {
                if turn.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                assert_eq!(ran.load(Ordering::SeqCst), 0, "nobody else runs while we do");
            }
            Poll::Pending
        })
        .await;
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert_eq!(task.await.unwrap(), 0);
    }
}
