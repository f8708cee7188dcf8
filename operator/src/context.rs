//! What every reconcile is handed: the stores, the writer, the settings and the clock.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mooring_crds::compile::Platform;
use mooring_runtime::Clock;

use crate::{apply::Writer, events::Events, ledger::Ledger, metrics::Metrics, stores::Stores};

/// What the installation decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The daemon's image.
    pub daemon_image: String,
    /// When nodes pull it.
    pub daemon_image_pull_policy: String,
    /// The platform's limits.
    pub platform: Platform,
}

/// Shared by all reconciles.
#[derive(Debug)]
pub struct Context {
    /// To read from.
    pub stores: Stores,
    /// To write with.
    pub writer: Writer,
    /// What was written.
    pub ledger: Arc<Ledger>,
    /// To tell users with.
    pub events: Events,
    /// To count with.
    pub metrics: Metrics,
    /// The installation's settings.
    pub settings: Settings,
    /// The time.
    pub clock: Clock,
}

impl Context {
    /// The time, in whole seconds, as conditions keep it.
    pub fn now(&self) -> Time {
        let seconds = self.clock.now().0.div_euclid(1_000);
        Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}
