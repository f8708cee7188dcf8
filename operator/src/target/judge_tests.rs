//! A table of what a target's conditions say, at a gateway and together.

use jiff::Timestamp;
use mooring_crds::{compile::Refusal, secrets::Lacking};

use super::*;
use crate::{key::Key, kind::Applied};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn target(generation: i64) -> MCPTarget {
    let json = serde_json::json!({
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "MCPTarget",
        "metadata": {"name": "weather", "namespace": "team", "uid": "t", "generation": generation},
        "spec": {
            "gatewayRefs": [{"name": "tools"}],
            "server": {"type": "Service", "service": {"name": "weather", "port": 8000}},
        },
    });
    serde_json::from_value(json).unwrap()
}

fn view(places: &[(&str, Place)]) -> View {
    let gateways = places
        .iter()
        .map(|(name, place)| AtGateway { gateway: Key::new("team", *name), place: place.clone() })
        .collect();
    View { service: None, unresolved: None, gateways }
}

fn said(state: TargetState) -> Place {
    let report = TargetReport {
        uid: "t".to_owned(),
        state,
        tools: 3,
        protocol_version: Some("2025-11-25".to_owned()),
        ..TargetReport::default()
    };
    Place::Attached(Taken { pods: true, current: true, said: Some(report) })
}

fn refused(reason: &'static str) -> Place {
    Place::Refused(Refusal { reason, message: "older target storm has the alias weather".to_owned() })
}

fn judged(view: &View) -> MCPTargetStatus {
    judge(&target(1), view, &Outcome::Applied(Applied::default()), None, &at(1))
}

fn says(conditions: &[Condition], kind: &str) -> (String, String) {
    let condition = find(conditions, kind).unwrap();
    (condition.status.clone(), condition.reason.clone())
}

#[test]
fn every_row_of_the_table_holds_at_the_gateway_and_together() {
    let silent = Place::Attached(Taken { pods: false, current: false, said: None });
    let unheard = Place::Attached(Taken { pods: true, current: false, said: None });
    let table = [
        (said(TargetState::Ready), ("True", "Ready")),
        (said(TargetState::Pending), ("Unknown", "Pending")),
        (said(TargetState::Unreachable), ("False", "Unreachable")),
        (said(TargetState::UnsupportedVersion), ("False", "UnsupportedVersion")),
        (said(TargetState::Failed), ("False", "Failed")),
        (silent, ("False", "Pending")),
        (unheard, ("False", "Pending")),
        (Place::NoGateway, ("False", "GatewayNotFound")),
        (Place::NotWatched, ("False", "GatewayNotFound")),
        (refused("Conflicted"), ("False", "Conflicted")),
        (refused("NotAllowed"), ("False", "NotAllowed")),
    ];
    for (place, expected) in table {
        let status = judged(&view(&[("tools", place.clone())]));
        for conditions in [&status.conditions, &status.gateways[0].conditions] {
            let (ready, reason) = says(conditions, "Ready");
            assert_eq!((ready.as_str(), reason.as_str()), expected, "{place:?}");
        }
    }
}

#[test]
fn a_gateway_that_is_itself_refused_is_named_with_its_trouble() {
    let refusal = Refusal { reason: "NotImplemented", message: "spec.tls is not served".to_owned() };
    let status = judged(&view(&[("tools", Place::GatewayRefused(refusal))]));
    let ready = find(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.reason, "GatewayNotAccepted");
    assert_eq!(ready.message, "MCPGateway team/tools is itself not accepted: spec.tls is not served");
}

#[test]
fn one_gateway_that_takes_it_is_enough_to_be_accepted_and_the_other_is_named() {
    let both = view(&[("tools", said(TargetState::Ready)), ("web", refused("Conflicted"))]);
    let status = judged(&both);
    let accepted = find(&status.conditions, "Accepted").unwrap();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("True", "PartiallyAccepted"));
    assert!(accepted.message.contains("team/web"), "{}", accepted.message);
    assert_eq!(says(&status.conditions, "Ready"), ("False".to_owned(), "Conflicted".to_owned()));
}

#[test]
fn a_refused_target_says_what_to_write() {
    let refusal = Refusal { reason: "NotImplemented", message: "spec.credentials is not served".to_owned() };
    let status = judge(&target(1), &view(&[]), &Outcome::Refused(refusal), None, &at(1));
    assert_eq!(says(&status.conditions, "Accepted"), ("False".to_owned(), "NotImplemented".to_owned()));
    assert_eq!(find(&status.conditions, "Ready").unwrap().message, "spec.credentials is not served");
}

#[test]
fn a_missing_service_or_port_is_named() {
    let mut view = view(&[("tools", said(TargetState::Ready))]);
    view.service = Some(Missing::Service("weather".to_owned()));
    assert_eq!(says(&judged(&view).conditions, "ResolvedRefs").1, "ServiceNotFound");
    view.service = Some(Missing::Port("weather".to_owned(), 8000));
    let status = judged(&view);
    let message = &find(&status.conditions, "Ready").unwrap().message;
    assert_eq!(message, "Service weather has no port 8000; correct server.service.port");
}

/// Case 051.
#[test]
fn a_secret_or_a_key_that_is_not_there_is_named() {
    let mut view = view(&[("tools", said(TargetState::Ready))]);
    let source = mooring_crds::secrets::SecretSource {
        key: "t.header.x-key".to_owned(),
        target: Some("t".to_owned()),
        kind: mooring_crds::secrets::SourceKind::Secret,
        namespace: "team".to_owned(),
        name: "weather".to_owned(),
        entries: vec!["token".to_owned()],
        field: "spec.credentials.headers",
    };
    let missing = mooring_crds::secrets::Unresolved { source, lacking: Lacking::Entry("token".to_owned()) };
    view.unresolved = Some(missing);
    let status = judged(&view);
    assert_eq!(says(&status.conditions, "ResolvedRefs"), ("False".to_owned(), "SecretNotFound".to_owned()));
    let message = &find(&status.conditions, "Ready").unwrap().message;
    assert_eq!(message, "Secret weather has no key token; add it, or correct spec.credentials.headers");
}

#[test]
fn what_daemons_know_of_the_server_is_in_the_status() {
    let status = judged(&view(&[("tools", said(TargetState::Ready))]));
    assert_eq!(status.gateways[0].tools, Some(3));
    assert_eq!(status.gateways[0].protocol_version.as_deref(), Some("2025-11-25"));
}

#[test]
fn a_change_elsewhere_in_the_configuration_does_not_make_a_target_flap() {
    let taken = |current, generation, old: Option<&MCPTargetStatus>| {
        let report =
            TargetReport { uid: "t".to_owned(), state: TargetState::Ready, ..TargetReport::default() };
        let place = Place::Attached(Taken { pods: true, current, said: Some(report) });
        let view = view(&[("tools", place)]);
        judge(&target(generation), &view, &Outcome::Applied(Applied::default()), old, &at(1))
    };
    let settled = taken(true, 1, None);
    assert_eq!(taken(false, 1, Some(&settled)), settled, "another target changed");
    let changed = taken(false, 2, Some(&settled));
    assert_eq!(says(&changed.conditions, "Programmed"), ("False".to_owned(), "Pending".to_owned()));
    assert_eq!(says(&changed.gateways[0].conditions, "Ready").0, "False");
}

#[test]
fn long_names_and_collisions_are_remarks_on_a_target_that_works() {
    let report = TargetReport {
        uid: "t".to_owned(),
        state: TargetState::Ready,
        long_names: vec!["weather___a_very_long_name".to_owned()],
        collisions: vec!["search".to_owned()],
        ..TargetReport::default()
    };
    let place = Place::Attached(Taken { pods: true, current: true, said: Some(report) });
    let status = judged(&view(&[("tools", place)]));
    let ready = find(&status.conditions, "Ready").unwrap();
    assert_eq!(ready.status, "True");
    assert!(ready.message.contains("weather___a_very_long_name") && ready.message.contains("search"));
}
