//! Gathers what comes within a fixed window into one batch, each item once. Cannot be held open by what keeps coming.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout_at};

/// Batches of `items`: each is open for `window` from its first item on, or until it has taken `most` of them.
///
/// A window that each item began anew would stay open for as long as items come faster than it is wide.
pub fn gather<T: Ord>(
    items: impl Stream<Item = T>,
    window: Duration,
    most: usize,
) -> impl Stream<Item = BTreeSet<T>> {
    stream::unfold(Some(Box::pin(items)), move |items| async move {
        let mut items = items?;
        let mut batch = BTreeSet::from([items.next().await?]);
        let closes = Instant::now() + window;
        // Items are counted, not what is left of them: equal ones, always at hand, must not keep it open either.
        for _ in 1..most {
            match timeout_at(closes, items.next()).await {
                Ok(Some(item)) => batch.insert(item),
                Ok(None) => return Some((batch, None)),
                Err(_) => break,
            };
        }
        Some((batch, Some(items)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(100);

    /// The numbers from 0, one every 50 ms.
    fn every_50_ms() -> impl Stream<Item = u32> {
        let ticks = tokio::time::interval(Duration::from_millis(50));
        stream::unfold((ticks, 0), |(mut ticks, number)| async move {
            ticks.tick().await;
            Some((number, (ticks, number + 1)))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn wakes_faster_than_the_window_do_not_hold_it_open() {
        let began = Instant::now();
        let mut batches = Box::pin(gather(every_50_ms(), WINDOW, 1_024));
        let mut all = BTreeSet::new();
        let (mut last, mut count) = (began, 0);
        while began.elapsed() < Duration::from_secs(5) {
            let batch = batches.next().await.unwrap();
            // The window, and up to 50 ms until the wake that opens the next.
            assert!(last.elapsed() <= Duration::from_millis(155), "{:?} without a batch", last.elapsed());
            assert!((2..=3).contains(&batch.len()), "{batch:?}");
            all.extend(batch);
            (last, count) = (Instant::now(), count + 1);
        }
        assert!(count >= 30, "{count} batches in 5 s");
        assert!(all.iter().copied().eq(0..u32::try_from(all.len()).unwrap()), "a wake was lost: {all:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn equal_wakes_of_one_window_become_one() {
        let items = stream::iter(["a", "b", "a", "a"]).chain(stream::pending());
        let batch = Box::pin(gather(items, WINDOW, 1_024)).next().await.unwrap();
        assert_eq!(batch, BTreeSet::from(["a", "b"]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_takes_a_bounded_number_even_of_equal_wakes() {
        let began = Instant::now();
        let mut batches = Box::pin(gather(stream::repeat("a"), WINDOW, 8));
        assert_eq!(batches.next().await, Some(BTreeSet::from(["a"])));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_before_the_end_is_not_lost() {
        let batches: Vec<_> = gather(stream::iter(["a", "b"]), WINDOW, 1_024).collect().await;
        assert_eq!(batches, [BTreeSet::from(["a", "b"])]);
    }
}
