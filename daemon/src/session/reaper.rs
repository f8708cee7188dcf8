//! The one timer task: looks at each session when its time may have come, and sweeps the store for the records of
//! replicas that are gone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::time::{DelayQueue, delay_queue};

use super::{
    Session,
    id::Key,
    state::{Step, step},
    table::Sessions,
};
use crate::{catalog::merge::Marks, fault::EndReason};

/// What the reaper is told.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// Look at this session now, and then when it says.
    Arm(Key),
    /// Forget it.
    Disarm(Key),
}

/// How often the store is asked for expired records that no replica holds.
const SWEEP: Duration = Duration::from_secs(60);
/// How many a sweep takes.
const SWEEP_LIMIT: usize = 1000;
/// The longest that a timer is set for: the wheel panics beyond about two years.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What timers are set beyond their time: they may fire within the millisecond before it.
const TICK: Duration = Duration::from_millis(1);

/// Runs until the drain. Sessions do not end with it: their records stay.
pub(super) async fn run(sessions: Arc<Sessions>, mut commands: mpsc::Receiver<Command>) {
    let mut wheel = Wheel::default();
    // When the configuration ends more sessions, until it has.
    let mut due = None;
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = sessions.now();
        if due.is_some_and(|due| due <= now) {
            sessions.end_revoked();
        }
        let comes_in = sessions.revoked.load().comes_in(now);
        due = comes_in.map(|wait| now.plus(wait));
        // Beyond a day it is looked at again anyhow.
        let wait = comes_in.unwrap_or(LONGEST).min(LONGEST) + TICK;
        tokio::select! {
            () = sessions.tasks.drain.cancelled() => return,
            command = commands.recv() => match command {
                Some(Command::Arm(key)) => look(&sessions, key, &mut wheel),
                Some(Command::Disarm(key)) => wheel.disarm(key),
                None => return,
            },
            Some(due) = wheel.queue.next() => {
                let key = due.into_inner();
                wheel.timers.remove(&key);
                look(&sessions, key, &mut wheel);
            }
            // Either way it is looked at above.
            _ = timeout(wait, sessions.revoked_anew.notified()) => {}
            _ = sweep.tick() => {
                // Those again whose end could not be stored.
                sessions.end_revoked();
                sessions.let_go_of_large_messages();
                sessions.finished.sweep(sessions.now());
                let sessions = Arc::clone(&sessions);
                sessions.tasks.clone().spawn(async move { sweep_store(&sessions).await });
            }
        }
    }
}

/// Looks at one session. Its end runs beside the reaper, which must hear the `Disarm` that comes of it.
fn look(sessions: &Arc<Sessions>, key: Key, wheel: &mut Wheel) {
    let Some(session) = sessions.held(key) else {
        wheel.disarm(key);
        return;
    };
    let now = sessions.now();
    match step(session.facts(), now) {
        Step::WakeAt(at) => wheel.arm(key, now.until(at)),
        Step::Note { used, wake } => {
            wheel.arm(key, now.until(wake));
            session.noting(now);
            let sessions = Arc::clone(sessions);
            sessions.tasks.clone().spawn(async move { sessions.note_use(&session, used).await });
        }
        Step::End(reason) => {
            let sessions = Arc::clone(sessions);
            sessions.tasks.clone().spawn(async move { sessions.end_or_log(&session, reason).await });
        }
    }
}

async fn sweep_store(sessions: &Arc<Sessions>) {
    if let Err(error) = sessions.remove_ended().await {
        tracing::warn!(%error, "the store could not be swept");
        return;
    }
    let now = sessions.now();
    match sessions.store.scan_expired(now, SWEEP_LIMIT).await {
        Ok(expired) => {
            for (key, stored) in expired {
                // Held for a moment, so that it ends as every session does.
                let reason = stored.record.end_reason(now).unwrap_or(EndReason::Expired);
                let used = stored.record.used;
                let session = sessions.hold(Arc::new(Session::new(key, stored, used, Marks::default())));
                sessions.end_or_log(&session, reason).await;
            }
        }
        Err(error) => tracing::warn!(%error, "the store could not be swept"),
    }
}

#[derive(Debug, Default)]
struct Wheel {
    queue: DelayQueue<Key>,
    timers: HashMap<Key, delay_queue::Key>,
}

impl Wheel {
    fn arm(&mut self, key: Key, after: Duration) {
        self.disarm(key);
        let timer = self.queue.insert(key, after.min(LONGEST) + TICK);
        self.timers.insert(key, timer);
    }

    fn disarm(&mut self, key: Key) {
        if let Some(timer) = self.timers.remove(&key) {
            self.queue.remove(&timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mooring_crds::config::GatewayConfig;

    use super::*;
    use crate::{
        config::secrets::Secrets,
        gateway::{Gateway, Shared},
        receive::Budget,
        session::record::Principal,
        testing::{opening, shared},
    };

    #[tokio::test(start_paused = true)]
    async fn a_large_message_for_a_client_that_does_not_listen_takes_no_room_beyond_a_sweep() {
        const LARGE: usize = 1 << 20;
        let shared = Shared { budget: Budget::new(LARGE as u64), ..shared() };
        let budget = shared.budget.clone();
        let gateway = Gateway::start(GatewayConfig::default(), Secrets::default(), shared);
        let id = gateway.sessions.create(opening()).await.unwrap().to_string();
        let session = gateway.sessions.find(Some(&id), &Principal::Anonymous).await.unwrap();
        let outbox = &session.channel().outbox;
        // Whoever has something to do does it first.
        let passes = async |time| assert!(timeout(time, std::future::pending::<()>()).await.is_err());
        // The first sweep is one at once.
        passes(SWEEP / 2).await;
        outbox.take(Bytes::from(vec![b'x'; LARGE]), &budget).unwrap();
        passes(SWEEP / 4).await;
        assert_eq!(outbox.bytes(), LARGE, "its client may come back within the time");
        passes(SWEEP / 2).await;
        assert_eq!(outbox.bytes(), 0);
        assert!(budget.share().hold(LARGE as u64).is_ok());
    }
}
