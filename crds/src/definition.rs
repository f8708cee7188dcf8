//! The three CustomResourceDefinitions, as the API server gets them: what the types say, made fit for an API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{ACPAgent, MCPGateway, MCPTarget};

/// Fields whose types are Kubernetes' own. What lies below them is described there (`kubectl explain pod.spec`); said
/// again here it would be most of the definition, too much for the annotation of a client-side apply.
const CORE: [&str; 10] = [
    "affinity",
    "env",
    "envFrom",
    "imagePullSecrets",
    "metrics",
    "resources",
    "selector",
    "storage",
    "tolerations",
    "topologySpreadConstraints",
];

/// The definitions of MCPGateway, MCPTarget and ACPAgent.
pub fn definitions() -> [CustomResourceDefinition; 3] {
    let [gateway, target, mut agent] =
        [MCPGateway::crd(), MCPTarget::crd(), ACPAgent::crd()].map(|mut definition| {
            each_root(&mut definition, described_as_its_spec);
            each_schema(&mut definition, &mut absent_if_null);
            each_schema(&mut definition, &mut unwrapped);
            each_schema(&mut definition, &mut core_described_elsewhere);
            definition
        });
    each_schema(&mut agent, &mut without_default);
    [gateway, target, agent]
}

/// A field that is written as null is absent, rather than present without a value: `anonymous:` with `{}` forgotten is
/// told what to write. kube marks every optional field nullable.
fn absent_if_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
}

/// What is not served yet has no default. Keys of lists keep theirs, since a key must be there.
fn without_default(schema: &mut JSONSchemaProps) {
    if schema.default.as_ref().is_some_and(|default| default.0 != "") {
        schema.default = None;
    }
}

/// The kind is described by the doc comment of its spec's type; kube writes a placeholder.
fn described_as_its_spec(root: &mut JSONSchemaProps) {
    for (name, property) in root.properties.iter_mut().flatten() {
        match name.as_str() {
            "spec" => root.description = property.description.replace("What is wanted.".to_owned()),
            "status" => property.description = Some("What the operator says of it.".to_owned()),
            _ => {}
        }
    }
}

/// Line ends of a doc comment are no line ends of its text.
fn unwrapped(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<_> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}

fn core_described_elsewhere(schema: &mut JSONSchemaProps) {
    for (name, property) in schema.properties.iter_mut().flatten() {
        if CORE.contains(&name.as_str()) {
            let own = property.description.take();
            walk(property, &mut |nested| nested.description = None);
            property.description = own;
        }
    }
}

fn each_root(definition: &mut CustomResourceDefinition, change: impl Fn(&mut JSONSchemaProps)) {
    let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|validation| validation.open_api_v3_schema.as_mut()).for_each(change);
}

fn each_schema(definition: &mut CustomResourceDefinition, change: &mut impl FnMut(&mut JSONSchemaProps)) {
    let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|validation| validation.open_api_v3_schema.as_mut()) {
        walk(schema, change);
    }
}

fn walk(schema: &mut JSONSchemaProps, change: &mut impl FnMut(&mut JSONSchemaProps)) {
    change(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        walk(property, change);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => walk(item, change),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|item| walk(item, change)),
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => walk(value, change),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}
