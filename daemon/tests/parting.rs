//! Target sessions that a session parts from, since its caller may see the target no longer or there is none any more.
//! Not a black box, since `moored serve` reads its manifests once.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/gateway.rs"]
mod support;
#[path = "support/using.rs"]
mod using;

use std::sync::Arc;

use e2e::scripted::{Interference, Script, ScriptedServer};
use moored::{
    access::Access, auth::Caller, config::secrets::Secrets, fault::Fault, gateway::Gateway, session::Session,
};
use mooring_crds::config::{AccessRule, OnSessionLoss, TargetConfig};
use tokio::task::JoinSet;

use self::using::{config, gateway, target, using};

fn hide(gateway: &Gateway, session: &Arc<Session>) {
    let rules = [AccessRule { targets: vec!["another".to_owned()], ..AccessRule::default() }];
    gateway.sessions.part_from_hidden(session, &Access::of(&rules, &Caller::anonymous()));
}

/// A handshake that the server holds, and whose caller has gone.
async fn opening(server: &ScriptedServer, gateway: &Arc<Gateway>, session: &Arc<Session>) {
    // The catalogue's own is over.
    server.until_seen("tools/list", 1).await.unwrap();
    server.interfere_once("initialize", Interference::Hold);
    let begun = server.counts().initializes;
    let mut asking = JoinSet::new();
    let (gateway, session) = (Arc::clone(gateway), Arc::clone(session));
    asking.spawn(async move { drop(using(&gateway, &session, "t").await) });
    server.until_seen("initialize", begun + 1).await.unwrap();
    asking.shutdown().await;
}

#[tokio::test]
async fn a_target_that_is_removed_or_hidden_during_a_handshake_is_parted_from_behind_it() {
    for is_hidden in [false, true] {
        let server = ScriptedServer::start(Script::echoing(["echo"])).await;
        let (gateway, session) = gateway(target(&server), Secrets::default()).await;
        opening(&server, &gateway, &session).await;
        if is_hidden {
            hide(&gateway, &session);
        } else {
            gateway.configure(config(Vec::new()));
        }
        server.release();
        let parted = |server: &ScriptedServer| {
            // The catalogue has its own for as long as there is the target.
            let (deleted, open) = (server.count("DELETE"), server.open_sessions().len());
            (deleted, open) == if is_hidden { (1, 1) } else { (2, 0) }
        };
        server.until("the end of the session's own", parted).await.unwrap();
        assert!(session.open_targets().is_empty(), "hidden: {is_hidden}");
    }
}

#[tokio::test]
async fn a_target_that_was_hidden_is_not_lost_to_a_caller_who_sees_it_again() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let (gateway, session) = gateway(target(&server), Secrets::default()).await;
    let open = using(&gateway, &session, "t").await;
    hide(&gateway, &session);
    server.until_seen("DELETE", 1).await.unwrap();
    // That is what a call meets which still ran there.
    gateway.sessions.target_session_forgotten(&session, &open).await;
    let again = using(&gateway, &session, "t").await;
    assert_ne!(again.wire.id, open.wire.id);
    assert!(!again.gone.is_cancelled());
}

#[tokio::test]
async fn a_target_that_has_moved_is_begun_anew_where_its_policy_says_so_and_goes_on_where_it_comes_back() {
    for (policy, goes_on) in [(OnSessionLoss::Reinitialize, true), (OnSessionLoss::Fail, false)] {
        let older = ScriptedServer::start(Script::echoing(["echo"])).await;
        let newer = ScriptedServer::start(Script::echoing(["echo"])).await;
        let of = |server| TargetConfig { on_session_loss: policy, ..target(server) };
        let (gateway, session) = gateway(of(&older), Secrets::default()).await;
        let open = using(&gateway, &session, "t").await;
        gateway.configure(config(vec![of(&newer)]));
        assert!(open.gone.is_cancelled());
        let now = gateway.snapshot().targets.first().map(Arc::clone).unwrap();
        for _ in 0..2 {
            let again = gateway.sessions.target_session(&session, &now, &Arc::default()).await;
            let lost = Err(Fault::TargetSessionLost { target: "a".to_owned(), ran: false });
            assert_eq!(again.is_ok(), goes_on, "{policy:?}: {again:?}");
            assert!(goes_on || again.map(drop) == lost, "{policy:?}");
        }
        newer.until_seen("tools/list", 1).await.unwrap();
        assert_eq!(newer.counts().initializes, 1 + usize::from(goes_on), "{policy:?}");
        gateway.configure(config(vec![of(&older)]));
        let back = using(&gateway, &session, "t").await;
        assert_eq!(back.wire.id == open.wire.id, !goes_on, "{policy:?}");
    }
}

#[tokio::test]
async fn a_target_that_was_taken_out_is_not_lost_where_it_is_put_in_again() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let (gateway, session) = gateway(target(&server), Secrets::default()).await;
    server.until_seen("tools/list", 1).await.unwrap();
    let open = using(&gateway, &session, "t").await;
    gateway.configure(config(Vec::new()));
    // The catalogue's and the session's own.
    server.until_seen("DELETE", 2).await.unwrap();
    gateway.configure(config(vec![target(&server)]));
    let again = using(&gateway, &session, "t").await;
    assert!(again.wire.id.is_some() && again.wire.id != open.wire.id);
}
