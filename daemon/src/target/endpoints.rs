//! The ready addresses behind a Service: a session stays with the one that answered its `initialize` (case 013), while
//! new ones go round. Connects to nothing itself.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::connect::Pool;

/// How long an address is left alone after a connection to it failed: the Service knows better meanwhile.
const AWAY: Duration = Duration::from_secs(5);

/// The addresses of one target.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    state: Mutex<State>,
    turn: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    addresses: Vec<SocketAddr>,
    /// Until when each that failed is left alone.
    away: HashMap<SocketAddr, Instant>,
    pools: HashMap<SocketAddr, Pool>,
}

impl State {
    fn usable(&self, address: SocketAddr, now: Instant) -> bool {
        self.addresses.contains(&address) && self.away.get(&address).is_none_or(|until| *until <= now)
    }
}

impl Endpoints {
    /// Takes the addresses of now. Connections to those that are gone end with what runs on them.
    pub(super) fn set(&self, addresses: Vec<SocketAddr>) {
        let mut state = self.state.lock();
        if state.addresses != addresses {
            state.pools.retain(|address, _| addresses.contains(address));
            state.away.clear();
            state.addresses = addresses;
        }
    }

    /// Where a new session begins; none where the Service decides.
    pub(super) fn pick(&self, now: Instant) -> Option<SocketAddr> {
        let state = self.state.lock();
        let usable: Vec<_> =
            state.addresses.iter().copied().filter(|address| state.usable(*address, now)).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        usable.get(turn.checked_rem(usable.len())?).copied()
    }

    /// Whether requests go to `address` now.
    pub(super) fn usable(&self, address: SocketAddr, now: Instant) -> bool {
        self.state.lock().usable(address, now)
    }

    /// The connections to `address`, made with `open` at the first use; none where the Service decides.
    pub(super) fn pool(
        &self,
        address: SocketAddr,
        now: Instant,
        open: impl FnOnce() -> Pool,
    ) -> Option<Pool> {
        let mut state = self.state.lock();
        if !state.usable(address, now) {
            return None;
        }
        Some(state.pools.entry(address).or_insert_with(open).clone())
    }

    /// Notes that no connection to `address` could be made.
    pub(super) fn failed(&self, address: SocketAddr, now: Instant) {
        self.state.lock().away.insert(address, now + AWAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[tokio::test(start_paused = true)]
    async fn new_sessions_go_round_and_an_address_that_failed_is_left_alone_for_a_while() {
        let endpoints = Endpoints::default();
        let now = Instant::now();
        assert_eq!(endpoints.pick(now), None, "without addresses the Service decides");
        endpoints.set(vec![address(1), address(2)]);
        let picked = [endpoints.pick(now), endpoints.pick(now)];
        assert!(picked.contains(&Some(address(1))) && picked.contains(&Some(address(2))), "{picked:?}");
        endpoints.failed(address(1), now);
        assert!((0..4).all(|_| endpoints.pick(now) == Some(address(2))));
        assert!(!endpoints.usable(address(1), now) && endpoints.usable(address(1), now + AWAY));
        endpoints.set(vec![address(1)]);
        assert!(endpoints.usable(address(1), now), "a new list is a new chance");
        assert!(!endpoints.usable(address(2), now));
    }
}
