//! The volume an agent works in. Types and rules only: makes no claim.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The volume an agent works in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
    .message("storageClassName cannot change, since volumes exist; write the old one, or make a new agent"))]
#[x_kube(validation = Rule::new("!has(oldSelf.storage) || (has(self.storage) && quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) >= 0)")
    .message("storage only grows, since volumes exist; write the old size or a larger one"))]
pub struct Workspace {
    /// The volume's size, such as 10Gi; it only grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Quantity>,
    /// The volume's StorageClass; the cluster's default where it is not written. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
    /// Directories in which sessions may work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 1024)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub roots: Vec<String>,
    /// HOME of the agent's processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub home: Option<String>,
    /// What runs once in a new workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
}

/// What runs once in a new workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// The command and its arguments, in the agent's image.
    #[schemars(length(min = 1, max = 64), inner(length(max = 4096)))]
    pub command: Vec<String>,
}
