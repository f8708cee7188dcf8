//! The loop against a scripted API server, under paused time.

use std::{pin::pin, sync::Arc};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use mooring_runtime::Timestamp;
use serde_json::{Value, json};
use tower_test::mock::Handle;

use super::*;
use crate::{ledger::Ledger, metrics::Metrics};

type Server = Handle<Request<Body>, Response<Body>>;

fn election() -> (Election, Server) {
    let (service, server) = tower_test::mock::pair();
    let client = Client::new(service, "team");
    let writer = Writer::new(client.clone(), Arc::new(Ledger::default()), Metrics::new().unwrap());
    (Election::new(client, writer, Clock::tokio(Timestamp(0)), "team", "me"), server)
}

/// Answers as a server that stores one Lease, until `requests` are answered; then no more, as if cut off.
async fn serve(server: &mut Server, lease: &mut Option<Value>, requests: usize) {
    for version in 1..=requests {
        let (request, answer) = server.next_request().await.expect("a request");
        let (head, body) = request.into_parts();
        if head.method != Method::GET {
            let body = body.collect_bytes().await.unwrap();
            let mut written: Value = serde_json::from_slice(&body).unwrap();
            written["metadata"]["resourceVersion"] = json!(version.to_string());
            *lease = Some(written);
        }
        let (status, reply) = lease.clone().map_or_else(
            || {
                (
                    StatusCode::NOT_FOUND,
                    json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
                )
            },
            |lease| (StatusCode::OK, lease),
        );
        let body = Body::from(serde_json::to_vec(&reply).unwrap());
        answer.send_response(Response::builder().status(status).body(body).unwrap());
    }
    std::future::pending::<()>().await;
}

fn held_by(holder: &str) -> Value {
    json!({
        "metadata": {"name": NAME, "resourceVersion": "1"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    })
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_a_standby_may_begin() {
    let (mut election, mut server) = election();
    let (drain, mut lease) = (CancellationToken::new(), None);
    // The first two requests read and create; what follows is never answered.
    let mut serving = pin!(serve(&mut server, &mut lease, 2));
    let began = Instant::now();
    tokio::select! {
        ended = election.stand(&drain) => assert_eq!(ended, Ended::Elected),
        () = &mut serving => panic!("the server does not end"),
    }
    tokio::select! {
        ended = election.hold(&drain) => assert_eq!(ended, Ended::Lost),
        () = &mut serving => panic!("the server does not end"),
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(8) && took < Terms::KUBERNETES.lease, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_the_lease_of_a_silent_holder_once_it_ran_out() {
    let (mut election, mut server) = election();
    let (drain, mut lease) = (CancellationToken::new(), Some(held_by("other")));
    let began = Instant::now();
    tokio::select! {
        ended = election.stand(&drain) => assert_eq!(ended, Ended::Elected),
        () = serve(&mut server, &mut lease, 100) => panic!("the server does not end"),
    }
    assert!(began.elapsed() >= Duration::from_secs(15), "{:?}", began.elapsed());
    let lease = lease.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "me");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_names_nobody() {
    let (mut election, mut server) = election();
    let (drain, mut lease) = (CancellationToken::new(), Some(held_by("")));
    {
        let mut serving = pin!(serve(&mut server, &mut lease, 100));
        tokio::select! {
            ended = election.stand(&drain) => assert_eq!(ended, Ended::Elected),
            () = &mut serving => panic!("the server does not end"),
        }
        tokio::select! {
            () = election.release() => {}
            () = &mut serving => panic!("the server does not end"),
        }
    }
    assert_eq!(lease.unwrap()["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_standby_ends_at_the_drain_without_a_write() {
    let (mut election, mut server) = election();
    let (drain, mut lease) = (CancellationToken::new(), Some(held_by("other")));
    drain.cancel();
    tokio::select! {
        ended = election.stand(&drain) => assert_eq!(ended, Ended::Drained),
        () = serve(&mut server, &mut lease, 100) => panic!("the server does not end"),
    }
    assert_eq!(lease, Some(held_by("other")));
}
