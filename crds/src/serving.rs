//! How an endpoint is served: drain, TLS, names, exposure, limits. Types and their defaults only.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::SecretReference;
use crate::rule;

/// The shutdown of a pod. Both together also set its grace period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Drain {
    /// Seconds a pod goes on accepting after it is told to end, so that no new request is still sent its way.
    /// Default 5.
    #[schemars(range(min = 0))]
    pub delay_seconds: i32,
    /// Seconds that requests in flight then get to finish. Default 30.
    #[schemars(range(min = 1))]
    pub deadline_seconds: i32,
}

impl Default for Drain {
    fn default() -> Self {
        Self { delay_seconds: 5, deadline_seconds: 30 }
    }
}

/// TLS on the endpoint itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// A Secret of type kubernetes.io/tls; a changed one is loaded without a restart.
    pub certificate_ref: SecretReference,
}

/// The names the endpoint answers to. The Service's names and loopback are always allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The URL clients use from outside, such as https://tools.example.org/mcp. Its host and origin are allowed.
    #[serde(rename = "publicURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[A-Za-z0-9.:\\\\[\\\\]-]+(/[^?#@ ]*)?$')")
        .message(rule::PUBLIC_URL))]
    pub public_url: Option<String>,
    /// Origins of web pages that may call, as browsers write them: https://app.example.org, without a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(o, o.matches('^[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9.:\\\\[\\\\]-]+$'))")
        .message(rule::ALLOWED_ORIGINS))]
    pub allowed_origins: Vec<String>,
    /// Further host names clients may use, without scheme and port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(h, h.matches('^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$'))")
        .message(rule::ALLOWED_HOSTS))]
    pub allowed_hosts: Vec<String>,
    /// Networks, as CIDR, of proxies whose Forwarded and X-Forwarded-For, -Host and -Proto headers are believed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 43)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(n, n.matches('^[0-9A-Fa-f.:]+/[0-9]{1,3}$'))")
        .message(rule::TRUSTED_PROXIES))]
    pub trusted_proxies: Vec<String>,
}

/// How the endpoint is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expose {
    /// The Service's type: ClusterIP, NodePort or LoadBalancer. Default ClusterIP.
    #[serde(default)]
    pub service_type: ServiceType,
    /// An HTTPRoute of the Gateway API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_route: Option<HttpRoute>,
    /// An Ingress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// The Service's port. Default 80.
    #[serde(default = "http_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The endpoint's path. Default /mcp, of an agent /acp.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^/[A-Za-z0-9._~/-]*$')")
        .message(rule::EXPOSE_PATH))]
    pub path: String,
}

impl Default for Expose {
    fn default() -> Self {
        Self {
            service_type: ServiceType::default(),
            http_route: None,
            ingress: None,
            port: http_port(),
            path: default_path(),
        }
    }
}

fn http_port() -> i32 {
    80
}

fn default_path() -> String {
    "/mcp".to_owned()
}

/// The type of a Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// An address inside the cluster.
    #[default]
    ClusterIP,
    /// A port on every node besides.
    NodePort,
    /// A load balancer of the cloud besides.
    LoadBalancer,
}

/// An HTTPRoute to the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRoute {
    /// The Gateways (of the Gateway API) to attach to.
    #[schemars(length(min = 1, max = 16))]
    pub parent_refs: Vec<ParentReference>,
    /// Host names of the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub hostnames: Vec<String>,
}

/// A Gateway of the Gateway API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// The Gateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; the object's own where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// The listener's name; any where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

/// An Ingress to the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// The IngressClass; the cluster's default where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class_name: Option<String>,
    /// The host name.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// A Secret of type kubernetes.io/tls for the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_secret_ref: Option<SecretReference>,
}

/// The bounds of what one pod takes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// The largest request body in bytes; a larger one is answered 413. Default 4194304 (4 MiB).
    #[schemars(range(min = 1024, max = 268_435_456))]
    pub request_bytes: i32,
    /// Open event streams of one session; a GET for one more is answered 429, a POST in JSON. Default 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub streams_per_session: Option<i32>,
    /// Requests in flight of one session; one more is answered 429. Default 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_in_flight_per_session: Option<i32>,
    /// Requests in flight of one pod; one more is answered 503. Default 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_in_flight: Option<i32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 4_194_304,
            streams_per_session: None,
            requests_in_flight_per_session: None,
            requests_in_flight: None,
        }
    }
}
