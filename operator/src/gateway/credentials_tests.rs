//! What of the values of many targets reaches the one Secret.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use mooring_crds::secrets::{Found, SecretSource, SourceKind, resolve};

use super::*;

fn source(key: &str) -> SecretSource {
    SecretSource {
        key: key.to_owned(),
        target: Some(key.to_owned()),
        kind: SourceKind::Secret,
        namespace: "team".to_owned(),
        name: format!("of-{key}"),
        entries: vec!["token".to_owned()],
        field: "spec.credentials.headers",
    }
}

/// Credentials of sources with values of these sizes, oldest first.
fn sized(sizes: &[(&str, usize)], last: Last<'_>) -> Credentials {
    let sources: Vec<_> = sizes.iter().map(|(key, _)| source(key)).collect();
    let size = |source: &SecretSource| sizes.iter().find(|(key, _)| *key == source.key).unwrap().1;
    let resolved = resolve(&sources, |source, _| Found::Value(vec![b'x'; size(source)]));
    Credentials::new(&sources, resolved, last)
}

fn said(credentials: &Credentials) -> Vec<String> {
    credentials.unresolved.iter().map(ToString::to_string).collect()
}

#[test]
fn a_value_over_128_kib_is_left_out_alone_and_said() {
    let credentials = sized(&[("a", 128 * 1024), ("b", 128 * 1024 + 1), ("c", 1)], Last::Absent);
    assert_eq!(credentials.values.keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(
        said(&credentials),
        ["Secret of-b has a value over 128 KiB; write a smaller one, or correct spec.credentials.headers"]
    );
}

#[test]
fn a_value_that_grew_too_large_stays_as_it_last_was() {
    let data = BTreeMap::from([("a".to_owned(), ByteString(b"small".to_vec()))]);
    let last = Secret { data: Some(data), ..Secret::default() };
    let credentials = sized(&[("a", 128 * 1024 + 1)], Last::Written(&last));
    assert_eq!(credentials.values["a"], b"small");
    assert_eq!(credentials.unresolved.len(), 1);
}

#[test]
fn over_768_kib_the_values_of_the_youngest_target_are_left_out_and_the_secret_can_be_written() {
    let sizes = ["z", "y", "x", "w", "v", "u", "t"].map(|key| (key, 120 * 1024));
    let credentials = sized(&sizes, Last::Absent);
    assert!(credentials.values.values().map(Vec::len).sum::<usize>() < 768 * 1024);
    assert_eq!(credentials.values.keys().collect::<Vec<_>>(), ["u", "v", "w", "x", "y", "z"]);
    assert_eq!(credentials.unresolved[0].source.key, "t");
    let [one] = said(&credentials).try_into().unwrap();
    assert!(one.contains("768 KiB") && one.contains("name another gateway"), "{one}");
}

#[test]
fn what_is_not_to_be_had_is_partial_only_where_the_secret_may_have_it() {
    let sources = [source("a")];
    let partial = |found: &Found, last| {
        let resolved = resolve(&sources, |_, _| found.clone());
        Credentials::new(&sources, resolved, last).partial
    };
    let secret = Secret::default();
    for (found, written, absent, unlisted) in [
        (Found::Value(b"x".to_vec()), false, false, false),
        (Found::NoObject, false, false, true),
        (Found::NoEntry, false, false, true),
        (Found::Unread, false, true, true),
    ] {
        let all = [Last::Written(&secret), Last::Absent, Last::Unlisted].map(|last| partial(&found, last));
        assert_eq!(all, [written, absent, unlisted], "{found:?}");
    }
}
