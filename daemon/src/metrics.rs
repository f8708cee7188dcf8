//! The daemon's one metric registry. Names are OpenTelemetry's where it has them; label sets are bounded: never a
//! session or a user. Handles are resolved once, when a gateway or a target is made.

mod limits;
mod targets;

use std::{collections::HashMap, time::Duration};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use self::{limits::LimitFamilies, targets::TargetFamilies};
pub use self::{
    limits::{LimitMetrics, TargetLimit, TargetRefusals},
    targets::{SessionKind, TargetMetrics},
};
use crate::fault::EndReason;

/// Seconds; from a tenth of a millisecond to the longest call.
const SECONDS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0, 300.0,
];

/// The methods that have a label of their own; every other is `other`.
pub const METHODS: [&str; 11] = [
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "GET",
    "DELETE",
];
const OTHER: &str = "other";

/// How a request came out, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// Refused: the client's fault.
    Client,
    /// A target's fault.
    Target,
    /// Ours or the store's.
    Us,
    /// The caller left before the answer began.
    Abandoned,
}

impl Outcome {
    /// A bounded label for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Client => "client",
            Self::Target => "target",
            Self::Us => "us",
            Self::Abandoned => "abandoned",
        }
    }
}

/// All families.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// What `/metrics` shows.
    pub registry: Registry,
    requests: IntCounterVec,
    operation: HistogramVec,
    started: IntCounterVec,
    ended: IntCounterVec,
    held: IntGaugeVec,
    limits: LimitFamilies,
    targets: TargetFamilies,
}

impl Metrics {
    /// Registers every family.
    ///
    /// # Errors
    /// Where two families share a name: a mistake in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec, prometheus::Error> {
            let family = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok(family)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| -> Result<IntGaugeVec, prometheus::Error> {
            let family = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok(family)
        };
        let histogram =
            |name: &str, help: &str, labels: &[&str]| -> Result<HistogramVec, prometheus::Error> {
                let family =
                    HistogramVec::new(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()), labels)?;
                registry.register(Box::new(family.clone()))?;
                Ok(family)
            };
        let (gateway, ends) = (["gateway"], ["gateway", "reason"]);
        Ok(Self {
            requests: counter(
                "mooring_requests_total",
                "Requests by method and by whose fault a failure was.",
                &["gateway", "method", "outcome"],
            )?,
            operation: histogram(
                "mcp_server_operation_duration_seconds",
                "From a request's head to the end of its answer.",
                &["gateway", "mcp_method_name"],
            )?,
            started: counter("mooring_sessions_started_total", "Sessions begun by initialize.", &gateway)?,
            ended: counter("mooring_sessions_ended_total", "Sessions ended, by reason.", &ends)?,
            held: gauge("mooring_sessions", "Sessions held by this replica.", &gateway)?,
            limits: LimitFamilies::new(&registry)?,
            targets: TargetFamilies::new(&registry)?,
            registry,
        })
    }

    /// The handles of one gateway.
    pub fn gateway(&self, gateway: &str) -> GatewayMetrics {
        let methods = METHODS.into_iter();
        let methods = methods.map(|method| (method, self.method(gateway, method))).collect();
        let reasons = EndReason::ALL.map(|r| (r, self.ended.with_label_values(&[gateway, r.label()])));
        GatewayMetrics {
            gateway: gateway.to_owned(),
            methods,
            other: self.method(gateway, OTHER),
            started: self.started.with_label_values(&[gateway]),
            ended: reasons.into_iter().collect(),
            held: self.held.with_label_values(&[gateway]),
            limits: self.limits.gateway(gateway),
        }
    }

    fn method(&self, gateway: &str, method: &str) -> MethodMetrics {
        let count = |outcome: Outcome| self.requests.with_label_values(&[gateway, method, outcome.label()]);
        MethodMetrics {
            ok: count(Outcome::Ok),
            client: count(Outcome::Client),
            target: count(Outcome::Target),
            us: count(Outcome::Us),
            abandoned: count(Outcome::Abandoned),
            duration: self.operation.with_label_values(&[gateway, method]),
        }
    }

    /// The handles of one target.
    pub fn target(&self, gateway: &str, alias: &str) -> TargetMetrics {
        self.targets.target(gateway, alias, self.limits.target(gateway, alias))
    }

    /// Takes a removed target's series away, so that it is not shown as it last was for ever.
    pub fn forget_target(&self, gateway: &str, alias: &str) {
        self.targets.forget(gateway, alias);
        self.limits.forget_target(gateway, alias);
    }
}

/// The handles of one gateway.
#[derive(Debug)]
pub struct GatewayMetrics {
    gateway: String,
    methods: Vec<(&'static str, MethodMetrics)>,
    other: MethodMetrics,
    started: IntCounter,
    ended: HashMap<EndReason, IntCounter>,
    held: IntGauge,
    /// What is limited.
    pub limits: LimitMetrics,
}

#[derive(Debug)]
struct MethodMetrics {
    ok: IntCounter,
    client: IntCounter,
    target: IntCounter,
    us: IntCounter,
    abandoned: IntCounter,
    duration: Histogram,
}

impl GatewayMetrics {
    /// The gateway's name, for logs.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// Counts a request whose answer has ended.
    pub fn request(&self, method: &str, outcome: Outcome, took: Duration) {
        // A handful of short names: looking is faster than hashing.
        let known = self.methods.iter().find(|(name, _)| *name == method);
        let handles = known.map_or(&self.other, |(_, handles)| handles);
        let count = match outcome {
            Outcome::Ok => &handles.ok,
            Outcome::Client => &handles.client,
            Outcome::Target => &handles.target,
            Outcome::Us => &handles.us,
            Outcome::Abandoned => &handles.abandoned,
        };
        count.inc();
        handles.duration.observe(took.as_secs_f64());
    }

    /// Counts a session's start.
    pub fn session_started(&self) {
        self.started.inc();
    }

    /// Counts a session's end.
    pub fn session_ended(&self, reason: EndReason) {
        if let Some(counter) = self.ended.get(&reason) {
            counter.inc();
        }
    }

    /// Notes how many sessions are held.
    pub fn sessions_held(&self, count: usize) {
        self.held.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
