//! A gateway and targets to compile, written as their users write them. Holds no test.

use mooring_crds::{MCPGateway, MCPTarget};
use serde::de::DeserializeOwned;

fn read<K: DeserializeOwned>(yaml: &str) -> K {
    serde_saphyr::from_str(yaml).unwrap()
}

/// The gateway `tools` in `ai`.
pub(crate) fn gateway(spec: &str) -> MCPGateway {
    read(&format!(
        "{{apiVersion: mooring.dev/v1alpha1, kind: MCPGateway, \
         metadata: {{name: tools, namespace: ai, uid: g-1}}, spec: {spec}}}"
    ))
}

/// A target; `created` is a minute of one hour, so that a lower one is older.
pub(crate) fn target(namespace: &str, name: &str, created: u32, spec: &str) -> MCPTarget {
    read(&format!(
        "{{apiVersion: mooring.dev/v1alpha1, kind: MCPTarget, metadata: {{name: {name}, namespace: {namespace}, \
         uid: uid-{namespace}-{name}, creationTimestamp: '2026-01-01T00:{created:02}:00Z'}}, spec: {spec}}}"
    ))
}

/// The spec of a gateway for anybody.
pub(crate) const ANONYMOUS: &str = "{auth: {anonymous: {}}}";
/// The server of a target that is a Service.
pub(crate) const SERVICE: &str = "server: {type: Service, service: {name: weather, port: 8000}}";
