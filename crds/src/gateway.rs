//! MCPGateway: one MCP endpoint in front of many targets. Types, defaults and rules of the schema only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::auth::{GatewayAccessRule, GatewayAuth};
use crate::pod_template::PodTemplate;
use crate::rule;
use crate::scaling::Autoscaling;
use crate::serving::{Drain, Endpoint, Expose, Limits, Tls};
use crate::session::GatewaySession;
use crate::store::Store;

/// One MCP endpoint in front of many MCP servers (MCPTargets), and the sessions on it: each is owned by one caller
/// and ends after a set time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "MCPGateway",
    plural = "mcpgateways",
    shortname = "mcpgw",
    category = "mooring",
    namespaced,
    status = "MCPGatewayStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".status.address","description":"Where clients inside the cluster connect"}"#,
    printcolumn = r#"{"name":"Targets","type":"integer","jsonPath":".status.targets.ready","description":"Targets that answer"}"#,
    printcolumn = r#"{"name":"Attached","type":"integer","jsonPath":".status.targets.attached","priority":1,"description":"Targets that are configured"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[cfg_attr(test, kube(cel))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.autoscaling) || self.replicas == 1")
    .message("autoscaling decides the number of pods; remove replicas, or write replicas: 1"))]
#[x_kube(validation = Rule::new("self.session.mode != 'Stateless' || !(has(self.limits.streamsPerSession) || has(self.limits.requestsInFlightPerSession))")
    .message(rule::STATELESS_LIMITS))]
#[x_kube(validation = Rule::new("self.streaming != 'Disabled' || !has(self.limits.streamsPerSession)")
    .message(rule::UNSTREAMED_LIMITS))]
pub struct MCPGatewaySpec {
    /// The number of pods. Default 1; 0 stops serving.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Scale the pods by load; replicas must then be 1 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// How long sessions live.
    #[serde(default)]
    #[x_kube(validation = Rule::new("!has(self.idleTimeoutSeconds) || self.idleTimeoutSeconds <= self.timeoutSeconds")
        .message(rule::IDLE_TIMEOUT))]
    #[x_kube(validation = Rule::new("self.mode != 'Stateless' || !(has(self.idleTimeoutSeconds) || has(self.maxPerPrincipal) || has(self.endBefore))")
        .message(rule::STATELESS_SESSION))]
    pub session: GatewaySession,
    /// Enabled or Disabled. Disabled answers JSON only: GET is answered 405, and servers can ask clients nothing.
    /// Default Enabled.
    #[serde(default)]
    pub streaming: Streaming,
    /// Who may call. At least one of oidc, serviceAccount and anonymous.
    pub auth: GatewayAuth,
    /// What callers see and may call; everything where there is no rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub access: Vec<GatewayAccessRule>,
    /// Where session records live. Where it is not written they live in the memory of the one pod, and end with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// How tools are named to clients.
    #[serde(default)]
    pub tools: ToolNames,
    /// From where targets may attach.
    #[serde(default)]
    pub allowed_targets: AllowedTargets,
    /// The shutdown of a pod.
    #[serde(default)]
    pub drain: Drain,
    /// TLS on the endpoint itself; plain HTTP where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The names the endpoint answers to, besides the Service's and loopback.
    #[serde(default)]
    pub endpoint: Endpoint,
    /// How the endpoint is reached.
    #[serde(default)]
    pub expose: Expose,
    /// The bounds of what one pod takes on.
    #[serde(default)]
    pub limits: Limits,
    /// What the pods get besides what the operator sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

fn one() -> i32 {
    1
}

/// Whether answers may be streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Streaming {
    /// Server-sent events where the target streams or something must be told to the client.
    #[default]
    Enabled,
    /// JSON only.
    Disabled,
}

/// How targets' tools are named to clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolNames {
    /// Prefixed or Plain. Prefixed shows a target's tool as alias, separator, name. Plain shows the name alone; of
    /// equal names the older target's is shown, and a condition names the other. Default Prefixed.
    #[serde(default)]
    pub naming: ToolNaming,
    /// Between alias and name. Default ___ (three underscores).
    #[serde(default = "separator")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = Rule::new("self.matches('^[._-]+$')")
        .message(rule::SEPARATOR))]
    pub separator: String,
}

impl Default for ToolNames {
    fn default() -> Self {
        Self { naming: ToolNaming::default(), separator: separator() }
    }
}

fn separator() -> String {
    "___".to_owned()
}

/// How a target's tools are named to clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ToolNaming {
    /// As alias, separator, name.
    #[default]
    Prefixed,
    /// As the name alone.
    Plain,
}

/// From where targets may attach.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedTargets {
    /// The namespaces.
    pub namespaces: AllowedNamespaces,
}

/// Namespaces whose targets may attach.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.selector) == (self.from == 'Selector')")
    .message("selector goes with from: Selector and is needed there; write from: Selector with a selector, or remove selector"))]
pub struct AllowedNamespaces {
    /// Same, All or Selector. Same is the gateway's own namespace. Default Same.
    #[serde(default)]
    pub from: NamespacesFrom,
    /// Labels of the namespaces, with from: Selector. Needs an operator that watches the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Which namespaces' targets may attach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamespacesFrom {
    /// The gateway's own.
    #[default]
    Same,
    /// Every one.
    All,
    /// Those whose labels match.
    Selector,
}

/// What the operator says of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPGatewayStatus {
    /// Accepted, ResolvedRefs, Programmed, Ready, and the warnings SessionsDurable and PrincipalsBound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The URL clients inside the cluster use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many targets are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetCounts>,
    /// Pods that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The pods' label selector, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// How many targets a gateway has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetCounts {
    /// Targets in the gateway's configuration.
    pub attached: i32,
    /// Those of them that answer.
    pub ready: i32,
}
