//! The one registry of the operator's metrics. Every label has few values: never an object's name.

use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Handles to every metric.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// What `/metrics` shows.
    pub registry: Registry,
    reconciles: IntCounterVec,
    seconds: HistogramVec,
    writes: IntCounterVec,
    watch_errors: IntCounterVec,
    wakes: IntCounterVec,
    queued: IntGaugeVec,
    undecodable: IntCounterVec,
    events_lost: IntCounterVec,
    leader: IntGauge,
}

impl Metrics {
    /// Registers every metric in a registry of its own.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| counter(&registry, name, help, labels);
        let reconciles = counter(
            "mooring_operator_reconciles_total",
            "Reconciles by kind and outcome: ok, or the step that failed.",
            &["kind", "outcome"],
        )?;
        let writes = counter(
            "mooring_operator_writes_total",
            "Requests that write to the API server, by the kind written; a status counts as KIND/status.",
            &["kind"],
        )?;
        let watch_errors = counter(
            "mooring_operator_watch_errors_total",
            "Times that a watch failed and was begun again, by kind.",
            &["kind"],
        )?;
        let wakes = counter(
            "mooring_operator_wakes_total",
            "Requests to reconcile, before equal ones are merged, by the kind to reconcile.",
            &["kind"],
        )?;
        let undecodable = counter(
            "mooring_operator_undecodable_objects_total",
            "Versions of objects that could not be decoded, by kind.",
            &["kind"],
        )?;
        let events_lost =
            counter("mooring_operator_events_lost_total", "Events that could not be published.", &["kind"])?;
        let seconds = HistogramVec::new(
            HistogramOpts::new("mooring_operator_reconcile_seconds", "How long a reconcile took, by kind.")
                .buckets(vec![0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0]),
            &["kind"],
        )?;
        registry.register(Box::new(seconds.clone()))?;
        let queued = IntGaugeVec::new(
            Opts::new(
                "mooring_operator_queued_wakes",
                "Requests to reconcile not yet taken from the queue, by kind.",
            ),
            &["kind"],
        )?;
        registry.register(Box::new(queued.clone()))?;
        let leader = IntGauge::new("mooring_operator_leader", "1 while this replica leads.")?;
        registry.register(Box::new(leader.clone()))?;
        Ok(Self {
            registry,
            reconciles,
            seconds,
            writes,
            watch_errors,
            wakes,
            queued,
            undecodable,
            events_lost,
            leader,
        })
    }

    /// A reconcile ended.
    pub fn reconciled(&self, kind: &'static str, outcome: &'static str, took: Duration) {
        self.reconciles.with_label_values(&[kind, outcome]).inc();
        self.seconds.with_label_values(&[kind]).observe(took.as_secs_f64());
    }

    /// Something was written.
    pub fn wrote(&self, kind: &str) {
        self.writes.with_label_values(&[kind]).inc();
    }

    /// A watch failed.
    pub fn watch_failed(&self, kind: &str) {
        self.watch_errors.with_label_values(&[kind]).inc();
    }

    /// A wake entered the queue of a kind.
    pub fn woke(&self, kind: &'static str) {
        self.wakes.with_label_values(&[kind]).inc();
        self.queued.with_label_values(&[kind]).inc();
    }

    /// A wake left the queue of a kind.
    pub fn took_wake(&self, kind: &'static str) {
        self.queued.with_label_values(&[kind]).dec();
    }

    /// An object could not be decoded.
    pub fn undecodable(&self, kind: &'static str) {
        self.undecodable.with_label_values(&[kind]).inc();
    }

    /// An event could not be published.
    pub fn event_lost(&self, kind: &'static str) {
        self.events_lost.with_label_values(&[kind]).inc();
    }

    /// Whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }
}

fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_is_registered_once_and_shown() {
        let metrics = Metrics::new().unwrap();
        metrics.wrote("ConfigMap");
        metrics.reconciled("MCPGateway", "ok", Duration::from_millis(3));
        metrics.leads(true);
        let shown: Vec<_> = metrics.registry.gather().iter().map(|family| family.name().to_owned()).collect();
        assert_eq!(
            shown,
            [
                "mooring_operator_leader",
                "mooring_operator_reconcile_seconds",
                "mooring_operator_reconciles_total",
                "mooring_operator_writes_total"
            ]
        );
    }
}
