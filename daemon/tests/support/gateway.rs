//! The gateway that these tests serve: anonymous, plain names, no targets. Holds no test.

use mooring_crds::config::{DrainConfig, GatewayConfig, LimitsConfig, Naming};

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
