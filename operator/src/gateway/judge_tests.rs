//! A table of what a gateway's conditions say, and how its status stays put.

use jiff::Timestamp;
use mooring_crds::{
    Attachment, Platform,
    auth::{GatewayAuth, ServiceAccountAuth},
    compile::compile,
    config::{Report, TargetReport},
    names,
    reference::SecretReference,
    serving::Tls,
};

use super::{super::credentials::Credentials, *};
use crate::{condition::find, daemons::Daemons, kind::Applied};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn gateway() -> MCPGateway {
    let json = serde_json::json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPGateway",
        "metadata": {"name": "tools", "namespace": "team", "uid": "u", "generation": 3},
        "spec": {"auth": {"anonymous": {}}},
    });
    serde_json::from_value(json).unwrap()
}

fn deployment(counts: (i64, i64, i64), wanted: i64) -> Outcome {
    let (replicas, updated, available) = counts;
    let object = serde_json::json!({
        "metadata": {"name": "tools-mcp", "generation": 1},
        "spec": {"replicas": wanted},
        "status": {
            "observedGeneration": 1,
            "replicas": replicas,
            "updatedReplicas": updated,
            "availableReplicas": available,
        },
    });
    Outcome::Applied(Applied(vec![(ChildKind::Deployment, serde_json::from_value(object).unwrap())]))
}

fn view(gateway: &MCPGateway) -> View {
    View {
        names: names::gateway("tools"),
        instance: names::instance("tools"),
        configured: compile(gateway, &[], &Platform::default()).map(Configured::from),
        daemons: Daemons::default(),
        service_account: Some("sa-1".to_owned()),
        rollout: Rollout::default(),
        credentials: Credentials::default(),
    }
}

fn with_pod(mut view: View, digest: &str) -> View {
    let report = Report { config: digest.to_owned(), ..Report::default() };
    view.daemons.live.insert("tools-mcp-a".to_owned(), report);
    view
}

fn digest(view: &View) -> String {
    view.configured.as_ref().unwrap().digest.clone()
}

fn says(status: &MCPGatewayStatus, kind: &str) -> (String, String) {
    let condition = find(&status.conditions, kind).unwrap();
    (condition.status.clone(), condition.reason.clone())
}

#[test]
fn every_row_of_the_table_holds() {
    let gateway = gateway();
    let none = view(&gateway);
    let current = with_pod(view(&gateway), &digest(&none));
    let stale = with_pod(view(&gateway), "older");
    let table = [
        (
            "nothing runs yet",
            &none,
            deployment((0, 0, 0), 1),
            ("False", "Pending"),
            ("False", "PodsNotReady"),
        ),
        (
            "a pod is up and confirms",
            &current,
            deployment((1, 1, 1), 1),
            ("True", "Programmed"),
            ("True", "Ready"),
        ),
        (
            "a pod works by an older one",
            &stale,
            deployment((1, 1, 1), 1),
            ("False", "Pending"),
            ("False", "Pending"),
        ),
        (
            "pods are being replaced",
            &current,
            deployment((1, 0, 1), 1),
            ("False", "Pending"),
            ("False", "Pending"),
        ),
        (
            "the pod is gone",
            &current,
            deployment((1, 1, 0), 1),
            ("True", "Programmed"),
            ("False", "PodsNotReady"),
        ),
        (
            "scaled to zero",
            &none,
            deployment((0, 0, 0), 0),
            ("Unknown", "ScaledToZero"),
            ("False", "ScaledToZero"),
        ),
    ];
    for (why, view, outcome, programmed, ready) in table {
        let status = judge(&gateway, view, &outcome, None, &at(1));
        let (status_, reason) = says(&status, "Programmed");
        assert_eq!((status_.as_str(), reason.as_str()), programmed, "{why}: Programmed");
        let (status_, reason) = says(&status, "Ready");
        assert_eq!((status_.as_str(), reason.as_str()), ready, "{why}: Ready");
        assert_eq!(says(&status, "Accepted").0, "True", "{why}");
    }
}

#[test]
fn a_refused_spec_says_what_to_write_and_keeps_what_was_known_of_its_targets() {
    let mut gateway = gateway();
    gateway.spec.session.timeout_seconds = 5;
    let view = view(&gateway);
    let refusal = view.configured.as_ref().unwrap_err().clone();
    let counts = TargetCounts { attached: 2, ready: 1 };
    let address = Some("http://tools-mcp.team.svc/before".to_owned());
    let old =
        MCPGatewayStatus { targets: Some(counts), address: address.clone(), ..MCPGatewayStatus::default() };
    let status = judge(&gateway, &view, &Outcome::Refused(refusal.clone()), Some(&old), &at(1));
    for kind in ["Accepted", "Programmed", "Ready"] {
        assert_eq!(says(&status, kind), ("False".to_owned(), "TimeoutOutOfRange".to_owned()), "{kind}");
    }
    assert_eq!(find(&status.conditions, "Ready").unwrap().message, refusal.message);
    assert_eq!(find(&status.conditions, "Accepted").unwrap().observed_generation, Some(3));
    assert_eq!(status.targets, Some(counts));
    assert_eq!(status.address, address, "the Service still is as it was");
    let never = judge(&gateway, &view, &Outcome::Refused(refusal), None, &at(1));
    assert_eq!(never.address, None, "what was never accepted is nowhere");
}

#[test]
fn until_the_service_account_is_seen_pods_are_not_ready_and_older_ones_serve() {
    let gateway = gateway();
    let made = Outcome::Applied(Applied::default());
    let mut view = view(&gateway);
    view.service_account = None;
    let status = judge(&gateway, &view, &made, None, &at(1));
    assert_eq!(says(&status, "Programmed"), ("False".to_owned(), "Pending".to_owned()));
    assert_eq!(says(&status, "Ready"), ("False".to_owned(), "PodsNotReady".to_owned()));
    let ready = find(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.message, "waiting for its ServiceAccount tools-mcp to be seen");

    let digest = digest(&view);
    let mut view = with_pod(view, &digest);
    view.rollout =
        Rollout { wanted: 1, replicas: 1, updated: 1, available: 1, current: true, ..Rollout::default() };
    let status = judge(&gateway, &view, &made, None, &at(1));
    assert_eq!(says(&status, "Ready"), ("True".to_owned(), "Ready".to_owned()));
    assert_eq!(status.replicas, Some(1));
}

#[test]
fn a_failed_apply_reaches_the_status() {
    let gateway = gateway();
    let failure =
        Refusal { reason: "ApplyFailed", message: "Service tools-mcp could not be applied".to_owned() };
    let status = judge(&gateway, &view(&gateway), &Outcome::Failed(failure), None, &at(1));
    assert_eq!(says(&status, "Ready"), ("False".to_owned(), "ApplyFailed".to_owned()));
    assert_eq!(says(&status, "Accepted").0, "True");
}

#[test]
fn the_same_view_makes_the_same_status_at_any_time() {
    let gateway = gateway();
    let view = view(&gateway);
    let first = judge(&gateway, &view, &deployment((0, 0, 0), 1), None, &at(1));
    assert_eq!(judge(&gateway, &view, &deployment((0, 0, 0), 1), Some(&first), &at(99)), first);
}

#[test]
fn warnings_are_conditions_of_their_own_that_do_not_hold() {
    let gateway = gateway();
    let status = judge(&gateway, &view(&gateway), &deployment((0, 0, 0), 1), None, &at(1));
    assert_eq!(says(&status, "SessionsDurable"), ("False".to_owned(), "MemoryStore".to_owned()));
    assert_eq!(says(&status, "PrincipalsBound"), ("False".to_owned(), "Anonymous".to_owned()));
}

#[test]
fn sessions_are_bound_where_callers_are_told_apart() {
    let mut gateway = gateway();
    let accounts = ServiceAccountAuth { audiences: vec!["tools".to_owned()], allowed: Vec::new() };
    gateway.spec.auth = GatewayAuth { service_account: Some(accounts), ..GatewayAuth::default() };
    let status = judge(&gateway, &view(&gateway), &deployment((0, 0, 0), 1), None, &at(1));
    assert_eq!(says(&status, "PrincipalsBound"), ("True".to_owned(), "Authenticated".to_owned()));
}

#[test]
fn a_target_is_ready_where_every_pod_says_so() {
    let gateway = gateway();
    let mut view = view(&gateway);
    let attachment = |uid: &str| Attachment {
        namespace: "team".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        outcome: Ok(uid.to_owned()),
    };
    if let Ok(configured) = &mut view.configured {
        configured.compiled.attachments = vec![attachment("a"), attachment("b")];
    }
    let heard = |uid: &str, state| TargetReport { uid: uid.to_owned(), state, ..TargetReport::default() };
    let report =
        |b| Report { config: String::new(), targets: vec![heard("a", TargetState::Ready), heard("b", b)] };
    view.daemons.live.insert("one".to_owned(), report(TargetState::Ready));
    view.daemons.live.insert("two".to_owned(), report(TargetState::Unreachable));
    let status = judge(&gateway, &view, &deployment((2, 2, 2), 2), None, &at(1));
    assert_eq!(status.targets, Some(TargetCounts { attached: 2, ready: 1 }));
}

#[test]
fn the_address_names_the_port_unless_it_is_the_schemes_own() {
    let mut gateway = gateway();
    assert_eq!(address(&gateway, &view(&gateway)), "http://tools-mcp.team.svc/mcp");
    gateway.spec.expose.port = 8080;
    gateway.spec.expose.path = "/tools".to_owned();
    assert_eq!(address(&gateway, &view(&gateway)), "http://tools-mcp.team.svc:8080/tools");
    let certificate_ref = SecretReference { name: "cert".to_owned() };
    gateway.spec.tls = Some(Tls { certificate_ref });
    assert_eq!(address(&gateway, &view(&gateway)), "https://tools-mcp.team.svc:8080/tools");
    gateway.spec.expose.port = 443;
    assert_eq!(address(&gateway, &view(&gateway)), "https://tools-mcp.team.svc/tools");
}

#[test]
fn the_selector_is_written_for_the_scale_subresource() {
    let gateway = gateway();
    let status = judge(&gateway, &view(&gateway), &deployment((1, 1, 1), 1), None, &at(1));
    let selector = "app.kubernetes.io/component=mcp-gateway,app.kubernetes.io/instance=tools,app.kubernetes.io/name=moored";
    assert_eq!(status.selector.as_deref(), Some(selector));
    assert_eq!(status.replicas, Some(1));
}
