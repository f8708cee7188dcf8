//! What an agent may reach, and what a client may bring. Types and rules only.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::GatewayReference;

/// An MCP gateway injected into every session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectedServer {
    /// The name the agent sees, unique in the list.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The gateway.
    pub gateway_ref: GatewayReference,
}

/// Which MCP servers a client may bring; one that is denied is refused by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientServers {
    /// Allow or Deny: commands run in the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdio: Option<Policy>,
    /// Allow or Deny: URLs reached from the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Policy>,
}

/// Whether something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Policy {
    /// It is.
    Allow,
    /// It is refused.
    Deny,
}

/// Whether the agent is told of something the client can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClientFeature {
    /// It is not.
    Hidden,
    /// It is, where the client announces it.
    Offered,
}

/// Where an agent may connect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Restricted or Open. Restricted is DNS, gateways and public addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Further networks, with egress: Restricted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["cidr".into()]))]
    pub allow: Vec<AllowedNetwork>,
}

/// How far an agent may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Egress {
    /// DNS, gateways, public addresses.
    Restricted,
    /// Anywhere.
    Open,
}

/// A network an agent may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNetwork {
    /// The network, such as 10.20.0.0/16.
    #[schemars(length(min = 1, max = 43))]
    #[x_kube(validation = Rule::new("isCIDR(self)")
        .message("cidr is no network; write it like 10.20.0.0/16"))]
    pub cidr: String,
    /// TCP ports; all where nothing is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(range(min = 1, max = 65535)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ports: Vec<i32>,
}
