//! The five steps against a scripted API server: what is written, and that nothing is written twice.

use http::{Method, Request, Response, StatusCode};
use kube::{
    Client,
    client::Body,
    core::DynamicObject,
    runtime::{reflector::store::Writer as StoreWriter, watcher::Event},
};
use mooring_crds::{MCPGateway, Platform};
use mooring_runtime::{Clock, Timestamp};
use serde_json::Value;
use tower_test::mock::Handle;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    apply::Writer,
    child::ChildKind,
    context::Settings,
    events::Events,
    ledger::Ledger,
    metrics::Metrics,
    references::Objects,
    stores::{Scope, Seen, Stores},
};

/// The writing ends of the stores that the test fills.
struct World {
    children: Vec<(ChildKind, StoreWriter<DynamicObject>)>,
    context: Context,
}

impl World {
    /// The watch has told of the ServiceAccount.
    fn shows_service_account(&mut self) {
        let owner = json!({
            "apiVersion": "mooring.dev/v1alpha1",
            "kind": "MCPGateway",
            "name": "tools",
            "uid": "u",
            "controller": true,
        });
        let account = json!({
            "metadata": {"name": "tools-mcp", "namespace": "team", "uid": "made", "ownerReferences": [owner]},
        });
        let kind = ChildKind::ServiceAccount;
        let (_, store) = self.children.iter_mut().find(|(of, _)| *of == kind).unwrap();
        store.apply_watcher_event(&Event::Apply(serde_json::from_value(account).unwrap()));
    }
}

fn world(client: Client) -> World {
    let children: Vec<_> = ChildKind::ALL.map(|kind| (kind, StoreWriter::new(kind.resource()))).into();
    let scope = Scope {
        namespace: None,
        gateways: StoreWriter::default().as_reader(),
        targets: StoreWriter::default().as_reader(),
        agents: StoreWriter::default().as_reader(),
        children: children.iter().map(|(kind, writer)| (*kind, writer.as_reader())).collect(),
        slices: StoreWriter::default().as_reader(),
        secrets: Objects { store: StoreWriter::default().as_reader(), seen: CancellationToken::new() },
        config_maps: Objects { store: StoreWriter::default().as_reader(), seen: CancellationToken::new() },
        seen: Seen::default(),
    };
    let (ledger, metrics) = (Arc::new(Ledger::default()), Metrics::new().unwrap());
    let context = Context {
        stores: Stores { scopes: vec![scope], ..Stores::default() },
        writer: Writer::new(client.clone(), ledger.clone(), metrics.clone()),
        ledger,
        events: Events::new(client, "test", metrics.clone()),
        metrics,
        settings: Settings {
            daemon_image: "example.org/moored:1".to_owned(),
            daemon_image_pull_policy: "Always".to_owned(),
            platform: Platform::default(),
        },
        clock: Clock::tokio(Timestamp(1_700_000_000_000)),
    };
    World { children, context }
}

fn gateway() -> MCPGateway {
    let json = json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPGateway",
        "metadata": {"name": "tools", "namespace": "team", "uid": "u", "generation": 1, "resourceVersion": "5"},
        "spec": {"auth": {"anonymous": {}}},
    });
    serde_json::from_value(json).unwrap()
}

/// One write as the server saw it.
#[derive(Debug)]
struct Write {
    path: String,
    body: Value,
}

/// Answers reads with 404 and writes with what was written, but those of `forbidden` with 403. Never ends.
async fn serve(mut server: Handle<Request<Body>, Response<Body>>, forbidden: &str, writes: &mut Vec<Write>) {
    while let Some((request, answer)) = server.next_request().await {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let (status, reply) = if head.method == Method::GET {
            (
                StatusCode::NOT_FOUND,
                json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
            )
        } else if !forbidden.is_empty() && path.contains(forbidden) {
            let message = format!("cannot patch resource {forbidden:?}");
            (
                StatusCode::FORBIDDEN,
                json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}),
            )
        } else {
            let body = body.collect_bytes().await.unwrap();
            let mut reply: Value = serde_json::from_slice(&body).unwrap();
            reply["metadata"]["uid"] = json!("made");
            writes.push(Write { path, body: reply.clone() });
            reply["metadata"]["resourceVersion"] = json!((100 + writes.len()).to_string());
            (StatusCode::OK, reply)
        };
        let response =
            Response::builder().status(status).body(Body::from(serde_json::to_vec(&reply).unwrap()));
        answer.send_response(response.unwrap());
    }
}

async fn against(
    world: &World,
    object: &MCPGateway,
    server: impl Future<Output = ()>,
) -> Result<Action, Error> {
    tokio::select! {
        result = reconcile(object, &world.context) => result,
        () = server => panic!("the server ended first"),
    }
}

fn paths(writes: &[Write]) -> Vec<&str> {
    writes.iter().map(|write| write.path.as_str()).filter(|path| !path.contains("/events")).collect()
}

#[tokio::test(start_paused = true)]
async fn children_come_first_then_the_status_and_the_same_again_writes_nothing() {
    let (service, server) = tower_test::mock::pair();
    let mut world = world(Client::new(service, "team"));
    world.shows_service_account();
    let mut writes = Vec::new();
    let mut serving = Box::pin(serve(server, "", &mut writes));
    let mut object = gateway();
    against(&world, &object, &mut serving).await.unwrap();

    // What the watches would now show: the children as written, and the object with its status.
    let status = world.context.ledger.status(("MCPGateway", &Key::of(&object))).unwrap();
    drop(serving);
    let expected = [
        "/api/v1/namespaces/team/serviceaccounts/tools-mcp",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles/tools-mcp",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings/tools-mcp",
        "/api/v1/namespaces/team/secrets/tools-mcp-credentials",
        "/api/v1/namespaces/team/configmaps/tools-mcp-config",
        "/api/v1/namespaces/team/configmaps/tools-mcp-report",
        "/api/v1/namespaces/team/services/tools-mcp",
        "/apis/policy/v1/namespaces/team/poddisruptionbudgets/tools-mcp",
        "/apis/apps/v1/namespaces/team/deployments/tools-mcp",
        "/apis/mooring.dev/v1alpha1/namespaces/team/mcpgateways/tools/status",
    ];
    assert_eq!(paths(&writes), expected);
    for (kind, store) in &mut world.children {
        let plural = kind.resource().plural;
        for write in writes.iter().filter(|write| write.path.contains(&format!("/{plural}/"))) {
            store.apply_watcher_event(&Event::Apply(serde_json::from_value(write.body.clone()).unwrap()));
        }
    }
    object.status = Some(serde_json::from_value(status.status).unwrap());
    object.metadata.resource_version = status.after;

    let (service, server) = tower_test::mock::pair();
    let again = Client::new(service, "team");
    let ledger = world.context.ledger.clone();
    world.context.writer = Writer::new(again, ledger, world.context.metrics.clone());
    tokio::time::advance(Duration::from_mins(10)).await;
    let mut more = Vec::new();
    against(&world, &object, serve(server, "", &mut more)).await.unwrap();
    assert!(more.is_empty(), "an unchanged object was written: {more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_may_not_be_written_reaches_the_status_and_is_tried_again() {
    let (service, server) = tower_test::mock::pair();
    let world = world(Client::new(service, "team"));
    let mut writes = Vec::new();
    let error = against(&world, &gateway(), serve(server, "services", &mut writes)).await.unwrap_err();
    assert_eq!(error.label(), "apply");
    let status = writes.iter().find(|write| write.path.ends_with("/status")).expect("a status is written");
    let conditions = status.body["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!(ready["reason"], "ApplyFailed");
    assert_eq!(
        ready["message"],
        "Service tools-mcp could not be applied: cannot patch resource \"services\""
    );
    assert!(
        !paths(&writes).iter().any(|path| path.contains("deployments")),
        "nothing after the failure is applied"
    );
}

#[tokio::test(start_paused = true)]
async fn pods_wait_until_the_watch_has_told_of_their_service_account() {
    let (service, server) = tower_test::mock::pair();
    let world = world(Client::new(service, "team"));
    let mut writes = Vec::new();
    against(&world, &gateway(), serve(server, "", &mut writes)).await.unwrap();
    let paths = paths(&writes);
    assert!(paths.iter().any(|path| path.ends_with("/serviceaccounts/tools-mcp")), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("deployments")), "{paths:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_is_left_to_the_garbage_collector() {
    let (service, server) = tower_test::mock::pair();
    let world = world(Client::new(service, "team"));
    let mut object = gateway();
    object.metadata.deletion_timestamp = Some(world.context.now());
    let mut writes = Vec::new();
    against(&world, &object, serve(server, "", &mut writes)).await.unwrap();
    assert!(writes.is_empty(), "{writes:?}");
}

/// Case 055.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_marked_once_and_otherwise_left_alone() {
    let (service, server) = tower_test::mock::pair();
    let World { context, children: _stores } = world(Client::new(service, "team"));
    let context = Arc::new(context);
    let json = json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPGateway",
        "metadata": {"name": "tools", "namespace": "team", "uid": "u", "generation": 1, "resourceVersion": "5"},
        "spec": {"auth": {"anonymous": {}}, "replicas": "two"},
    });
    let object: Arc<Guarded<MCPGateway>> = Arc::new(serde_json::from_value(json).unwrap());
    assert!(object.0.is_err(), "the guard keeps what cannot be decoded");
    let mut writes = Vec::new();
    let reconciles = async {
        for _ in 0..3 {
            guarded(Arc::clone(&object), Arc::clone(&context)).await.unwrap();
        }
    };
    tokio::select! {
        () = reconciles => {}
        () = serve(server, "", &mut writes) => panic!("the server ended first"),
    }
    assert_eq!(paths(&writes), ["/apis/mooring.dev/v1alpha1/namespaces/team/mcpgateways/tools/status"]);
    let conditions = writes[0].body["status"]["conditions"].as_array().unwrap();
    let accepted = conditions.iter().find(|condition| condition["type"] == "Accepted").unwrap();
    assert_eq!(
        (accepted["status"].as_str(), accepted["reason"].as_str()),
        (Some("False"), Some("Undecodable"))
    );
    assert!(accepted["message"].as_str().unwrap().contains("correct it"), "{accepted}");
}
