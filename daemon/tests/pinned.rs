//! Several pods behind one Service: a session stays with the pod that knows it. The URL stands for the Service, which
//! alone would lead every request to the first pod.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::{net::SocketAddr, sync::Arc};

use e2e::{
    scripted::{Script, ScriptedServer},
    two_endpoints::{Named, TwoEndpoints},
};
use moored::{
    config::secrets::Secrets,
    metrics::Metrics,
    target::{
        OnBehalf, Target, Wire,
        address::Rules,
        connect::Connector,
        exchange::NoAnswer,
        handshake::{Introduction, handshake},
        unary,
    },
    version::LATEST,
};
use mooring_crds::config::{Protocol, TargetConfig};
use mooring_runtime::Tasks;

fn target(service: &ScriptedServer, endpoints: &[SocketAddr]) -> Arc<Target> {
    target_at(service.url(), Protocol::StreamableHttp, endpoints)
}

fn target_at(url: String, protocol: Protocol, endpoints: &[SocketAddr]) -> Arc<Target> {
    let config = TargetConfig {
        url,
        protocol,
        alias: "a".to_owned(),
        uid: "a".to_owned(),
        endpoints: endpoints.iter().map(ToString::to_string).collect(),
        ..TargetConfig::default()
    };
    let connector = Connector::new(Rules { loopback: true, refused: Vec::new() }).unwrap();
    let metrics = Metrics::new().unwrap().target("tools", "a");
    Target::new(config, &Secrets::default(), &connector, metrics).unwrap()
}

async fn begin(target: &Arc<Target>) -> Wire {
    let introduction = Introduction {
        of: &Arc::new(OnBehalf::default()),
        version: LATEST,
        client_info: r#"{"name":"test","version":"0"}"#,
        capabilities: "{}",
    };
    handshake(&Tasks::default(), target, introduction).await.unwrap().wire
}

/// Case 013.
#[tokio::test]
async fn twenty_requests_of_each_session_reach_the_pod_that_knows_it() {
    let (one, two) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let target = target(&one, &[one.address(), two.address()]);
    let sessions = [begin(&target).await, begin(&target).await];
    assert_eq!((one.count("initialize"), two.count("initialize")), (1, 1), "new sessions go round");
    for wire in &sessions {
        for _ in 0..20 {
            let answer = unary::ask(&target, wire, "ping", "{}").await;
            assert!(answer.is_ok(), "{answer:?}");
        }
    }
    assert_eq!((one.count("ping"), two.count("ping")), (20, 20));
    let host = one.address().to_string();
    assert!(two.requests().iter().all(|seen| seen.header("host") == Some(&host)), "the Service's name stays");
}

#[tokio::test]
async fn a_pod_that_is_gone_is_the_services_to_replace() {
    let (one, two) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let target = target(&one, &[two.address()]);
    let wire = begin(&target).await;
    assert_eq!((one.count("initialize"), two.count("initialize")), (0, 1));
    // Not in the list any more: the request goes where the Service says, and nobody there knows the session.
    target.set_endpoints(&[one.address().to_string()]);
    one.forget_sessions();
    assert!(matches!(unary::ask(&target, &wire, "ping", "{}").await, Err(NoAnswer::Lost)));
    assert_eq!((one.count("ping"), two.count("ping")), (1, 0));
    // In the list, and not there: a new session begins where the Service says, and is nobody's in particular.
    let gone = two.stop().await;
    target.set_endpoints(&[gone.to_string()]);
    let wire = begin(&target).await;
    assert_eq!(wire.endpoint, None);
    assert!(unary::ask(&target, &wire, "ping", "{}").await.is_ok());
    assert_eq!(one.count("ping"), 2);
}

#[tokio::test]
async fn a_server_of_the_old_transport_behind_a_service_is_reached_through_the_bridge() {
    for protocol in [Protocol::Sse, Protocol::Auto] {
        let server = TwoEndpoints::start(Named::Path).await.unwrap();
        let address = server.url().parse::<http::Uri>().unwrap().authority().unwrap().as_str().parse();
        let target = target_at(server.url(), protocol, &[address.unwrap()]);
        let wire = begin(&target).await;
        assert_eq!(wire.endpoint, None, "{protocol:?}");
        let answer = unary::ask(&target, &wire, "tools/list", "{}").await;
        assert!(answer.is_ok(), "{protocol:?}: {answer:?}");
        assert_eq!(server.count("tools/list"), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_server_that_may_be_of_either_transport_and_is_of_the_new_one_is_pinned() {
    let (one, two) =
        (ScriptedServer::start(Script::default()).await, ScriptedServer::start(Script::default()).await);
    let target = target_at(one.url(), Protocol::Auto, &[two.address()]);
    let wire = begin(&target).await;
    assert_eq!(wire.endpoint, Some(two.address()));
    assert!(unary::ask(&target, &wire, "ping", "{}").await.is_ok());
    assert_eq!((one.requests().len(), two.count("ping")), (0, 1));
}
