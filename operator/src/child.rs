//! The objects that the operator makes: their kinds, what marks them as ours, and whose a found one is. Pure.

use std::fmt;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service, ServiceAccount},
        policy::v1::PodDisruptionBudget,
        rbac::v1::{Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::{ApiResource, DynamicObject};

/// The field manager of every write of ours.
pub const MANAGER: &str = "mooring-operator";

/// The label, and the selector, of everything that we made.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", MANAGER);

/// A kind of object that belongs to one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// The daemon's identity.
    ServiceAccount,
    /// What the daemon may do.
    Role,
    /// That its ServiceAccount may.
    RoleBinding,
    /// The values that its configuration names by key.
    Secret,
    /// The daemon's configuration, and its report.
    ConfigMap,
    /// The endpoint in the cluster.
    Service,
    /// How many pods a drain of nodes may take at once.
    PodDisruptionBudget,
    /// The pods.
    Deployment,
}

impl ChildKind {
    /// Every kind, in the order in which they are applied: what a pod needs comes before the pods.
    pub const ALL: [Self; 8] = [
        Self::ServiceAccount,
        Self::Role,
        Self::RoleBinding,
        Self::Secret,
        Self::ConfigMap,
        Self::Service,
        Self::PodDisruptionBudget,
        Self::Deployment,
    ];

    /// As Kubernetes calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Service => "Service",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Deployment => "Deployment",
        }
    }

    /// Its group, version and path.
    pub fn resource(self) -> ApiResource {
        match self {
            Self::ServiceAccount => ApiResource::erase::<ServiceAccount>(&()),
            Self::Role => ApiResource::erase::<Role>(&()),
            Self::RoleBinding => ApiResource::erase::<RoleBinding>(&()),
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::PodDisruptionBudget => ApiResource::erase::<PodDisruptionBudget>(&()),
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
        }
    }
}

impl fmt::Display for ChildKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One object that must exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: ChildKind,
    /// Every field that we decide, and no other.
    pub object: DynamicObject,
}

impl Child {
    /// The child that a typed object describes.
    pub fn new<K: serde::Serialize>(kind: ChildKind, object: &K) -> serde_json::Result<Self> {
        Ok(Self { kind, object: serde_json::from_value(serde_json::to_value(object)?)? })
    }

    /// Its name; children always have one.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Whose an object is that was found under a child's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// It is controlled by the object that wants the child.
    Ours,
    /// Nobody controls it, but we once made it: its owner reference was stripped, or its owner deleted without it.
    Stray,
    /// Something else controls it: what, in words.
    Foreign(String),
    /// Nobody controls it, and nothing on it says that we made it.
    Nobodys,
    /// Nobody controls it, and what was read does not say who made it.
    Untold,
}

/// Tells whose the object of `meta` is, where the owner's uid is `owner`.
///
/// `managers_known` says that `meta` still has its managed fields; the stores drop them.
pub fn whose(meta: &ObjectMeta, owner: &str, managers_known: bool) -> Whose {
    let controller =
        meta.owner_references.iter().flatten().find(|reference| reference.controller == Some(true));
    if let Some(controller) = controller {
        return if controller.uid == owner {
            Whose::Ours
        } else {
            Whose::Foreign(format!("{} {}", controller.kind, controller.name))
        };
    }
    let applied = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
    };
    if !managers_known {
        Whose::Untold
    } else if meta.managed_fields.iter().flatten().any(applied) {
        Whose::Stray
    } else {
        Whose::Nobodys
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};

    use super::*;

    fn owned_by(uid: &str) -> ObjectMeta {
        let reference = OwnerReference {
            api_version: "mooring.dev/v1alpha1".to_owned(),
            kind: "MCPGateway".to_owned(),
            name: "tools".to_owned(),
            uid: uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        ObjectMeta { owner_references: Some(vec![reference]), ..ObjectMeta::default() }
    }

    fn managed_by(manager: &str) -> ObjectMeta {
        let entry = ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some("Apply".to_owned()),
            ..ManagedFieldsEntry::default()
        };
        ObjectMeta { managed_fields: Some(vec![entry]), ..ObjectMeta::default() }
    }

    #[test]
    fn a_controller_reference_decides() {
        assert_eq!(whose(&owned_by("1"), "1", false), Whose::Ours);
        let of_another = Whose::Foreign("MCPGateway tools".to_owned());
        assert_eq!(whose(&owned_by("2"), "1", true), of_another);
    }

    #[test]
    fn without_a_controller_the_managed_fields_tell_a_stray_from_a_foreign_object() {
        assert_eq!(whose(&managed_by(MANAGER), "1", true), Whose::Stray);
        assert_eq!(whose(&managed_by("kubectl"), "1", true), Whose::Nobodys);
        assert_eq!(whose(&managed_by("kubectl"), "1", false), Whose::Untold);
    }
}
