//! The metric families of the edge: what is in flight and open, and what was refused. Decides nothing.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::fault::Fault;

/// What is bounded for one target, or for the client that it asks, whatever its gateway allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetLimit {
    /// Processes of a stdio server.
    Processes,
    /// Requests in flight at a server behind a bridge.
    InFlight,
    /// Resources subscribed to at a server that sessions share.
    Subscriptions,
    /// Requests of targets that one client has open.
    Asks,
}

impl TargetLimit {
    const ALL: [Self; 4] = [Self::Processes, Self::InFlight, Self::Subscriptions, Self::Asks];

    const fn label(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::InFlight => "in_flight",
            Self::Subscriptions => "subscriptions",
            Self::Asks => "asks",
        }
    }
}

/// The families.
#[derive(Debug, Clone)]
pub(super) struct LimitFamilies {
    faults: IntCounterVec,
    in_flight: IntGaugeVec,
    streams: IntGaugeVec,
    handshakes_failed: IntCounterVec,
    target_refusals: IntCounterVec,
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
        let target_refusals = Opts::new(
            "mooring_target_refusals_total",
            "What was refused for want of room at a target, or at the client that it asks, by the limit.",
        );
        let families = Self {
            faults: IntCounterVec::new(faults, &["gateway", "fault"])?,
            in_flight: IntGaugeVec::new(in_flight, &["gateway"])?,
            streams: IntGaugeVec::new(streams, &["gateway"])?,
            handshakes_failed: IntCounterVec::new(handshakes_failed, &["gateway"])?,
            target_refusals: IntCounterVec::new(target_refusals, &["gateway", "target", "limit"])?,
        };
        registry.register(Box::new(families.faults.clone()))?;
        registry.register(Box::new(families.in_flight.clone()))?;
        registry.register(Box::new(families.streams.clone()))?;
        registry.register(Box::new(families.handshakes_failed.clone()))?;
        registry.register(Box::new(families.target_refusals.clone()))?;
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

    pub(super) fn target(&self, gateway: &str, alias: &str) -> TargetRefusals {
        let of =
            |limit: TargetLimit| self.target_refusals.with_label_values(&[gateway, alias, limit.label()]);
        TargetRefusals {
            processes: of(TargetLimit::Processes),
            in_flight: of(TargetLimit::InFlight),
            subscriptions: of(TargetLimit::Subscriptions),
            asks: of(TargetLimit::Asks),
        }
    }

    pub(super) fn forget_target(&self, gateway: &str, alias: &str) {
        for limit in TargetLimit::ALL {
            // A series that never was is as gone as it should be.
            drop(self.target_refusals.remove_label_values(&[gateway, alias, limit.label()]));
        }
    }
}

/// The handles of one target; all of them are shown from its start.
#[derive(Debug, Clone)]
pub struct TargetRefusals {
    processes: IntCounter,
    in_flight: IntCounter,
    subscriptions: IntCounter,
    asks: IntCounter,
}

impl TargetRefusals {
    /// Counts what was refused for this limit.
    pub fn count(&self, limit: TargetLimit) {
        let counter = match limit {
            TargetLimit::Processes => &self.processes,
            TargetLimit::InFlight => &self.in_flight,
            TargetLimit::Subscriptions => &self.subscriptions,
            TargetLimit::Asks => &self.asks,
        };
        counter.inc();
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
