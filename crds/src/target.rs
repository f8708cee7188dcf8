//! MCPTarget: one MCP server behind gateways. Types, defaults and rules of the schema only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::credentials::Credentials;
use crate::pod_template::PodTemplate;
use crate::propagation::PropagatedHeaders;
use crate::rule;
use crate::server::Server;
use crate::timeouts::Timeouts;

/// One MCP server, by URL, by Service or as a container, attached to one or more MCPGateways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "MCPTarget",
    plural = "mcptargets",
    shortname = "mcpt",
    category = "mooring",
    namespaced,
    status = "MCPTargetStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Server","type":"string","jsonPath":".spec.server.type","description":"Where the server runs"}"#,
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".spec.server['url','service','container']['address','name','image']","description":"URL, Service or image"}"#,
    printcolumn = r#"{"name":"Gateways","type":"string","jsonPath":".spec.gatewayRefs[*].name","description":"The gateway it refers to first"}"#,
    printcolumn = r#"{"name":"Tools","type":"integer","jsonPath":".status.gateways[0].tools","description":"Tools it offers"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[cfg_attr(test, kube(cel))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.podTemplate) || self.server.type == 'Container'")
    .message("podTemplate goes with server.type Container, since no other server runs in a pod of Mooring's; remove podTemplate"))]
#[x_kube(validation = Rule::new("self.protocol != 'SSE' || self.server.type != 'Container'")
    .message(rule::PROTOCOL_SSE))]
pub struct MCPTargetSpec {
    /// The gateways to attach to, 1 to 16.
    #[schemars(length(min = 1, max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub gateway_refs: Vec<TargetGatewayReference>,
    /// Where the MCP server is.
    pub server: Server,
    /// Auto, StreamableHTTP or SSE. SSE is the old transport with two endpoints. Default Auto.
    #[serde(default)]
    pub protocol: TargetProtocol,
    /// Catalog or PerSession. With PerSession lists come from the session's own session at this server.
    /// Default Catalog.
    #[serde(default)]
    pub listing: Listing,
    /// What the gateway authenticates with at this server; nothing where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Headers and query parameters handed on between client and server; none where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<PropagatedHeaders>,
    /// Which tools are offered; all where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolFilter>,
    /// How long the server may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Fail or Reinitialize: what a call gets whose session the server has lost. Fail answers 404, and a new
    /// initialize of the client recovers. Default Fail.
    #[serde(default)]
    pub on_session_loss: OnSessionLoss,
    /// What the server's pods get besides what the operator sets; with server.type Container only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// A gateway to attach to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetGatewayReference {
    /// The MCPGateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; empty is the target's own. The gateway must allow targets of other namespaces.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The target's alias at this gateway, unique there: the prefix of its tools. The target's name where it is not
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')")
        .message(rule::PREFIX))]
    pub prefix: Option<String>,
}

/// How to speak to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TargetProtocol {
    /// What the server answers to.
    #[default]
    Auto,
    /// Streamable HTTP.
    StreamableHTTP,
    /// The old transport with two endpoints.
    SSE,
}

/// Where lists come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Listing {
    /// What the gateway learnt for itself; the same for all.
    #[default]
    Catalog,
    /// The session's own session at the server.
    PerSession,
}

/// What a call gets whose session the server has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnSessionLoss {
    /// 404, naming the target.
    #[default]
    Fail,
    /// A new session at the server, once, and the call again if it was refused before it ran.
    Reinitialize,
}

/// Which of a server's tools are offered. Patterns are on the server's own names; * stands for any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFilter {
    /// Only these; all where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allow: Vec<String>,
    /// And none of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub deny: Vec<String>,
}

/// What the operator says of a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPTargetStatus {
    /// Of the target as a whole: Accepted, ResolvedRefs, Programmed, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// One entry for each gateway it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".into(), "name".into()]))]
    pub gateways: Vec<TargetGatewayStatus>,
}

/// What became of a target at one gateway.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetGatewayStatus {
    /// The gateway's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The gateway's namespace.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Accepted, ResolvedRefs, Programmed, Ready, at this gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The MCP version spoken with the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Tools the server offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<i32>,
}
