//! Target sessions follow their targets: through a new configuration, a caller's newer token, and a loss.
//! Not a black box, since `moored serve` reads its manifests once.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/gateway.rs"]
mod support;
#[path = "support/using.rs"]
mod using;

use std::{collections::BTreeMap, sync::Arc};

use e2e::{
    scripted::{Script, ScriptedServer},
    token_endpoint::TokenEndpoint,
    two_endpoints::{Asked, Named, TwoEndpoints},
};
use moored::{
    access::Access,
    auth::Caller,
    catalog::{kind::Kind, per_session::Asking},
    config::secrets::Secrets,
    session::{Session, targets::TargetSession},
    target::{Target, unary},
};
use mooring_crds::config::{
    CredentialsConfig, Listing, OnSessionLoss, Protocol, TargetConfig, TimeoutsConfig, TokenClient,
};

use self::using::{config, gateway, target, using};

const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"still here"}}"#;

/// A target that is asked with the header `x-key`, its value in a Secret.
fn keyed(target: TargetConfig) -> TargetConfig {
    let headers = BTreeMap::from([("x-key".to_owned(), "k".to_owned())]);
    TargetConfig { credentials: Some(CredentialsConfig::Headers { headers }), ..target }
}

fn secrets(key: &str) -> Secrets {
    Secrets::new(BTreeMap::from([("k".to_owned(), key.into())]))
}

/// What a tool answers in the session's only target session, as it is now.
async fn call(session: &Session, tool: &str) -> String {
    let open = session.open_targets().pop().unwrap();
    let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
    let reply = unary::ask(&open.target, &open.wire, "tools/call", &params).await.unwrap();
    reply.result.get().to_owned()
}

fn id_of(open: &TargetSession) -> String {
    open.wire.id.as_ref().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_target_that_is_removed_is_parted_from_and_heard_no_more() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let (gateway, session) = gateway(target(&server), Secrets::default()).await;
    let _stream = session.channel().take_stream(&session.ended, None);
    let open = using(&gateway, &session, "t").await;
    let id = id_of(&open);
    server.until("its stream", |server| server.push_to(&id, LOG) == 1).await.unwrap();
    let mut said = session.channel().outbox.follow();
    said.wait_for(|newest| *newest > 0).await.unwrap();
    gateway.configure(config(Vec::new()));
    assert!(open.gone.is_cancelled());
    server.until("its DELETE", |server| !server.open_sessions().contains(&id)).await.unwrap();
    server.until("its stream's end", |server| server.push_to(&id, LOG) == 0).await.unwrap();
    assert!(session.open_targets().is_empty());
}

#[tokio::test]
async fn a_target_that_is_configured_anew_keeps_its_session_and_is_heard_by_what_it_is_now() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let (gateway, session) = gateway(target(&server), Secrets::default()).await;
    let _stream = session.channel().take_stream(&session.ended, None);
    let open = using(&gateway, &session, "t").await;
    let id = id_of(&open);
    server.until("its stream", |server| server.push_to(&id, LOG) == 1).await.unwrap();
    let timeouts = TimeoutsConfig { connect_seconds: 4, ..TimeoutsConfig::default() };
    gateway.configure(config(vec![TargetConfig { timeouts, ..target(&server) }]));
    let now = session.open_targets();
    assert!(Arc::ptr_eq(&now[0].target, &gateway.snapshot().targets[0]));
    assert!(!open.gone.is_cancelled() && id_of(&now[0]) == id);
    let gets = |server: &ScriptedServer| {
        server
            .requests()
            .iter()
            .filter(|seen| seen.verb == "GET" && seen.session.as_ref() == Some(&id))
            .count()
    };
    server.until("its stream again", |server| gets(server) == 2).await.unwrap();
    assert!(server.open_sessions().contains(&id));
}

#[tokio::test]
async fn a_new_value_of_a_secret_is_in_the_next_request_of_a_session_that_goes_on() {
    let server = ScriptedServer::start(Script::echoing(["echo"])).await;
    let (gateway, session) = gateway(keyed(target(&server)), secrets("older")).await;
    let open = using(&gateway, &session, "t").await;
    let id = id_of(&open);
    let key = || {
        let calls = server.seen("tools/call");
        let last = calls.last().unwrap();
        assert_eq!(last.session.as_ref(), Some(&id));
        last.header("x-key").unwrap().to_owned()
    };
    call(&session, "echo").await;
    assert_eq!(key(), "older");
    gateway.rotate(secrets("newer"));
    call(&session, "echo").await;
    assert_eq!(key(), "newer");
    assert!(server.open_sessions().contains(&id));
}

#[tokio::test]
async fn a_target_of_the_old_transport_keeps_its_session_through_a_new_configuration_and_a_new_secret() {
    for protocol in [Protocol::Sse, Protocol::Auto] {
        let server = TwoEndpoints::start(Named::Path).await.unwrap();
        let of = |connect_seconds| {
            let timeouts = TimeoutsConfig { connect_seconds, ..TimeoutsConfig::default() };
            let (alias, uid) = ("a".to_owned(), "uid-a".to_owned());
            keyed(TargetConfig {
                alias,
                uid,
                url: server.url(),
                protocol,
                timeouts,
                ..TargetConfig::default()
            })
        };
        let (gateway, session) = gateway(of(5), secrets("older")).await;
        using(&gateway, &session, "t").await;
        assert!(call(&session, "count").await.contains(r#""1""#), "{protocol:?}");
        gateway.configure(config(vec![of(4)]));
        assert!(call(&session, "count").await.contains(r#""2""#), "{protocol:?}");
        gateway.rotate(secrets("newer"));
        assert!(call(&session, "count").await.contains(r#""3""#), "{protocol:?}");
        call(&session, "ping").await;
        let with = |key: &str, is: &dyn Fn(&Asked) -> bool| {
            let asked = server.asked();
            let last = asked.iter().rev().find(|asked| is(asked))?;
            (last.headers.get("x-key")? == key).then_some(())
        };
        assert!(with("newer", &|asked| asked.message["method"] == "tools/call").is_some(), "{protocol:?}");
        // What the bridge says in its own name as well.
        let answered = async || with("newer", &|asked| asked.message["id"] == "ping");
        e2e::process::poll(std::time::Duration::from_secs(10), answered).await.unwrap();
    }
}

#[tokio::test]
async fn what_belongs_to_no_request_is_sent_on_behalf_of_the_newest_one() {
    let (server, endpoint) =
        (ScriptedServer::start(Script::echoing(["echo"])).await, TokenEndpoint::start().await.unwrap());
    let client = TokenClient {
        token_url: endpoint.url(),
        client_id: "id".to_owned(),
        client_secret: "secret".to_owned(),
        ..TokenClient::default()
    };
    let values = [("id", "me"), ("secret", "s")].map(|(key, value)| (key.to_owned(), value.into()));
    let exchange = Some(CredentialsConfig::TokenExchange(client));
    let config = TargetConfig { credentials: exchange, ..target(&server) };
    let (gateway, session) = gateway(config, Secrets::new(BTreeMap::from(values))).await;
    using(&gateway, &session, "older").await;
    let open = using(&gateway, &session, "newer").await;
    let notice = br#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    open.notify(notice.as_slice().into()).await;
    let seen = server.seen("notifications/roots/list_changed");
    assert_eq!(seen[0].header("authorization"), Some("Bearer token-2"));
    assert!(endpoint.asked()[1].form.contains("subject_token=newer"), "{:?}", endpoint.asked());
}

#[tokio::test]
async fn a_list_of_a_session_that_the_target_forgot_is_read_in_a_new_one_where_its_policy_says_so() {
    for (policy, tools) in [(OnSessionLoss::Reinitialize, 1), (OnSessionLoss::Fail, 0)] {
        let server = ScriptedServer::start(Script::echoing(["echo"])).await;
        let config =
            TargetConfig { listing: Listing::PerSession, on_session_loss: policy, ..target(&server) };
        let (gateway, session) = gateway(config, Secrets::default()).await;
        let (view, of) = (gateway.view_of(&session, tokio::time::Instant::now()), Arc::default());
        let access = Access::of(&[], &Caller::anonymous());
        let at = |_: &Target| Arc::clone(&of);
        let asking =
            Asking { sessions: &gateway.sessions, session: &session, view: &view, of: &at, access: &access };
        assert_eq!(asking.list(Kind::Tools).await.1.iter().count(), 1, "{policy:?}");
        server.forget_sessions();
        session.lists.forget("uid-a", Kind::Tools);
        assert_eq!(asking.list(Kind::Tools).await.1.iter().count(), tools, "{policy:?}");
    }
}
