//! Pure: what the schemas bound, of manifests that no API server has checked. Read out of the definitions themselves, so
//! that a bound of a new field holds here without being written twice.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Refusal;
use super::accept::invalid;
use crate::{MCPGatewaySpec, MCPTargetSpec, definitions};

/// Made once: a definition is slow to make, and every target of every gateway is held to one.
static DEFINITIONS: LazyLock<[CustomResourceDefinition; 3]> = LazyLock::new(definitions);

/// Whether every number, text and list of the gateway is within its bounds.
pub(super) fn gateway(spec: &MCPGatewaySpec) -> Result<(), Refusal> {
    let [gateways, _, _] = &*DEFINITIONS;
    within(spec, gateways)
}

/// Whether every number, text and list of the target is within its bounds.
pub(super) fn target(spec: &MCPTargetSpec) -> Result<(), Refusal> {
    let [_, targets, _] = &*DEFINITIONS;
    within(spec, targets)
}

fn within(spec: &impl Serialize, definition: &CustomResourceDefinition) -> Result<(), Refusal> {
    let mut versions = definition.spec.versions.iter().filter_map(|version| version.schema.as_ref());
    let schema = versions
        .find_map(|validation| validation.open_api_v3_schema.as_ref()?.properties.as_ref()?.get("spec"));
    let Some(schema) = schema else { return Ok(()) };
    let spec = serde_json::to_value(spec).map_err(|error| invalid(format!("spec: {error}")))?;
    walk(&spec, schema, "spec").map_err(invalid)
}

fn walk(given: &Value, schema: &JSONSchemaProps, path: &str) -> Result<(), String> {
    match given {
        Value::Object(fields) => fields.iter().try_for_each(|(field, value)| {
            let property = schema.properties.as_ref().and_then(|properties| properties.get(field));
            let schema = property.or(match &schema.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(any)) => Some(any),
                Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
            });
            schema.map_or(Ok(()), |schema| walk(value, schema, &format!("{path}.{field}")))
        }),
        Value::Array(items) => {
            count(items.len(), schema, path)?;
            distinct(items, schema, path)?;
            let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return Ok(()) };
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| walk(item, schema, &format!("{path}[{index}]")))
        }
        Value::Number(number) => number.as_f64().map_or(Ok(()), |number| size(number, schema, path)),
        Value::String(text) => length(text, schema, path),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}

fn size(number: f64, schema: &JSONSchemaProps, path: &str) -> Result<(), String> {
    let below = schema.minimum.filter(|least| number < *least);
    let above = schema.maximum.filter(|most| number > *most);
    match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) if below.is_some() || above.is_some() => {
            Err(format!("{path} is outside {least} to {most}; write a number in between"))
        }
        (Some(least), None) if below.is_some() => {
            Err(format!("{path} is below {least}; write {least} or more"))
        }
        (None, Some(most)) if above.is_some() => Err(format!("{path} is above {most}; write {most} or less")),
        _ => Ok(()),
    }
}

fn length(text: &str, schema: &JSONSchemaProps, path: &str) -> Result<(), String> {
    // The API server counts characters too.
    let characters = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(least) = schema.min_length.filter(|least| characters < *least) {
        return Err(format!("{path} has fewer than {least} characters; write at least {least}"));
    }
    schema
        .max_length
        .filter(|most| characters > *most)
        .map_or(Ok(()), |most| Err(format!("{path} has more than {most} characters; write at most {most}")))
}

fn count(entries: usize, schema: &JSONSchemaProps, path: &str) -> Result<(), String> {
    let entries = i64::try_from(entries).unwrap_or(i64::MAX);
    if let Some(least) = schema.min_items.filter(|least| entries < *least) {
        return Err(format!("{path} has fewer than {least} entries; write at least {least}"));
    }
    schema
        .max_items
        .filter(|most| entries > *most)
        .map_or(Ok(()), |most| Err(format!("{path} has more than {most} entries; write at most {most}")))
}

/// A set has each entry once, a map one entry for each key.
fn distinct(items: &[Value], schema: &JSONSchemaProps, path: &str) -> Result<(), String> {
    let keys = match schema.x_kubernetes_list_type.as_deref() {
        Some("set") => None,
        Some("map") => schema.x_kubernetes_list_map_keys.as_deref(),
        _ => return Ok(()),
    };
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        let key = match (keys, item) {
            (Some(keys), Value::Object(fields)) => key_of(fields, keys),
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        if seen.contains(&key) {
            return Err(format!("{path} has {key} twice; remove one"));
        }
        seen.push(key);
    }
    Ok(())
}

/// The entry's key, as it is told to whoever wrote it.
fn key_of(fields: &Map<String, Value>, keys: &[String]) -> String {
    let of = |key: &String| {
        let value = fields.get(key).map_or_else(String::new, |value| {
            value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"))
        });
        format!("{key} {value}")
    };
    keys.iter().map(of).collect::<Vec<_>>().join(" and ")
}
