//! What a kind must say about itself to be reconciled. Only `observe` reads, and only from memory.

use std::fmt::Debug;

use k8s_openapi::{
    NamespaceResourceScope,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{Resource, core::DynamicObject};
use mooring_crds::compile::Refusal;
use serde::{Serialize, de::DeserializeOwned};

use crate::{child::Child, child::ChildKind, context::Settings, stores::Stores};

/// Everything that must exist for one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// In the order in which they are applied.
    pub children: Vec<Child>,
    /// What must be removed from the report of the daemons.
    pub prune: Option<Prune>,
}

/// Keys of a report whose pods are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// The ConfigMap.
    pub config_map: String,
    /// The version that was looked at: a later one may hold another pod's word.
    pub version: String,
    /// The keys.
    pub keys: Vec<String>,
}

/// The children as the API server has them: proof that the apply ran.
#[derive(Debug, Clone, Default)]
pub struct Applied(pub Vec<(ChildKind, DynamicObject)>);

impl Applied {
    /// One of them.
    pub fn get(&self, kind: ChildKind, name: &str) -> Option<&DynamicObject> {
        self.0
            .iter()
            .find(|(of, object)| *of == kind && object.metadata.name.as_deref() == Some(name))
            .map(|(_, object)| object)
    }
}

/// What came of plan and apply.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Everything that must exist does.
    Applied(Applied),
    /// The user must change something first; the last good children stay.
    Refused(Refusal),
    /// The API server, or an object in the way, stood between; it is tried again.
    Failed(Refusal),
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum NoPlan {
    /// The user must change something.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// One of our own values is not JSON: a fault of this program.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl From<Refusal> for NoPlan {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A kind of ours: three steps, and where its status is.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// As Kubernetes calls it; a label of metrics.
    const KIND: &'static str;
    /// What was read of the world around one object.
    type World: Send + Sync;
    /// The object's status.
    type Status: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// Reads what plan and judge need.
    fn observe(&self, stores: &Stores, settings: &Settings) -> Self::World;
    /// What must exist.
    fn plan(&self, world: &Self::World, settings: &Settings) -> Result<Plan, NoPlan>;
    /// The status. `old` is the last one, whose transition times stay where statuses do.
    fn judge(
        &self,
        world: &Self::World,
        outcome: &Outcome,
        old: Option<&Self::Status>,
        now: &Time,
    ) -> Self::Status;
    /// The object's last status.
    fn status(&self) -> Option<&Self::Status>;
    /// The conditions of a status, whose transitions become events.
    fn conditions(status: &Self::Status) -> &[Condition];
}
