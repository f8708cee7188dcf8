//! ACPAgent: one ACP agent, a front and slots. Types and rules of the schema only. This version serves none of it,
//! so nothing here has a default.

pub mod container;
pub mod reach;
pub mod workspace;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::container::{AgentContainer, Upstream};
use self::reach::{ClientFeature, ClientServers, InjectedServer, Network};
use self::workspace::Workspace;
use crate::auth::{AgentAccessRule, AgentAuth};
use crate::pod_template::PodTemplate;
use crate::scaling::Autoscaling;
use crate::serving::{Drain, Endpoint, Expose, Limits, Tls};
use crate::store::AgentStore;

/// One ACP agent: an image whose command speaks ACP on stdio, served remotely. Not served by this version yet: the
/// condition Accepted is False.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "ACPAgent",
    plural = "acpagents",
    shortname = "acpa",
    category = "mooring",
    namespaced,
    status = "ACPAgentStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".status.address","description":"Where clients inside the cluster connect"}"#,
    printcolumn = r#"{"name":"Free","type":"integer","jsonPath":".status.slots.free","description":"Slots that wait for their first session"}"#,
    printcolumn = r#"{"name":"Bound","type":"integer","jsonPath":".status.slots.bound","description":"Slots that belong to a caller and run"}"#,
    printcolumn = r#"{"name":"Asleep","type":"integer","jsonPath":".status.slots.asleep","description":"Slots of which only the volume is kept"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[cfg_attr(test, kube(cel))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.autoscaling) || !has(self.replicas) || self.replicas == 1")
    .message("autoscaling decides the number of pods; remove replicas, or write replicas: 1"))]
pub struct ACPAgentSpec {
    /// The number of pods of the front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Scale the front by load; replicas must then be 1 or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// How many slots there are. A slot is a pod with a volume that runs one caller's agent processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// The agent.
    pub container: AgentContainer,
    /// Model endpoints the agent reaches through the daemon, which adds the key: the agent never sees it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub upstreams: Vec<Upstream>,
    /// How long sessions, and the processes that serve them, live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSession>,
    /// Who may call. At least one of oidc, serviceAccount and anonymous.
    pub auth: AgentAuth,
    /// The volume the agent works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// MCP gateways injected into every session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub mcp_servers: Vec<InjectedServer>,
    /// Which MCP servers a client may bring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_mcp_servers: Option<ClientServers>,
    /// Hidden or Offered: whether the agent is told of the client's fs/* methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_filesystem: Option<ClientFeature>,
    /// Hidden or Offered: whether the agent is told of the client's terminal/* methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_terminal: Option<ClientFeature>,
    /// Where the agent may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Where session records live; the journal is on the slot's volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<AgentStore>,
    /// Which callers are served; all that authenticate where there is no rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub access: Vec<AgentAccessRule>,
    /// The shutdown of a pod of the front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// TLS on the endpoint itself; plain HTTP where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The names the endpoint answers to, besides the Service's and loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// How the endpoint is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<Expose>,
    /// The bounds of what one pod of the front takes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What the slots' pods get besides what the operator sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// What the front's pods get besides what the operator sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_pod_template: Option<PodTemplate>,
}

/// How many slots there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pool {
    /// Slots kept running that belong to nobody yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub free: Option<i32>,
    /// Slots in all, those asleep included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub max: Option<i32>,
}

/// How long an agent's sessions, and the processes that serve them, live.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSession {
    /// Seconds one activation of a session lasts, used or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i32>,
    /// Seconds without use after which a session's process ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub idle_timeout_seconds: Option<i32>,
    /// Seconds a process waits for a vanished client after its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub grace_seconds: Option<i32>,
    /// Seconds a session's record, journal and files are kept without use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub retention_seconds: Option<i32>,
    /// Processes in one slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_per_slot: Option<i32>,
    /// Sessions begun before this time end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_before: Option<Time>,
}

/// What the operator says of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ACPAgentStatus {
    /// Accepted, ResolvedRefs, Programmed, Ready, and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The URL clients inside the cluster use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many slots there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotCounts>,
    /// Pods of the front that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The front's label selector, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// How many slots an agent has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SlotCounts {
    /// Slots that wait for their first session.
    pub free: i32,
    /// Slots that belong to a caller and run.
    pub bound: i32,
    /// Slots of which only the volume is kept.
    pub asleep: i32,
}
