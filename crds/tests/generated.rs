//! The YAML beside the types, and the chart's copies of it, are what the types say. `UPDATE_GOLDEN=1` rewrites both.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const HEADER: &str = "# Generated from crds/src by `UPDATE_GOLDEN=1 cargo test -p mooring-crds --test generated`; do not edit.\n";

fn rewrites() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rendered(definition: &CustomResourceDefinition) -> String {
    let yaml = serde_saphyr::to_string(definition).unwrap();
    format!("{HEADER}{yaml}")
}

fn assert_current(folder: &str) {
    for definition in mooring_crds::definitions() {
        let path = repository().join(folder).join(format!("{}.yaml", definition.spec.names.plural));
        let wanted = rendered(&definition);
        if rewrites() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &wanted).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "{} is not what the types say; run with UPDATE_GOLDEN=1", path.display());
    }
}

#[test]
fn the_yaml_beside_the_types_is_what_they_say() {
    assert_current("crds");
}

#[test]
fn the_charts_copies_are_what_the_types_say() {
    assert_current("charts/mooring/files/crds");
}

#[test]
fn the_yaml_reads_back_as_the_definition() {
    for definition in mooring_crds::definitions() {
        let read: CustomResourceDefinition = serde_saphyr::from_str(&rendered(&definition)).unwrap();
        assert_eq!(read, definition);
    }
}
