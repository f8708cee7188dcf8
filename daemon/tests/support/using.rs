//! A gateway of one target and a session that uses it, without a listener.

use std::sync::Arc;

use e2e::scripted::ScriptedServer;
use moored::{
    capabilities::ClientCapabilities,
    catalog::merge::Marks,
    config::secrets::Secrets,
    gateway::Gateway,
    session::{Session, record::Principal, table::Opening, targets::TargetSession},
    target::OnBehalf,
    version::LATEST,
};
use mooring_crds::config::{GatewayConfig, TargetConfig, TimeoutsConfig};

/// The one target of these tests.
pub(crate) fn target(server: &ScriptedServer) -> TargetConfig {
    TargetConfig {
        alias: "a".to_owned(),
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        url: server.url(),
        timeouts: TimeoutsConfig { connect_seconds: 5, ..TimeoutsConfig::default() },
        ..TargetConfig::default()
    }
}

/// A gateway of these targets.
pub(crate) fn config(targets: Vec<TargetConfig>) -> GatewayConfig {
    GatewayConfig { targets, ..super::support::config() }
}

/// A gateway of this target, and a session of alice's.
pub(crate) async fn gateway(target: TargetConfig, secrets: Secrets) -> (Arc<Gateway>, Arc<Session>) {
    let gateway = Gateway::start(config(vec![target]), secrets, super::support::shared());
    let principal = Principal::Oidc { issuer: "https://id.example".into(), subject: "alice".into() };
    let opening = Opening {
        principal: principal.clone(),
        version: LATEST,
        client_info: r#"{"name":"test","version":"0"}"#.into(),
        capabilities: ClientCapabilities::default(),
        timeout: std::time::Duration::from_secs(3600),
        idle: None,
        most: None,
        seen: Marks::default(),
    };
    let id = gateway.sessions.create(opening).await.unwrap().to_string();
    let session = gateway.sessions.find(Some(&id), &principal).await.unwrap();
    (gateway, session)
}

/// The session's target session at the first target, begun where there is none, by a caller of this token.
pub(crate) async fn using(gateway: &Gateway, session: &Arc<Session>, token: &str) -> Arc<TargetSession> {
    let of = Arc::new(OnBehalf { token: Some(token.into()), ..OnBehalf::default() });
    let target = gateway.snapshot().targets.first().map(Arc::clone).unwrap();
    gateway.sessions.target_session(session, &target, &of).await.unwrap()
}
