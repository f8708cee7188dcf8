//! What runs in an agent's slot: the container, its files, and the model endpoints it is given. Types and rules only.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, ResourceRequirements};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::credentials::SecretHeader;
use crate::reference::{ConfigMapKeyReference, SecretKeyReference};

/// The agent's container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentContainer {
    /// The image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// The command that speaks ACP on stdio.
    #[schemars(length(min = 1, max = 64), inner(length(max = 4096)))]
    pub command: Vec<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment variables, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub env: Vec<EnvVar>,
    /// Sources of environment variables, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub env_from: Vec<EnvFromSource>,
    /// Files put into the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["path".into()]))]
    pub files: Vec<AgentFile>,
    /// Requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// A file in the agent's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMapKeyRef) != has(self.secretKeyRef)")
    .message("a file has one source; write configMapKeyRef or secretKeyRef, not both"))]
pub struct AgentFile {
    /// Its absolute path.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^/[^ ]+$') && !self.contains('/../')")
        .message("path is not absolute; write it like /etc/agent/settings.json"))]
    pub path: String,
    /// The content, from a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<ConfigMapKeyReference>,
    /// The content, from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyReference>,
}

/// A model endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// A name for this entry, unique in the list.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The endpoint: https, or http to a name inside the cluster.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[^/?#@ ]+([/?][^#@ ]*)?$')")
        .message("url is no absolute http or https URL without user and fragment; write it like https://api.example.org"))]
    pub url: String,
    /// The environment variable that gives the agent the address to use.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z_][A-Za-z0-9_]*$')")
        .message("env is no name of an environment variable; write it like MODEL_BASE_URL"))]
    pub env: String,
    /// Headers the daemon adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub headers: Vec<SecretHeader>,
}
