//! References from one object to another, and to keys of Secrets. Types only: resolves nothing.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One key of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyReference {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the Secret's data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// One key of a ConfigMap in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyReference {
    /// The ConfigMap's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the ConfigMap's data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A bundle of certificate authorities, PEM, in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaReference {
    /// ConfigMap or Secret.
    pub kind: CaKind,
    /// The object's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key that holds the bundle, such as ca.crt.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Where a bundle of certificate authorities is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CaKind {
    /// In a ConfigMap.
    ConfigMap,
    /// In a Secret.
    Secret,
}

/// An MCPGateway, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayReference {
    /// The MCPGateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; empty is the object's own.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub namespace: String,
}
