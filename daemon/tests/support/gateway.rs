//! The gateway that these tests serve: anonymous, plain names, no targets; and what it shares. Holds no test.

use moored::{
    gateway::Shared,
    metrics::Metrics,
    receive::Budget,
    session::table::Identity,
    target::{address::Rules, connect::Connector},
};
use mooring_crds::config::{DrainConfig, GatewayConfig, LimitsConfig, Naming};
use mooring_runtime::{Clock, Tasks};

/// A gateway without targets.
pub(crate) fn config() -> GatewayConfig {
    GatewayConfig {
        name: "tools".to_owned(),
        path: "/mcp".to_owned(),
        naming: Naming::Plain,
        limits: LimitsConfig { request_bytes: 1 << 20, ..LimitsConfig::default() },
        drain: DrainConfig { delay_seconds: 0, deadline_seconds: 1 },
        ..GatewayConfig::default()
    }
}

/// What a gateway shares with others, alone and without a cluster.
pub(crate) fn shared() -> Shared {
    Shared {
        tasks: Tasks::default(),
        clock: Clock::system(),
        metrics: Metrics::new().unwrap(),
        connector: Connector::new(Rules { loopback: true, refused: Vec::new() }).unwrap(),
        budget: Budget::new(1 << 20),
        strangers: Budget::new(1 << 20),
        identity: Identity::new().unwrap(),
        store_bytes: 1 << 20,
        cluster: None,
    }
}
