//! A configuration that seems to be gone, under an API server that is scripted: only its clear word ends sessions.
#![expect(clippy::unwrap_used, reason = "a test")]

#[path = "support/gateway.rs"]
mod support;

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use kube::Client;
use moored::{
    config::cluster::{self, Names},
    gateway::Gateway,
    session::{record::Principal, table::Opening},
    version::LATEST,
};
use tokio::{sync::watch, time::timeout};
use tower_service::Service;

/// Lists nothing, watches without a word, and answers a GET by name with a status that the test sets.
#[derive(Clone)]
struct ApiServer {
    status: Arc<AtomicU16>,
    asked: Arc<AtomicUsize>,
}

impl Service<Request<kube::client::Body>> for ApiServer {
    type Response = Response<BoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let whole = |text: String| Full::new(Bytes::from(text)).boxed();
        let query = request.uri().query().unwrap_or_default();
        let (status, body) = if request.uri().path().ends_with("/configmaps/config") {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let code = self.status.load(Ordering::SeqCst);
            let reason = if code == 404 { "NotFound" } else { "InternalError" };
            let text = format!(
                r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"","reason":"{reason}","code":{code}}}"#
            );
            (code, whole(text))
        } else if query.contains("watch=") {
            (200, StreamBody::new(stream::pending()).boxed())
        } else {
            let list =
                r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
            (200, whole(list.to_owned()))
        };
        ready(Ok(Response::builder().status(status).body(body).unwrap()))
    }
}

fn gateway() -> Arc<Gateway> {
    Gateway::start(support::config(), moored::config::secrets::Secrets::default(), support::shared())
}

/// Lets paused time pass.
async fn pass(seconds: u64) {
    assert!(timeout(Duration::from_secs(seconds), std::future::pending::<()>()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn sessions_end_once_the_api_server_confirms_that_the_configuration_is_gone_and_not_before() {
    let gateway = gateway();
    let opening = Opening {
        principal: Principal::Anonymous,
        version: LATEST,
        client_info: "{}".into(),
        capabilities: moored::capabilities::ClientCapabilities::default(),
        timeout: Duration::from_secs(3600),
        seen: moored::catalog::merge::Marks::default(),
        idle: None,
        most: None,
    };
    gateway.sessions.create(opening).await.unwrap();
    let server = ApiServer { status: Arc::new(AtomicU16::new(500)), asked: Arc::default() };
    let names = Names {
        config_map: "config".to_owned(),
        report_map: "report".to_owned(),
        pod: "pod".to_owned(),
        namespace: "default".to_owned(),
    };
    let (tell, _digest) = watch::channel(String::new());
    let client = Client::new(server.clone(), "default");
    gateway.shared.tasks.spawn(cluster::follow(client, names, Arc::clone(&gateway), tell));
    pass(9).await;
    assert_eq!(server.asked.load(Ordering::SeqCst), 0, "a moment's absence is none");
    pass(6).await;
    assert!(server.asked.load(Ordering::SeqCst) >= 1);
    assert_eq!(gateway.sessions.len(), 1, "an error is no absence");
    server.status.store(404, Ordering::SeqCst);
    pass(30).await;
    assert!(gateway.sessions.is_empty());
}
