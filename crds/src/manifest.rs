//! Pure: manifests that no API server has seen. What an API server would prune or refuse for its shape is an error here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a manifest is no object of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Fields that the kind does not have.
    #[error("unknown field {}; remove it or correct its spelling", .0.join(", "))]
    UnknownFields(Vec<String>),
    /// A value of another type than the field's, or a required field that is missing.
    #[error("{0}")]
    Malformed(String),
}

/// The object that `given` is. Refuses unknown fields; null is as good as absent.
pub fn read<K: CustomResourceExt + DeserializeOwned>(given: &Value) -> Result<K, Unreadable> {
    let given = without_nulls(given);
    let unknown = unknown_fields(&given, &K::crd());
    if !unknown.is_empty() {
        return Err(Unreadable::UnknownFields(unknown));
    }
    serde_json::from_value(given).map_err(|error| Unreadable::Malformed(error.to_string()))
}

/// The paths of the fields in `given` that `definition` does not have, such as `spec.session.timeout`.
pub fn unknown_fields(given: &Value, definition: &CustomResourceDefinition) -> Vec<String> {
    let schema = definition
        .spec
        .versions
        .iter()
        .filter_map(|version| version.schema.as_ref())
        .find_map(|validation| validation.open_api_v3_schema.as_ref());
    let mut unknown = Vec::new();
    for (field, value) in given.as_object().into_iter().flatten() {
        let property = schema.and_then(|schema| schema.properties.as_ref()?.get(field));
        match (field.as_str(), property) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", _) => metadata(value, &mut unknown),
            (_, Some(property)) => walk(value, property, field, &mut unknown),
            (_, None) => unknown.push(field.clone()),
        }
    }
    unknown
}

/// A definition does not spell out metadata; what its type loses is unknown.
fn metadata(given: &Value, unknown: &mut Vec<String>) {
    let Ok(Ok(kept)) = serde_json::from_value::<ObjectMeta>(given.clone()).map(serde_json::to_value) else {
        return;
    };
    let lost = given.as_object().into_iter().flatten().filter(|(field, _)| kept.get(field).is_none());
    unknown.extend(lost.map(|(field, _)| format!("metadata.{field}")));
}

fn walk(given: &Value, schema: &JSONSchemaProps, path: &str, unknown: &mut Vec<String>) {
    match given {
        Value::Object(fields) => {
            for (field, value) in fields {
                let path = format!("{path}.{field}");
                let property = schema.properties.as_ref().and_then(|properties| properties.get(field));
                match (property, &schema.additional_properties) {
                    (Some(property), _) => walk(value, property, &path, unknown),
                    (None, Some(JSONSchemaPropsOrBool::Schema(any))) => walk(value, any, &path, unknown),
                    (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
                    (None, Some(JSONSchemaPropsOrBool::Bool(false)) | None) => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_nulls(given: &Value) -> Value {
    match given {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(field, value)| (field.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => given.clone(),
    }
}
