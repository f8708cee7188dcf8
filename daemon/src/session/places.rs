//! Pure: counted places, each held for as long as what it was given for lasts. Bounds requests and streams; waits for
//! nobody and knows nothing of what it counts.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use prometheus::IntGauge;

/// Places of one kind, of one session or of one gateway.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<AtomicU32>);

/// A place that is taken. Given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    of: Places,
    gauge: Option<IntGauge>,
}

impl Places {
    /// Takes a place, where fewer than `limit` are taken. Of callers who race for the last one, one gets it.
    pub fn enter(&self, limit: u32) -> Option<Place> {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            taken.checked_add(1).filter(|more| *more <= limit)
        });
        taken.is_ok().then(|| Place { of: self.clone(), gauge: None })
    }

    /// How many are taken.
    pub fn taken(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

impl Place {
    /// Has the place shown in `gauge` for as long as it is taken.
    #[must_use]
    pub fn shown(mut self, gauge: &IntGauge) -> Self {
        gauge.inc();
        if let Some(other) = self.gauge.replace(gauge.clone()) {
            other.dec();
        }
        self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.0.fetch_sub(1, Ordering::AcqRel);
        if let Some(gauge) = &self.gauge {
            gauge.dec();
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn one_more_than_the_limit_is_refused_until_a_place_comes_back() {
        let places = Places::default();
        let held: Vec<_> = (0..3).map(|_| places.enter(3).unwrap()).collect();
        assert!(places.enter(3).is_none());
        assert_eq!(places.taken(), 3, "a refusal takes nothing");
        assert!(places.enter(4).is_some(), "a limit that was raised holds at once, and the place came back");
        drop(held);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn a_gauge_shows_what_is_taken_and_no_more() {
        let (places, gauge) = (Places::default(), IntGauge::new("open", "open").unwrap());
        let held = places.enter(2).unwrap().shown(&gauge).shown(&gauge);
        assert_eq!(gauge.get(), 1);
        drop(held);
        assert_eq!(gauge.get(), 0);
    }

    #[test]
    fn of_many_who_race_for_the_places_no_more_than_the_limit_get_one() {
        let places = Places::default();
        let got = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| got.lock().extend((0..100).filter_map(|_| places.enter(50))));
            }
        });
        assert_eq!(got.lock().len(), 50);
    }
}
