//! Golden plans: manifests in, children out. `UPDATE_GOLDEN=1 cargo test` rewrites them.

use std::path::PathBuf;

use mooring_crds::{
    MCPTarget,
    compile::compile,
    names,
    secrets::{Found, resolve},
};
use serde_json::Value;

use super::*;
use crate::{
    daemons::Daemons,
    gateway::{
        credentials::{Credentials, Last},
        observe::Configured,
    },
    rollout::Rollout,
};

fn settings() -> Settings {
    Settings {
        daemon_image: "example.org/moored:1.2.3".to_owned(),
        daemon_image_pull_policy: "IfNotPresent".to_owned(),
        platform: mooring_crds::Platform::default(),
    }
}

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/gateway/testdata").join(name)
}

fn manifests(name: &str) -> (MCPGateway, Vec<MCPTarget>) {
    let text = std::fs::read_to_string(testdata(&format!("{name}.yaml"))).unwrap();
    let mut documents = serde_saphyr::from_multiple::<Value>(&text).unwrap().into_iter();
    let gateway = serde_json::from_value(documents.next().unwrap()).unwrap();
    (gateway, documents.map(|target| serde_json::from_value(target).unwrap()).collect())
}

fn view(gateway: &MCPGateway, targets: &[MCPTarget]) -> View {
    let name = gateway.name_any();
    View {
        names: names::gateway(&name),
        instance: names::instance(&name),
        configured: compile(gateway, targets, &settings().platform).map(Configured::from),
        daemons: Daemons::default(),
        service_account: Some("33333333-3333-3333-3333-333333333333".to_owned()),
        rollout: Rollout::default(),
        credentials: Credentials::default(),
    }
}

fn planned(name: &str) -> Plan {
    let (gateway, targets) = manifests(name);
    let mut view = view(&gateway, &targets);
    let sources = &view.configured.as_ref().unwrap().compiled.secrets;
    // Each reference leads to a value that says which it is.
    let values = sources.iter().map(|source| (source.key.clone(), source.name.clone().into_bytes()));
    view.credentials.values = values.collect();
    plan(&gateway, &view, &settings()).unwrap()
}

fn golden(name: &str) {
    let file = testdata(&format!("{name}.plan.yaml"));
    let documents: Vec<String> = planned(name)
        .children
        .iter()
        .map(|child| serde_saphyr::to_string(&serde_json::to_value(&child.object).unwrap()).unwrap())
        .collect();
    let got = format!("---\n{}", documents.join("---\n"));
    #[expect(clippy::disallowed_methods, reason = "the one switch that rewrites golden files")]
    if std::env::var("UPDATE_GOLDEN").is_ok() {
        std::fs::write(&file, &got).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        got == wanted,
        "{} is not what the plan says; UPDATE_GOLDEN=1 rewrites it:\n{got}",
        file.display()
    );
}

#[test]
fn the_shortest_gateway_has_its_golden_plan() {
    golden("shortest");
}

#[test]
fn every_field_that_shapes_a_child_has_its_golden_plan() {
    golden("full");
}

#[test]
fn a_change_of_targets_changes_the_configuration_and_nothing_else() {
    let (gateway, targets) = manifests("shortest");
    let with = plan(&gateway, &view(&gateway, &targets), &settings()).unwrap();
    let without = plan(&gateway, &view(&gateway, &[]), &settings()).unwrap();
    let changed: Vec<_> = with
        .children
        .iter()
        .zip(&without.children)
        .filter(|(with, without)| with != without)
        .map(|(with, _)| with.name().to_owned())
        .collect();
    assert_eq!(changed, ["tools-mcp-config"]);
}

/// Case 051: a value is in the one Secret, and a changed one changes nothing but that.
#[test]
fn a_value_is_in_the_credentials_alone_and_a_rotation_rolls_no_pod() {
    let (gateway, targets) = manifests("full");
    let with = |value: &str| {
        let mut view = view(&gateway, &targets);
        let key = "22222222-2222-2222-2222-222222222222.header.x-api-key".to_owned();
        view.credentials.values = BTreeMap::from([(key, value.as_bytes().to_vec())]);
        plan(&gateway, &view, &settings()).unwrap().children
    };
    let (one, two) = (with("hunter2"), with("hunter3"));
    let changed: Vec<_> =
        one.iter().zip(&two).filter(|(one, two)| one != two).map(|(one, _)| one.name().to_owned()).collect();
    assert_eq!(changed, ["tools-mcp-credentials"]);
    let shown = |child: &&Child| serde_json::to_string(&child.object).unwrap().contains("hunter2");
    assert!(!one.iter().any(|child| shown(&child)), "in a Secret it is encoded, elsewhere it is not");
    assert!(one.iter().any(|child| serde_json::to_string(&child.object).unwrap().contains("aHVudGVyMg==")));
}

/// Case 051.
#[test]
fn what_is_deleted_stays_as_it_last_was_for_sessions_that_work() {
    let (gateway, targets) = manifests("full");
    let sources = compile(&gateway, &targets, &settings().platform).unwrap().secrets;
    let last: k8s_openapi::api::core::v1::Secret = serde_json::from_value(serde_json::json!({
        "data": {
            "22222222-2222-2222-2222-222222222222.header.x-api-key": "aHVudGVyMg==",
            "of-a-target-that-is-gone": "eA==",
        },
    }))
    .unwrap();
    let resolved = resolve(&sources, |_, _| Found::NoObject);
    let credentials = Credentials::new(&sources, resolved, Last::Written(&last));
    let kept: Vec<_> = credentials.values.values().collect();
    assert_eq!(kept, [b"hunter2"]);
    // Both of the targets, and both halves of the certificate.
    assert_eq!(credentials.unresolved.len(), 4);
}

#[test]
fn while_a_value_is_unread_and_the_last_one_unknown_the_secret_stays_as_it_is() {
    let (gateway, targets) = manifests("full");
    let mut view = view(&gateway, &targets);
    let sources = view.configured.as_ref().unwrap().compiled.secrets.clone();
    let kinds = |view: &View| -> Vec<_> {
        plan(&gateway, view, &settings()).unwrap().children.iter().map(|child| child.kind).collect()
    };
    let all = kinds(&view);
    let unread = || resolve(&sources, |_, _| Found::Unread);
    view.credentials = Credentials::new(&sources, unread(), Last::Unlisted);
    let rest: Vec<_> = all.iter().copied().filter(|kind| *kind != ChildKind::Secret).collect();
    assert!(rest.len() < all.len() && kinds(&view) == rest, "{:?}", kinds(&view));
    // Once it is known what the Secret has, it is planned with that.
    let last = k8s_openapi::api::core::v1::Secret::default();
    view.credentials = Credentials::new(&sources, unread(), Last::Written(&last));
    assert_eq!(kinds(&view), all);
}

#[test]
fn labels_of_the_manifest_cannot_move_pods_out_of_the_selector() {
    let (mut gateway, _) = manifests("full");
    // As an operator of another version might have accepted it.
    let view = view(&gateway, &[]);
    let template = gateway.spec.pod_template.as_mut().unwrap();
    template.labels.insert("app.kubernetes.io/instance".to_owned(), "mine".to_owned());
    let plan = plan(&gateway, &view, &settings()).unwrap();
    let deployment = &plan.children.last().unwrap().object.data;
    let labels = deployment.pointer("/spec/template/metadata/labels").unwrap();
    let selector = deployment.pointer("/spec/selector/matchLabels").unwrap().as_object().unwrap();
    assert!(selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
}

#[test]
fn no_child_crosses_the_namespace_or_outlives_its_owner() {
    for child in planned("full").children {
        assert_eq!(child.object.metadata.namespace.as_deref(), Some("team"), "{}", child.kind);
        let owners = child.object.metadata.owner_references.unwrap();
        assert!(owners.iter().all(|owner| owner.controller == Some(true) && owner.name == "tools"));
    }
}

#[test]
fn pods_are_planned_once_the_service_account_is_known_and_anew_for_another() {
    let (gateway, targets) = manifests("shortest");
    let mut view = view(&gateway, &targets);
    let known = plan(&gateway, &view, &settings()).unwrap().children;
    view.service_account = Some("another".to_owned());
    let another = plan(&gateway, &view, &settings()).unwrap().children;
    view.service_account = None;
    let unknown = plan(&gateway, &view, &settings()).unwrap().children;

    let (deployment, rest) = known.split_last().unwrap();
    assert_eq!(deployment.kind, ChildKind::Deployment);
    assert_eq!(unknown, rest, "everything but the pods is planned at once");
    let (changed, same) = another.split_last().unwrap();
    assert_eq!(same, rest);
    let template = |child: &Child| child.object.data.pointer("/spec/template").cloned().unwrap();
    assert_ne!(template(changed), template(deployment), "a new template replaces the pods");
}

#[test]
fn a_refused_gateway_has_no_plan() {
    let (mut gateway, _) = manifests("shortest");
    gateway.spec.session.timeout_seconds = 1;
    let view = view(&gateway, &[]);
    assert!(matches!(plan(&gateway, &view, &settings()), Err(NoPlan::Refused(_))));
}

#[test]
fn reports_of_gone_pods_are_removed_only_once_every_pod_is_known() {
    let (gateway, targets) = manifests("shortest");
    let mut view = view(&gateway, &targets);
    view.daemons.live.insert("tools-mcp-b".to_owned(), mooring_crds::config::Report::default());
    view.daemons.dead = vec!["tools-mcp-a".to_owned()];
    view.daemons.version = Some("9".to_owned());
    let settled =
        Rollout { wanted: 1, replicas: 1, updated: 1, available: 1, current: true, ..Rollout::default() };
    let prune = |view: &View| plan(&gateway, view, &settings()).unwrap().prune;

    view.rollout = Rollout { replicas: 2, ..settled };
    assert_eq!(prune(&view), None, "a pod may have reported whose endpoint is not there yet");
    view.rollout = settled;
    let keys = vec!["tools-mcp-a".to_owned()];
    let expected = Prune { config_map: "tools-mcp-report".to_owned(), version: "9".to_owned(), keys };
    assert_eq!(prune(&view), Some(expected));
    view.daemons.dead.clear();
    assert_eq!(prune(&view), None, "nothing to remove is nothing to write");
}
