//! Receives a request's body: whole, within its limit, its time, and what bodies may take in all (DESIGN §4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::fault::Fault;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What bodies held whole may take in all: the bytes that are left.
#[derive(Debug, Clone)]
pub struct Budget(Arc<AtomicU64>);

/// A body, and its share of the budget for as long as it is held.
#[derive(Debug)]
pub struct Received {
    /// The body.
    pub bytes: Bytes,
    /// Its share.
    pub share: Share,
}

/// What one request holds of the budget. Given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: u64,
}

impl Share {
    /// Holds at least so many bytes from now on; what it holds already counts.
    ///
    /// # Errors
    /// [`Fault::Overloaded`], where the budget is used up.
    pub fn hold(&mut self, bytes: u64) -> Result<(), Fault> {
        if bytes <= self.bytes {
            return Ok(());
        }
        // Half as much again, so that what grows by small pieces is not counted piece by piece.
        let more = (bytes - self.bytes).max(self.bytes / 2);
        let take = |left: u64| left.checked_sub(more);
        self.budget
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map_err(|_| Fault::Overloaded)?;
        self.bytes += more;
        Ok(())
    }

    /// What it is a share of.
    pub fn of(&self) -> &Budget {
        &self.budget
    }

    /// Gives back what it holds.
    pub fn release(&mut self) {
        match std::mem::take(&mut self.bytes) {
            0 => {}
            held => drop(self.budget.0.fetch_add(held, Ordering::Relaxed)),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release();
    }
}

impl Budget {
    /// A share that holds nothing yet.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }
}

/// Receives `body`, of at most `limit` bytes.
///
/// # Errors
/// [`Fault::BodyTooLarge`], [`Fault::BodyIncomplete`], [`Fault::Overloaded`].
pub async fn receive(mut body: Incoming, limit: u64, budget: &Budget) -> Result<Received, Fault> {
    let hint = body.size_hint();
    if hint.lower() > limit {
        return Err(Fault::BodyTooLarge(limit));
    }
    // Counted as it arrives: a length that is only announced takes nothing from others.
    let mut share = budget.share();
    let reading = async {
        let mut first: Option<Bytes> = None;
        let mut more = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Fault::BodyIncomplete)?.into_data() else { continue };
            let held = first.as_ref().map_or(more.len(), Bytes::len) as u64 + data.len() as u64;
            if held > limit {
                return Err(Fault::BodyTooLarge(limit));
            }
            share.hold(held)?;
            // Most bodies are one frame, which is kept as it is.
            match first.take() {
                None if more.is_empty() => first = Some(data),
                None => more.extend_from_slice(&data),
                Some(head) => {
                    more.reserve(usize::try_from(hint.lower()).unwrap_or(0).max(head.len() + data.len()));
                    more.extend_from_slice(&head);
                    more.extend_from_slice(&data);
                }
            }
        }
        Ok(first.unwrap_or_else(|| more.freeze()))
    };
    let bytes = timeout(BODY_TIME, reading).await.unwrap_or(Err(Fault::BodyIncomplete))?;
    Ok(Received { bytes, share })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_used_up_refuses_until_a_share_comes_back() {
        let budget = Budget::new(4096);
        let mut share = budget.share();
        share.hold(4096).unwrap();
        assert_eq!(budget.share().hold(1), Err(Fault::Overloaded));
        share.release();
        assert_eq!(budget.share().hold(1), Ok(()));
        assert_eq!(budget.share().hold(0), Ok(()));
    }

    #[test]
    fn a_share_that_grows_takes_what_it_says_and_gives_all_of_it_back() {
        let budget = Budget::new(1000);
        let mut share = budget.share();
        for bytes in [100, 101, 200, 500] {
            share.hold(bytes).unwrap();
            assert!(share.bytes >= bytes);
            assert_eq!(budget.0.load(Ordering::Relaxed), 1000 - share.bytes);
        }
        assert_eq!(share.hold(1001), Err(Fault::Overloaded));
        drop(share);
        assert_eq!(budget.share().hold(1000), Ok(()));
    }
}
