//! Values that many unit tests begin with. Not in the shipped binary.

use mooring_crds::config::{DrainConfig, GatewayConfig, Naming, TargetConfig};
use mooring_runtime::Timestamp;

use crate::{
    session::record::{Principal, Record},
    version::LATEST,
};

/// A gateway without targets.
pub(crate) fn gateway_config() -> GatewayConfig {
    GatewayConfig {
        name: "tools".to_owned(),
        path: "/mcp".to_owned(),
        drain: DrainConfig { delay_seconds: 0, deadline_seconds: 30 },
        ..GatewayConfig::default()
    }
}

/// A target that nobody listens at.
pub(crate) fn target_config(alias: &str) -> TargetConfig {
    TargetConfig {
        alias: alias.to_owned(),
        name: alias.to_owned(),
        uid: format!("uid-{alias}"),
        url: "http://127.0.0.1:1/mcp".to_owned(),
        ..TargetConfig::default()
    }
}

/// A session that began at zero and ends after an hour.
pub(crate) fn record() -> Record {
    Record {
        principal: Principal::Anonymous,
        created: Timestamp(0),
        expires: Timestamp(3_600_000),
        idle: None,
        used: Timestamp(0),
        version: LATEST,
        client_info: r#"{"name":"test","version":"0"}"#.into(),
        capabilities: crate::capabilities::ClientCapabilities::default(),
        log_level: None,
        targets: std::collections::BTreeMap::new(),
    }
}

/// A session of that record, held by nobody else.
pub(crate) fn session() -> std::sync::Arc<crate::session::Session> {
    let record = std::sync::Arc::new(record());
    let (key, now) = (crate::session::id::SessionId::mint().unwrap().key(), record.created);
    let stored = crate::store::Stored { record, revision: crate::store::Revision(1) };
    std::sync::Arc::new(crate::session::Session::new(
        key,
        stored,
        now,
        crate::catalog::merge::Marks::default(),
    ))
}

/// What a gateway shares with others, alone.
pub(crate) fn shared() -> crate::gateway::Shared {
    let rules = crate::target::address::Rules { loopback: true, refused: Vec::new() };
    crate::gateway::Shared {
        tasks: mooring_runtime::Tasks::default(),
        clock: mooring_runtime::Clock::system(),
        metrics: crate::metrics::Metrics::new().unwrap(),
        connector: crate::target::connect::Connector::new(rules).unwrap(),
        budget: crate::receive::Budget::new(1 << 20),
        strangers: crate::receive::Budget::new(1 << 20),
        identity: crate::session::table::Identity::new().unwrap(),
        store_bytes: 1 << 20,
        cluster: None,
    }
}

/// A session that anybody begins, for an hour.
pub(crate) fn opening() -> crate::session::table::Opening {
    crate::session::table::Opening {
        principal: Principal::Anonymous,
        version: LATEST,
        client_info: "{}".into(),
        capabilities: crate::capabilities::ClientCapabilities::default(),
        timeout: std::time::Duration::from_secs(3600),
        seen: crate::catalog::merge::Marks::default(),
        idle: None,
        most: None,
    }
}

/// A target of that alias that nobody listens at.
pub(crate) fn target(alias: &str) -> std::sync::Arc<crate::target::Target> {
    let rules = crate::target::address::Rules { loopback: true, refused: Vec::new() };
    let connector = crate::target::connect::Connector::new(rules).unwrap();
    let metrics = crate::metrics::Metrics::new().unwrap().target("tools", alias);
    let secrets = crate::config::secrets::Secrets::default();
    crate::target::Target::new(target_config(alias), &secrets, &connector, metrics).unwrap()
}

/// A session at such a target.
pub(crate) fn target_session(alias: &str) -> std::sync::Arc<crate::session::targets::TargetSession> {
    let wire = crate::target::Wire {
        version: Some(LATEST),
        ..crate::target::Wire::first(&std::sync::Arc::default())
    };
    std::sync::Arc::new(crate::session::targets::TargetSession::new(&target(alias), wire))
}

/// A router with prefixes.
pub(crate) fn router(aliases: &[&str]) -> crate::route::Router {
    crate::route::Router::new(Naming::Prefixed { separator: "___".to_owned() }, aliases.iter().copied())
}
