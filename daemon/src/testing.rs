//! Values that many unit tests begin with. Not in the shipped binary.

use mooring_crds::config::{DrainConfig, GatewayConfig, Naming, Principals, StoreConfig, TargetConfig};
use mooring_runtime::Timestamp;

use crate::{
    session::record::{Principal, Record},
    version::LATEST,
};

/// A gateway without targets.
pub(crate) fn gateway_config() -> GatewayConfig {
    GatewayConfig {
        name: "tools".to_owned(),
        namespace: String::new(),
        uid: String::new(),
        path: "/mcp".to_owned(),
        principals: Principals::Anonymous,
        store: StoreConfig::Memory,
        session_timeout_seconds: 3600,
        naming: Naming::Prefixed { separator: "___".to_owned() },
        hosts: Vec::new(),
        origins: Vec::new(),
        request_bytes: 4 << 20,
        drain: DrainConfig { delay_seconds: 0, deadline_seconds: 30 },
        targets: Vec::new(),
    }
}

/// A target that nobody listens at.
pub(crate) fn target_config(alias: &str) -> TargetConfig {
    TargetConfig {
        alias: alias.to_owned(),
        name: alias.to_owned(),
        namespace: String::new(),
        uid: format!("uid-{alias}"),
        url: "http://127.0.0.1:1/mcp".to_owned(),
        connect_seconds: 5,
        request_seconds: 300,
        maximum_seconds: 3600,
    }
}

/// A session that began at zero and ends after an hour.
pub(crate) fn record() -> Record {
    Record {
        principal: Principal::Anonymous,
        created: Timestamp(0),
        expires: Timestamp(3_600_000),
        version: LATEST,
        client_info: r#"{"name":"test","version":"0"}"#.into(),
        targets: std::collections::BTreeMap::new(),
    }
}

/// A target of that alias that nobody listens at.
pub(crate) fn target(alias: &str) -> std::sync::Arc<crate::target::Target> {
    let rules = crate::target::address::Rules { loopback: true, refused: Vec::new() };
    let connector = crate::target::connect::Connector::new(rules).unwrap();
    let metrics = crate::metrics::Metrics::new().unwrap().target("tools", alias);
    crate::target::Target::new(target_config(alias), &connector, metrics).unwrap()
}

/// A router with prefixes.
pub(crate) fn router(aliases: &[&str]) -> crate::route::Router {
    crate::route::Router::new(Naming::Prefixed { separator: "___".to_owned() }, aliases.iter().copied())
}
