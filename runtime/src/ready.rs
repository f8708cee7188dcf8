//! Readiness: true once every named part is ready and while no shutdown has begun.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;

/// Which parts readiness still waits for.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    pending: BTreeSet<&'static str>,
    draining: bool,
}

/// Held by a part until it is ready; dropping it says so.
#[derive(Debug)]
pub struct Pending {
    part: &'static str,
    readiness: Readiness,
}

impl Readiness {
    /// Names a part that readiness waits for. A name is used once.
    #[must_use]
    pub fn wait_for(&self, part: &'static str) -> Pending {
        self.0.lock().pending.insert(part);
        Pending { part, readiness: self.clone() }
    }

    /// Not ready from now on, for good.
    pub fn drain(&self) {
        self.0.lock().draining = true;
    }

    /// What is missing, in words; `None` where ready.
    pub fn missing(&self) -> Option<String> {
        let state = self.0.lock();
        if state.draining {
            return Some("draining".to_owned());
        }
        if state.pending.is_empty() {
            return None;
        }
        Some(format!("waiting for {}", state.pending.iter().copied().collect::<Vec<_>>().join(", ")))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.readiness.0.lock().pending.remove(self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_it_waits_for_and_ends_with_the_drain() {
        let readiness = Readiness::default();
        let config = readiness.wait_for("configuration");
        let listener = readiness.wait_for("listener");
        assert_eq!(readiness.missing().as_deref(), Some("waiting for configuration, listener"));
        drop(config);
        drop(listener);
        assert_eq!(readiness.missing(), None);
        readiness.drain();
        assert_eq!(readiness.missing().as_deref(), Some("draining"));
    }
}
