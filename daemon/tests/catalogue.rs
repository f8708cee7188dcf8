//! The catalogue in front of scripted servers, by what it offers to the rest of the daemon: hints, and the report.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/gateway.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use e2e::scripted::{Get, Interference, Script, ScriptedServer};
use moored::{
    capabilities::ClientCapabilities,
    catalog::{kind::Kind, merge::Merged, report::report, view::View},
    gateway::Gateway,
    version::LATEST,
};
use mooring_crds::config::{
    CredentialsConfig, GatewayConfig, TargetConfig, TargetState, TimeoutsConfig, TokenClient,
};
use prometheus::TextEncoder;
use serde_json::json;
use tokio::time::{interval, timeout};

fn target(url: String) -> TargetConfig {
    TargetConfig {
        alias: "a".to_owned(),
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        url,
        timeouts: TimeoutsConfig { connect_seconds: 1, ..TimeoutsConfig::default() },
        ..TargetConfig::default()
    }
}

fn config(target: TargetConfig) -> GatewayConfig {
    GatewayConfig { targets: vec![target], ..support::config() }
}

fn gateway(target: TargetConfig) -> Arc<Gateway> {
    Gateway::start(config(target), moored::config::secrets::Secrets::default(), support::shared())
}

/// The gateway's metrics.
fn shown(gateway: &Gateway) -> String {
    TextEncoder::new().encode_to_string(&gateway.shared.metrics.registry.gather()).unwrap()
}

/// Waits until the gateway's metrics have this line.
async fn until_shown(gateway: &Gateway, line: &str) {
    let mut again = interval(Duration::from_millis(20));
    let come = timeout(Duration::from_secs(10), async {
        while !shown(gateway).lines().any(|shown| shown == line) {
            again.tick().await;
        }
    });
    assert!(come.await.is_ok(), "{line}: {}", shown(gateway));
}

/// Waits until what the view knows fulfils a condition.
async fn until(view: &View, what: &str, holds: impl Fn(&Merged) -> bool) -> Arc<Merged> {
    let mut news = view.news();
    let come = timeout(Duration::from_secs(10), news.wait_for(|_| holds(&view.merged())));
    assert!(come.await.is_ok(), "{what}: {:?}", view.merged().listings);
    view.merged()
}

fn lists(merged: &Merged, kind: Kind, name: &str) -> bool {
    merged.target_of(kind, name).is_some()
}

#[tokio::test]
async fn a_hint_is_heeded_where_the_target_has_no_stream_of_changes() {
    let script = Script { get: Get::MethodNotAllowed, ..Script::offering("t", "before", "a:1", "a:{x}") };
    let server = ScriptedServer::start(script).await;
    let gateway = gateway(target(server.url()));
    let view = gateway.view(LATEST, &ClientCapabilities::default());
    until(&view, "the first list", |merged| lists(merged, Kind::Prompts, "before")).await;
    server.change(|script| script.prompts = vec![json!({"name": "after"})]);
    view.refresh("uid-unknown", Kind::Prompts);
    view.refresh("uid-a", Kind::Prompts);
    until(&view, "the list behind the hint", |merged| lists(merged, Kind::Prompts, "after")).await;
    assert_eq!((server.count("prompts/list"), server.count("tools/list")), (2, 1));
}

#[tokio::test]
async fn a_target_that_is_well_but_for_one_list_is_ready_and_its_report_names_the_list() {
    let server = ScriptedServer::start(Script::offering("t", "p", "a:1", "a:{x}")).await;
    server.interfere("prompts/list", Interference::Hang);
    let gateway = gateway(target(server.url()));
    let view = gateway.view(LATEST, &ClientCapabilities::default());
    let merged = until(&view, "the failed list", |merged| merged.list_pending(Kind::Prompts).is_none()).await;
    let said = report("digest", &merged);
    assert_eq!((said.targets[0].state, said.targets[0].tools), (TargetState::Ready, 1));
    assert!(said.targets[0].message.contains("prompts/list"), "{said:?}");
    assert_eq!(merged.target_of(Kind::Resources, "a:2"), Some((0, "a:2")), "the others are whole");
}

#[tokio::test]
async fn a_target_that_was_silent_under_an_older_configuration_is_up_by_what_the_newer_one_finds() {
    let (silent, well) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::echoing(["t"])).await);
    silent.interfere("initialize", Interference::Hang);
    let gateway = gateway(target(silent.url()));
    silent.until_seen("initialize", 1).await.unwrap();
    gateway.configure(config(target(well.url())));
    let labels = r#"gateway="tools",target="a""#;
    let up = format!("mooring_target_up{{{labels}}} 1");
    until_shown(&gateway, &up).await;
    let failed = r#"gateway="tools",kind="catalogue",outcome="failed",target="a""#;
    until_shown(&gateway, &format!("mooring_target_handshakes_total{{{failed}}} 1")).await;
    // One thread runs all: what is made of a failure is made with its count.
    assert!(shown(&gateway).contains(&up), "{}", shown(&gateway));
    let tools = format!("mooring_target_tools{{{labels}}} 1");
    assert!(shown(&gateway).contains(&tools), "{}", shown(&gateway));
}

#[tokio::test]
async fn a_target_that_only_a_caller_can_open_is_not_asked_by_the_gateway_and_keeps_nobody_waiting() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let gateway = gateway(TargetConfig { credentials: Some(exchange()), ..target(server.url()) });
    let view = gateway.view(LATEST, &ClientCapabilities::default());
    let known = timeout(Duration::from_millis(500), async {
        (view.introduced().await, view.settled(Kind::Tools).await)
    });
    let (merged, _) = known.await.unwrap();
    assert_eq!(report("digest", &merged).targets[0].state, TargetState::Ready);
    assert_eq!(server.count("initialize"), 0);
}

fn exchange() -> CredentialsConfig {
    CredentialsConfig::TokenExchange(TokenClient::default())
}
