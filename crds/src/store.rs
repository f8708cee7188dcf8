//! Where session records live. Types only; which engines this version has is in `served.rs`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{CaReference, SecretReference};

/// Where a gateway's session records live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.configMap) || self.type == 'ConfigMap'")
    .message("configMap goes with type ConfigMap; write type: ConfigMap or remove configMap"))]
#[x_kube(validation = Rule::new("has(self.redis) == (self.type == 'Redis')")
    .message("redis goes with type Redis and is needed there; write type: Redis with redis.address, or remove redis"))]
#[x_kube(validation = Rule::new("!has(self.sidecar) || self.type == 'Sidecar'")
    .message("sidecar goes with type Sidecar; write type: Sidecar or remove sidecar"))]
pub struct Store {
    /// ConfigMap, Redis, Sidecar or Memory. Memory keeps sessions in the one pod: they end with it.
    #[serde(rename = "type")]
    pub kind: StoreType,
    /// With type ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapStore>,
    /// With type Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStore>,
    /// With type Sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<SidecarStore>,
}

/// The engines of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StoreType {
    /// ConfigMaps made by the operator.
    ConfigMap,
    /// A Redis or Valkey of yours.
    Redis,
    /// A Valkey beside the daemon, on the pod's volume.
    Sidecar,
    /// The daemon's memory; one replica only.
    Memory,
}

/// Where the records of an agent's sessions live; the journal is on the slot's volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.configMap) || self.type == 'ConfigMap'")
    .message("configMap goes with type ConfigMap; write type: ConfigMap or remove configMap"))]
#[x_kube(validation = Rule::new("has(self.redis) == (self.type == 'Redis')")
    .message("redis goes with type Redis and is needed there; write type: Redis with redis.address, or remove redis"))]
pub struct AgentStore {
    /// ConfigMap, Redis or Memory.
    #[serde(rename = "type")]
    pub kind: AgentStoreType,
    /// With type ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapStore>,
    /// With type Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStore>,
}

/// The engines of an agent's front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentStoreType {
    /// ConfigMaps made by the operator.
    ConfigMap,
    /// A Redis or Valkey of yours.
    Redis,
    /// The daemon's memory; one replica only.
    Memory,
}

/// Records in ConfigMaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.shards) == has(oldSelf.shards) && (!has(self.shards) || self.shards == oldSelf.shards)")
    .message("shards cannot change, since session ids name their shard; write the old number, or make a new gateway"))]
pub struct ConfigMapStore {
    /// The number of ConfigMaps, of at most 256 KiB each. It cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub shards: Option<i32>,
}

/// Records in a Redis or Valkey of yours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisStore {
    /// redis://HOST:PORT, or rediss://HOST:PORT for TLS.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^rediss?://[^/?#@ ]+$')")
        .message("address is no redis:// or rediss:// URL of a host and port; write it like rediss://valkey:6379, the database in database and the password in the Secret of credentialsRef"))]
    pub address: String,
    /// The database's number. 0 where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1024))]
    pub database: Option<i32>,
    /// A Secret with the keys username (may be absent) and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<SecretReference>,
    /// Whom to trust with rediss://; the public authorities where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<CaReference>,
}

/// Records in a Valkey beside the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SidecarStore {
    /// The image; the operator's own choice where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// The volume's size, such as 1Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Quantity>,
    /// The volume's StorageClass; the cluster's default where it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
}
