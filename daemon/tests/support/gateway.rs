//! The gateway that these tests serve: anonymous, plain names, no targets. Holds no test.

use mooring_crds::config::{DrainConfig, GatewayConfig, Naming, Principals, StoreConfig};

/// A gateway without targets.
pub(crate) fn config() -> GatewayConfig {
    GatewayConfig {
        name: "tools".to_owned(),
        namespace: String::new(),
        uid: String::new(),
        path: "/mcp".to_owned(),
        principals: Principals::Anonymous,
        store: StoreConfig::Memory,
        session_timeout_seconds: 3600,
        naming: Naming::Plain,
        hosts: Vec::new(),
        origins: Vec::new(),
        request_bytes: 1 << 20,
        drain: DrainConfig { delay_seconds: 0, deadline_seconds: 1 },
        targets: Vec::new(),
    }
}
