//! Asks a provider for its keys and holds them: one question at a time, each bounded, and a provider that is away
//! takes no key from us. Verifies nothing.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use mooring_runtime::Tasks;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{
    fetch::{FetchError, Source},
    keys::Keys,
    refresh::{FLOOR, Facts, Step, step},
};

/// How long one question may take: discovery and keys.
const ASK_TIME: Duration = Duration::from_secs(5);

/// A provider and its keys as far as they are known.
#[derive(Debug)]
pub(super) struct Provider {
    source: Source,
    tasks: Tasks,
    keys: ArcSwapOption<Keys>,
    turn: Mutex<Turn>,
    answers: watch::Sender<u64>,
}

/// Whose turn it is to ask, and what came of the last time.
#[derive(Debug, Default)]
struct Turn {
    asking: bool,
    asked: Option<Instant>,
    answered: Option<Instant>,
    failing: bool,
}

impl Provider {
    /// A provider that is asked for the first time at once, beside the start: it may be down.
    pub(super) fn start(source: Source, tasks: &Tasks) -> Arc<Self> {
        let provider = Arc::new(Self {
            source,
            tasks: tasks.clone(),
            keys: ArcSwapOption::empty(),
            turn: Mutex::default(),
            answers: watch::Sender::new(0),
        });
        provider.ask();
        provider
    }

    /// Whether it is the provider that `source` leads to.
    pub(super) fn is_of(&self, source: &Source) -> bool {
        self.source.same(source)
    }

    /// The keys as they are held.
    pub(super) fn held(&self) -> Option<Arc<Keys>> {
        self.keys.load_full()
    }

    /// The keys to verify a token with that one of them must fit; none where the provider never answered.
    pub(super) async fn keys(self: &Arc<Self>, fits: impl Fn(&Keys) -> bool) -> Option<Arc<Keys>> {
        let held = self.held();
        let facts = self.facts(held.as_deref().map(fits));
        match step(facts) {
            Step::Use => held,
            Step::UseAndAsk => {
                self.ask();
                held
            }
            Step::Wait => {
                let mut answers = self.answers.subscribe();
                if self.ask() {
                    // Without an answer in time, what is held is what there is.
                    drop(timeout(ASK_TIME, answers.changed()).await);
                }
                self.held()
            }
        }
    }

    fn facts(&self, fits: Option<bool>) -> Facts {
        let turn = self.turn.lock();
        Facts {
            age: turn.answered.filter(|_| fits.is_some()).map(|at| at.elapsed()),
            known: fits == Some(true),
            asked: turn.asked.map(|at| at.elapsed()),
            failing: turn.failing,
            asking: turn.asking,
        }
    }

    /// Asks, unless somebody does or did a moment ago; whether there is an answer to wait for.
    fn ask(self: &Arc<Self>) -> bool {
        {
            let mut turn = self.turn.lock();
            if turn.asking {
                return true;
            }
            if turn.asked.is_some_and(|at| at.elapsed() < FLOOR) {
                return false;
            }
            turn.asking = true;
            turn.asked = Some(Instant::now());
        }
        let provider = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = timeout(ASK_TIME, provider.source.fetch()).await;
            provider.take(answer.unwrap_or(Err(FetchError::Late)));
        });
        true
    }

    fn take(&self, answer: Result<Keys, FetchError>) {
        let failed = answer.as_ref().err().map(ToString::to_string);
        if let Ok(keys) = answer {
            // The same keys stay the same value, so that tokens verified with them need not be verified again.
            if self.held().is_none_or(|held| *held != keys) {
                tracing::info!(provider = %self.source, "keys to verify tokens with");
                self.keys.store(Some(Arc::new(keys)));
            }
        }
        {
            let mut turn = self.turn.lock();
            turn.asking = false;
            turn.failing = failed.is_some();
            if failed.is_none() {
                turn.answered = Some(Instant::now());
            }
        }
        self.answers.send_modify(|count| *count += 1);
        if let Some(error) = failed {
            tracing::warn!(provider = %self.source, error, "no keys to verify tokens with; those that are held stay");
        }
    }
}
