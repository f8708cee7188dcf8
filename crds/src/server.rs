//! Where a target's MCP server is: a URL, a Service, or a container. Types and rules of the schema only.

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, ResourceRequirements};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{CaReference, SecretReference};
use crate::rule;

/// Where an MCP server is: type, and the member of that name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.url) == (self.type == 'URL')")
    .message(rule::SERVER_URL))]
#[x_kube(validation = Rule::new("has(self.service) == (self.type == 'Service')")
    .message(rule::SERVER_SERVICE))]
#[x_kube(validation = Rule::new("has(self.container) == (self.type == 'Container')")
    .message(rule::SERVER_CONTAINER))]
pub struct Server {
    /// URL, Service or Container.
    #[serde(rename = "type")]
    pub kind: ServerType,
    /// With type URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlServer>,
    /// With type Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceServer>,
    /// With type Container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerServer>,
}

/// Where an MCP server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServerType {
    /// At a URL.
    URL,
    /// Behind a Service of the target's own namespace.
    Service,
    /// In pods that the operator makes.
    Container,
}

/// A server at a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UrlServer {
    /// The endpoint: https, or http to a name inside the cluster, such as https://mcp.example.org/mcp.
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[^/?#@ ]+([/?][^#@ ]*)?$')")
        .message(rule::SERVER_ADDRESS))]
    pub address: String,
    /// Whom to trust; the public authorities where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<CaReference>,
    /// A Secret of type kubernetes.io/tls that the gateway shows to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate_ref: Option<SecretReference>,
}

/// A server behind a Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceServer {
    /// The Service's name, in the target's own namespace.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')")
        .message(rule::SERVICE_NAME))]
    pub name: String,
    /// The Service's port, by number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The endpoint's path. Default /mcp.
    #[serde(default = "mcp_path")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^/[^#@ ]*$')")
        .message(rule::SERVER_PATH))]
    pub path: String,
    /// HTTP or HTTPS. Default HTTP.
    #[serde(default)]
    pub scheme: Scheme,
    /// Whom to trust with HTTPS; the public authorities where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<CaReference>,
}

fn mcp_path() -> String {
    "/mcp".to_owned()
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Scheme {
    /// Plain HTTP.
    #[default]
    HTTP,
    /// HTTP over TLS.
    HTTPS,
}

/// A server in pods that the operator makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.port) == (has(self.transport) && self.transport == 'StreamableHTTP')")
    .message(rule::CONTAINER_PORT))]
#[x_kube(validation = Rule::new("!has(self.path) || (has(self.transport) && self.transport == 'StreamableHTTP')")
    .message(rule::CONTAINER_PATH))]
pub struct ContainerServer {
    /// The image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// The command; the image's entry point where it is not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
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
    /// Requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Stdio or StreamableHTTP: what the command speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<ContainerTransport>,
    /// The port it listens on, with transport StreamableHTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The endpoint's path, with transport StreamableHTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^/[^#@ ]*$')")
        .message(rule::SERVER_PATH))]
    pub path: Option<String>,
    /// PerSession or Shared: a process for each session, or one for all. PerSession is no security boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
}

/// What a container's command speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ContainerTransport {
    /// MCP on standard input and output.
    Stdio,
    /// MCP over HTTP on a port.
    StreamableHTTP,
}

/// Whether sessions share a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Isolation {
    /// A process, HOME and TMPDIR for each session.
    PerSession,
    /// One process for all sessions.
    Shared,
}
