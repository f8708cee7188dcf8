//! The rules that every field of the three kinds keeps.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::path::{Path, PathBuf};

use mooring_crds::definitions;
use serde_json::Value;

/// Below these, fields are Kubernetes' own.
const CORE: [&str; 12] = [
    "affinity",
    "conditions",
    "env",
    "envFrom",
    "imagePullSecrets",
    "metrics",
    "resources",
    "selector",
    "storage",
    "tolerations",
    "topologySpreadConstraints",
    "metadata",
];

/// Calls `check` with the path and schema of every field that is ours.
fn each_field(check: impl Fn(&str, &Value)) {
    for definition in definitions() {
        let definition = serde_json::to_value(&definition).unwrap();
        let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str).unwrap();
        let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap();
        below(kind, schema, &check);
    }
}

fn below(path: &str, schema: &Value, check: &impl Fn(&str, &Value)) {
    check(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if CORE.contains(&name.as_str()) {
            check(&format!("{path}.{name}"), &serde_json::json!({"description": property["description"]}));
        } else {
            below(&format!("{path}.{name}"), property, check);
        }
    }
    if schema["items"].is_object() {
        below(&format!("{path}[]"), &schema["items"], check);
    }
}

#[test]
fn every_field_is_described_for_who_runs_kubectl_explain() {
    each_field(|path, schema| {
        let scalar_item = path.ends_with("[]") && schema["properties"].is_null();
        let description = schema["description"].as_str().unwrap_or_default();
        assert!(scalar_item || description.len() > 8, "{path} is not described");
        assert!(
            !description.contains('`') && !description.contains("Auto-generated"),
            "{path}: {description}"
        );
    });
}

#[test]
fn numbers_are_int32_and_modes_are_words() {
    each_field(|path, schema| match schema["type"].as_str() {
        Some("boolean" | "number") => panic!("{path} is a {}", schema["type"]),
        Some("integer") => assert_eq!(schema["format"], "int32", "{path}"),
        _ => {}
    });
}

#[test]
fn what_a_user_writes_is_bounded() {
    each_field(|path, schema| {
        if !path.contains(".spec") {
            return;
        }
        match schema["type"].as_str() {
            Some("string") if schema["enum"].is_null() && schema["format"].is_null() => {
                assert!(schema["maxLength"].is_u64(), "{path} has no maxLength");
            }
            Some("array") => assert!(schema["maxItems"].is_u64(), "{path} has no maxItems"),
            Some("integer") => {
                // A port number or a share of a list: the smallest sensible value is always known.
                assert!(schema["minimum"].is_number(), "{path} has no minimum");
            }
            _ => {}
        }
    });
}

#[test]
fn durations_say_their_unit() {
    each_field(|path, schema| {
        let field = path.rsplit('.').next().unwrap_or_default().to_lowercase();
        let is_duration =
            ["timeout", "delay", "deadline", "grace", "retention"].iter().any(|word| field.contains(word));
        if is_duration && schema["type"] == "integer" {
            assert!(field.ends_with("seconds"), "{path}");
        }
    });
}

#[test]
fn an_agent_has_no_defaults_but_those_of_keys() {
    each_field(|path, schema| {
        let default = &schema["default"];
        assert!(!path.starts_with("ACPAgent") || default.is_null() || default == "", "{path}: {default}");
    });
}

#[test]
fn nothing_is_nullable() {
    for definition in definitions() {
        assert!(!serde_json::to_string(&definition).unwrap().contains("nullable"));
    }
}

/// A client-side `kubectl apply` keeps the whole object in an annotation, and annotations hold 256 KiB.
#[test]
fn a_definition_fits_a_client_side_apply() {
    for definition in definitions() {
        let size = serde_json::to_vec(&definition).unwrap().len();
        assert!(size < 200 * 1024, "{}: {size}", definition.spec.names.kind);
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    files
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    for (path, text) in sources() {
        assert!(text.starts_with("//! "), "{} begins with no //! sentence", path.display());
        assert!(text.lines().count() <= 400, "{} is over 400 lines", path.display());
    }
}

#[test]
fn the_crate_is_pure() {
    for (path, text) in sources() {
        for impure in [
            "async ",
            ".await",
            "SystemTime",
            "Instant::",
            "std::fs",
            "std::env",
            "std::process",
            "tokio",
            "kube::Client",
        ] {
            assert!(!text.contains(impure), "{} has {impure}", path.display());
        }
    }
}
