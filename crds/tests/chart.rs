//! What the chart says by itself is what the crate says without it.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::path::Path;

use mooring_crds::Platform;
use serde_json::Value;

fn read(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/mooring").join(file);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_charts_limits_are_the_platforms() {
    let values = read("values.yaml");
    let limits = &values["limits"]["sessionTimeoutSeconds"];
    let platform = Platform::default().session_timeout_seconds;
    assert_eq!(limits["minimum"], *platform.start());
    assert_eq!(limits["maximum"], *platform.end());
}

#[test]
fn the_chart_is_of_the_crates_version() {
    let chart = read("Chart.yaml");
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&env!("CARGO_PKG_VERSION").into(), &env!("CARGO_PKG_VERSION").into())
    );
}

#[test]
fn every_value_is_one_that_the_schema_lists() {
    let values = read("values.yaml");
    let schema = read("values.schema.json");
    for name in values.as_object().unwrap().keys() {
        assert!(schema["properties"][name].is_object(), "{name} is not in values.schema.json");
    }
}
