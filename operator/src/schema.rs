//! Whether the installed CustomResourceDefinitions know every field that this version does. Says so once; an old
//! schema prunes what users write, silently.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::{Api, Client};
use mooring_crds::definitions;
use serde_json::Value;
use tokio::time::timeout;

/// What one read may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Compares each installed definition with ours and logs what it lacks. A refusal to read them is no fault.
pub async fn check(client: &Client) {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for expected in definitions() {
        let name = expected.metadata.name.clone().unwrap_or_default();
        match timeout(PATIENCE, api.get_opt(&name)).await {
            Ok(Ok(Some(installed))) => compare(&name, &expected, &installed),
            Ok(Ok(None)) => {
                tracing::error!(
                    crd = name,
                    "the CustomResourceDefinition is not installed: install the CRDs of this version"
                );
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                tracing::info!(
                    crd = name,
                    "not allowed to read the CustomResourceDefinition: its fields are not checked"
                );
            }
            Ok(Err(error)) => {
                tracing::warn!(crd = name, %error, "the CustomResourceDefinition could not be read: its fields are not checked");
            }
            Err(_) => tracing::warn!(crd = name, "the CustomResourceDefinition could not be read in time"),
        }
    }
}

fn compare(name: &str, expected: &CustomResourceDefinition, installed: &CustomResourceDefinition) {
    let lacking = lacking(expected, installed);
    if lacking.is_empty() {
        tracing::debug!(crd = name, "the installed schema has every field of this version");
    } else {
        tracing::error!(
            crd = name,
            fields = lacking.join(", "),
            "the installed CustomResourceDefinition is older than this operator and drops these fields: install the CRDs of this version"
        );
    }
}

/// The paths of fields that `expected` has and `installed` drops; not those below one that is missing whole.
pub fn lacking(expected: &CustomResourceDefinition, installed: &CustomResourceDefinition) -> Vec<String> {
    let mut paths = Vec::new();
    for version in &expected.spec.versions {
        let same = installed.spec.versions.iter().find(|installed| installed.name == version.name);
        let Some(same) = same else {
            paths.push(format!("(version {})", version.name));
            continue;
        };
        let schema = |version: &CustomResourceDefinitionVersion| {
            version.schema.as_ref().and_then(|schema| serde_json::to_value(&schema.open_api_v3_schema).ok())
        };
        if let (Some(expected), Some(installed)) = (schema(version), schema(same)) {
            fields(&expected, &installed, "", &mut paths);
        }
    }
    paths
}

fn fields(expected: &Value, installed: &Value, path: &str, paths: &mut Vec<String>) {
    if installed.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return;
    }
    if let Some(properties) = expected.get("properties").and_then(Value::as_object) {
        for (name, expected) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match installed.get("properties").and_then(|properties| properties.get(name)) {
                Some(installed) => fields(expected, installed, &path, paths),
                None => paths.push(path),
            }
        }
    }
    for below in ["items", "additionalProperties"] {
        if let (Some(expected), Some(installed)) = (expected.get(below), installed.get(below)) {
            fields(expected, installed, &format!("{path}[]"), paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current() -> CustomResourceDefinition {
        let [_, target, _] = definitions();
        target
    }

    fn without(pointer: &str, field: &str) -> CustomResourceDefinition {
        let mut json = serde_json::to_value(current()).unwrap();
        let at = format!("/spec/versions/0/schema/openAPIV3Schema{pointer}");
        json.pointer_mut(&at).unwrap().as_object_mut().unwrap().remove(field).unwrap();
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_schema_of_this_version_lacks_nothing() {
        assert!(lacking(&current(), &current()).is_empty());
    }

    #[test]
    fn a_field_that_an_older_schema_drops_is_named_by_its_path() {
        let older = without("/properties/spec/properties/timeouts/properties", "requestSeconds");
        assert_eq!(lacking(&current(), &older), ["spec.timeouts.requestSeconds"]);
    }

    #[test]
    fn of_a_field_that_is_missing_whole_only_its_root_is_named() {
        let older = without("/properties/spec/properties", "timeouts");
        assert_eq!(lacking(&current(), &older), ["spec.timeouts"]);
    }

    #[test]
    fn fields_of_list_items_are_compared_too() {
        let older = without("/properties/spec/properties/gatewayRefs/items/properties", "prefix");
        assert_eq!(lacking(&current(), &older), ["spec.gatewayRefs[].prefix"]);
    }

    #[test]
    fn a_version_that_is_missing_is_named() {
        let mut older = current();
        older.spec.versions.clear();
        assert_eq!(lacking(&current(), &older), ["(version v1alpha1)"]);
    }
}
