//! Sessions that a new configuration revokes: they end at once, here and wherever they are read through later.
//! Not a black box, since `moored serve` reads its manifests once.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/gateway.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use moored::{
    capabilities::ClientCapabilities,
    fault::Fault,
    gateway::Gateway,
    session::{record::Principal, table::Opening},
    store::{Store, memory::Memory},
    version::LATEST,
};
use mooring_crds::config::{Denied, GatewayConfig};
use tokio::time::timeout;

/// How long a session may live on after the configuration that ends it was taken.
const SOON: Duration = Duration::from_secs(5);

fn replica(store: &Store) -> Arc<Gateway> {
    Gateway::start_with(support::config(), support::shared(), store.clone())
}

fn caller(subject: &str) -> Principal {
    Principal::Oidc { issuer: "https://id.example".into(), subject: subject.into() }
}

/// A session of `subject`, by its id.
async fn session(gateway: &Gateway, subject: &str) -> String {
    begin(gateway, subject).await.unwrap()
}

async fn begin(gateway: &Gateway, subject: &str) -> Result<String, Fault> {
    let opening = Opening {
        principal: caller(subject),
        version: LATEST,
        client_info: "{}".into(),
        capabilities: ClientCapabilities::default(),
        timeout: Duration::from_secs(3600),
        idle: None,
        most: None,
        seen: moored::catalog::merge::Marks::default(),
    };
    Ok(gateway.sessions.create(opening).await?.to_string())
}

fn denying(subject: &str) -> GatewayConfig {
    let mut config = support::config();
    config.auth.denied = vec![Denied { issuer: String::new(), subject: subject.to_owned() }];
    config
}

fn ending_before(gateway: &Gateway, later: i64) -> GatewayConfig {
    let mut config = support::config();
    config.session.end_before = Some(gateway.sessions.now().0 + later);
    config
}

async fn until_held(gateway: &Gateway, count: usize) {
    let so = async {
        let mut again = tokio::time::interval(Duration::from_millis(10));
        while gateway.sessions.len() != count {
            again.tick().await;
        }
    };
    assert!(timeout(SOON, so).await.is_ok(), "{} sessions", gateway.sessions.len());
}

fn ended_by_administrator(gateway: &Gateway) -> String {
    let text = prometheus::TextEncoder::new().encode_to_string(&gateway.shared.metrics.registry.gather());
    let text = text.unwrap();
    let line =
        text.lines().find(|line| line.contains(r#"ended_total{gateway="tools",reason="administrator"}"#));
    line.unwrap().rsplit_once(' ').unwrap().1.to_owned()
}

#[tokio::test]
async fn the_sessions_of_a_caller_that_is_denied_end_and_those_of_others_go_on() {
    let gateway = replica(&Store::new(Memory::new(1 << 20)));
    let (mallory, alice) = (session(&gateway, "mallory").await, session(&gateway, "alice").await);
    session(&gateway, "mallory").await;
    let held = gateway.sessions.find(Some(&mallory), &caller("mallory")).await.unwrap();
    gateway.configure(denying("mallory"));
    until_held(&gateway, 1).await;
    assert!(held.ended.is_cancelled(), "its streams have ended, too");
    assert!(gateway.sessions.find(Some(&alice), &caller("alice")).await.is_ok());
    let gone = gateway.sessions.find(Some(&mallory), &caller("mallory")).await.unwrap_err();
    assert_eq!(gone, Fault::UnknownSession);
    assert_eq!(ended_by_administrator(&gateway), "2");
    gateway.configure(support::config());
    let gone = gateway.sessions.find(Some(&mallory), &caller("mallory")).await.unwrap_err();
    assert_eq!(gone, Fault::UnknownSession, "an end is an end");
}

#[tokio::test]
async fn sessions_that_began_before_the_written_time_end_and_later_ones_do_not() {
    let gateway = replica(&Store::new(Memory::new(1 << 20)));
    let old = session(&gateway, "alice").await;
    gateway.configure(ending_before(&gateway, 60_000));
    assert!(gateway.sessions.find(Some(&old), &caller("alice")).await.is_ok(), "that time is yet to come");
    // A millisecond later at the earliest.
    let began = gateway.sessions.now();
    let mut again = tokio::time::interval(Duration::from_millis(1));
    while gateway.sessions.now() == began {
        again.tick().await;
    }
    gateway.configure(ending_before(&gateway, 0));
    let new = session(&gateway, "alice").await;
    until_held(&gateway, 1).await;
    assert!(gateway.sessions.find(Some(&new), &caller("alice")).await.is_ok());
    assert!(gateway.sessions.find(Some(&old), &caller("alice")).await.is_err());
}

#[tokio::test]
async fn a_time_that_is_yet_to_come_ends_its_sessions_when_it_comes() {
    let gateway = replica(&Store::new(Memory::new(1 << 26)));
    let id = session(&gateway, "alice").await;
    let held = gateway.sessions.find(Some(&id), &caller("alice")).await.unwrap();
    gateway.configure(ending_before(&gateway, 3_600_000));
    gateway.configure(ending_before(&gateway, 200));
    let comes = gateway.sessions.now().plus(Duration::from_millis(200));
    // The timer task is kept busy meanwhile, and must not miss the time for that.
    while gateway.sessions.now() <= comes {
        match begin(&gateway, "bob").await {
            // The time came while it began, and it is of before.
            Ok(_) | Err(Fault::CallerDenied) => {}
            Err(fault) => panic!("{fault:?}"),
        }
    }
    assert!(timeout(SOON, held.ended.cancelled()).await.is_ok(), "it goes on");
}

#[tokio::test]
async fn a_revoked_session_that_another_replica_began_ends_where_it_is_read_through() {
    let store = Store::new(Memory::new(1 << 20));
    let (here, there) = (replica(&store), replica(&store));
    let id = session(&here, "mallory").await;
    there.configure(denying("mallory"));
    let gone = there.sessions.find(Some(&id), &caller("mallory")).await.unwrap_err();
    assert_eq!(gone, Fault::UnknownSession);
    until_held(&there, 0).await;
    until_held(&here, 0).await;
    assert_eq!(ended_by_administrator(&there), "1");
}

#[tokio::test]
async fn whoever_asks_for_somebody_elses_session_does_not_make_a_replica_hold_it() {
    let store = Store::new(Memory::new(1 << 20));
    let (here, there) = (replica(&store), replica(&store));
    let id = session(&here, "alice").await;
    assert_eq!(there.sessions.find(Some(&id), &caller("eve")).await.unwrap_err(), Fault::UnknownSession);
    assert!(there.sessions.is_empty());
    assert!(there.sessions.find(Some(&id), &caller("alice")).await.is_ok());
}
