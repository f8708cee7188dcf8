//! The metric families of targets. Decides nothing.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::{SECONDS, TargetRefusals};
use crate::fault::TargetFailure;

/// How a handshake came out, as a label.
const OK: &str = "ok";
const FAILED: &str = "failed";

/// Whose session at a target it is. The catalogue's are the gateway's own, a few for each target whatever clients do, and
/// would hide how many clients' there are (DESIGN §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// Of a client's session.
    Client,
    /// Of the catalogue.
    Catalogue,
}

impl SessionKind {
    const ALL: [Self; 2] = [Self::Client, Self::Catalogue];

    /// A bounded label for metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Catalogue => "catalogue",
        }
    }
}

/// The families.
#[derive(Debug, Clone)]
pub(super) struct TargetFamilies {
    handshakes: IntCounterVec,
    lost: IntCounterVec,
    unlisted: IntCounterVec,
    operation: HistogramVec,
    up: IntGaugeVec,
    tools: IntGaugeVec,
}

impl TargetFamilies {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let target = ["gateway", "target"];
        let handshakes = Opts::new(
            "mooring_target_handshakes_total",
            "Target sessions begun or tried, by outcome and by kind: a client's, or the catalogue's own.",
        );
        let lost = Opts::new("mooring_target_sessions_lost_total", "Target sessions that the target forgot.");
        let unlisted = Opts::new(
            "mooring_target_unlisted_total",
            "Lists of one session that a target is missing from, since it did not list in time.",
        );
        let operation = HistogramOpts::new(
            "mcp_client_operation_duration_seconds",
            "From a call's start at a target to the end of its answer.",
        );
        let up = Opts::new("mooring_target_up", "Whether the target's catalogue is known and fresh.");
        let tools = Opts::new("mooring_target_tools", "Tools that the target lists.");
        let families = Self {
            handshakes: IntCounterVec::new(handshakes, &["gateway", "target", "kind", "outcome"])?,
            lost: IntCounterVec::new(lost, &target)?,
            unlisted: IntCounterVec::new(unlisted, &target)?,
            operation: HistogramVec::new(operation.buckets(SECONDS.to_vec()), &target)?,
            up: IntGaugeVec::new(up, &target)?,
            tools: IntGaugeVec::new(tools, &target)?,
        };
        registry.register(Box::new(families.handshakes.clone()))?;
        registry.register(Box::new(families.lost.clone()))?;
        registry.register(Box::new(families.unlisted.clone()))?;
        registry.register(Box::new(families.operation.clone()))?;
        registry.register(Box::new(families.up.clone()))?;
        registry.register(Box::new(families.tools.clone()))?;
        Ok(families)
    }

    pub(super) fn target(&self, gateway: &str, alias: &str, refusals: TargetRefusals) -> TargetMetrics {
        let handshakes = |kind: SessionKind| HandshakeMetrics {
            ok: self.handshakes.with_label_values(&[gateway, alias, kind.label(), OK]),
            failed: self.handshakes.with_label_values(&[gateway, alias, kind.label(), FAILED]),
        };
        TargetMetrics {
            of_clients: handshakes(SessionKind::Client),
            of_the_catalogue: handshakes(SessionKind::Catalogue),
            lost: self.lost.with_label_values(&[gateway, alias]),
            unlisted: self.unlisted.with_label_values(&[gateway, alias]),
            operation: self.operation.with_label_values(&[gateway, alias]),
            up: self.up.with_label_values(&[gateway, alias]),
            tools: self.tools.with_label_values(&[gateway, alias]),
            refusals,
        }
    }

    pub(super) fn forget(&self, gateway: &str, alias: &str) {
        let Self { handshakes, lost, unlisted, operation, up, tools } = self;
        let labels = [gateway, alias];
        let of_kind = |kind: SessionKind| {
            [OK, FAILED]
                .map(|outcome| handshakes.remove_label_values(&[gateway, alias, kind.label(), outcome]))
        };
        let of_the_target = [
            up.remove_label_values(&labels),
            tools.remove_label_values(&labels),
            lost.remove_label_values(&labels),
            unlisted.remove_label_values(&labels),
            operation.remove_label_values(&labels),
        ];
        // A series that never was is as gone as it should be.
        for removed in of_the_target.into_iter().chain(SessionKind::ALL.into_iter().flat_map(of_kind)) {
            tracing::trace!(gone = removed.is_ok(), "series removed");
        }
    }
}

/// The handles of the handshakes of one kind.
#[derive(Debug)]
struct HandshakeMetrics {
    ok: IntCounter,
    failed: IntCounter,
}

/// The handles of one target.
#[derive(Debug)]
pub struct TargetMetrics {
    of_clients: HandshakeMetrics,
    of_the_catalogue: HandshakeMetrics,
    lost: IntCounter,
    unlisted: IntCounter,
    operation: Histogram,
    up: IntGauge,
    tools: IntGauge,
    /// What is refused for want of room.
    pub refusals: TargetRefusals,
}

impl TargetMetrics {
    /// Counts a handshake.
    pub fn handshake(&self, kind: SessionKind, failure: Option<&TargetFailure>) {
        let HandshakeMetrics { ok, failed } = match kind {
            SessionKind::Client => &self.of_clients,
            SessionKind::Catalogue => &self.of_the_catalogue,
        };
        if failure.is_none() { ok.inc() } else { failed.inc() }
    }

    /// Counts a list of one session that the target is missing from.
    pub fn unlisted(&self) {
        self.unlisted.inc();
    }

    /// Counts a session that the target forgot.
    pub fn lost(&self) {
        self.lost.inc();
    }

    /// Notes how long a call took.
    pub fn call(&self, took: Duration) {
        self.operation.observe(took.as_secs_f64());
    }

    /// Notes what the catalogue knows of it.
    pub fn listed(&self, up: bool, tools: usize) {
        self.up.set(i64::from(up));
        self.tools.set(i64::try_from(tools).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, TargetLimit};

    #[test]
    fn nothing_is_shown_of_a_target_that_was_removed_and_all_of_the_others() {
        let metrics = Metrics::new().unwrap();
        for alias in ["gone", "stays"] {
            let target = metrics.target("tools", alias);
            for kind in SessionKind::ALL {
                target.handshake(kind, None);
                target.handshake(kind, Some(&TargetFailure::Redirect));
            }
            target.handshake(SessionKind::Client, None);
            target.lost();
            target.unlisted();
            target.refusals.count(TargetLimit::Asks);
            target.call(Duration::from_secs(1));
            target.listed(true, 3);
        }
        metrics.forget_target("tools", "gone");
        let text = prometheus::TextEncoder::new().encode_to_string(&metrics.registry.gather()).unwrap();
        assert!(!text.contains(r#"target="gone""#), "{text}");
        for (kind, outcome, count) in
            [("client", "failed", 1), ("client", "ok", 2), ("catalogue", "failed", 1), ("catalogue", "ok", 1)]
        {
            let labels = format!(r#"gateway="tools",kind="{kind}",outcome="{outcome}",target="stays""#);
            let series = format!("mooring_target_handshakes_total{{{labels}}} {count}");
            assert!(text.contains(&series), "{series} in {text}");
        }
        for (limit, count) in [("asks", 1), ("in_flight", 0), ("processes", 0), ("subscriptions", 0)] {
            let line = format!(
                r#"mooring_target_refusals_total{{gateway="tools",limit="{limit}",target="stays"}} {count}"#
            );
            assert!(text.contains(&line), "{line}: {text}");
        }
    }
}
