//! The metric families of the edge: what is in flight and open, and what was refused. Decides nothing.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::fault::Fault;

/// The families.
#[derive(Debug, Clone)]
pub(super) struct LimitFamilies {
    faults: IntCounterVec,
    in_flight: IntGaugeVec,
    streams: IntGaugeVec,
    handshakes_failed: IntCounterVec,
}

impl LimitFamilies {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let faults = Opts::new(
            "mooring_faults_total",
            "Requests that were refused or failed, by the reason that stands in the access log.",
        );
        let in_flight = Opts::new("mooring_requests_in_flight", "Requests that have no whole answer yet.");
        let streams = Opts::new("mooring_streams", "Event streams that are open to clients.");
        let handshakes_failed = Opts::new(
            "mooring_tls_handshakes_failed_total",
            "Connections of clients that were given up before their first request.",
        );
        let families = Self {
            faults: IntCounterVec::new(faults, &["gateway", "fault"])?,
            in_flight: IntGaugeVec::new(in_flight, &["gateway"])?,
            streams: IntGaugeVec::new(streams, &["gateway"])?,
            handshakes_failed: IntCounterVec::new(handshakes_failed, &["gateway"])?,
        };
        registry.register(Box::new(families.faults.clone()))?;
        registry.register(Box::new(families.in_flight.clone()))?;
        registry.register(Box::new(families.streams.clone()))?;
        registry.register(Box::new(families.handshakes_failed.clone()))?;
        Ok(families)
    }

    pub(super) fn gateway(&self, gateway: &str) -> LimitMetrics {
        LimitMetrics {
            gateway: gateway.to_owned(),
            faults: self.faults.clone(),
            in_flight: self.in_flight.with_label_values(&[gateway]),
            streams: self.streams.with_label_values(&[gateway]),
            handshakes_failed: self.handshakes_failed.with_label_values(&[gateway]),
        }
    }
}

/// The handles of one gateway.
#[derive(Debug)]
pub struct LimitMetrics {
    gateway: String,
    faults: IntCounterVec,
    /// Requests that have no whole answer yet.
    pub in_flight: IntGauge,
    /// Event streams that are open.
    pub streams: IntGauge,
    /// Connections given up before their first request.
    pub handshakes_failed: IntCounter,
}

impl LimitMetrics {
    /// Counts what a request was refused or failed for. A fault is rare, and one of a fixed few: its series is looked
    /// up when it comes, so that those that never do are not shown.
    pub fn fault(&self, fault: &Fault) {
        self.faults.with_label_values(&[&self.gateway, fault.label()]).inc();
    }
}
