//! A daemon's identity and rights: its own two ConfigMaps, by name, and nothing else. Pure.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::ResourceExt;

use super::Parts;

pub(super) fn service_account(parts: &Parts<'_>) -> ServiceAccount {
    ServiceAccount { metadata: parts.meta(&parts.names.workload), ..ServiceAccount::default() }
}

pub(super) fn role(parts: &Parts<'_>) -> Role {
    let rule = |name: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".to_owned()]),
        resource_names: Some(vec![name.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        non_resource_urls: None,
    };
    Role {
        metadata: parts.meta(&parts.names.workload),
        rules: Some(vec![
            rule(&parts.names.config, &["get", "list", "watch"]),
            rule(&parts.names.report, &["get", "list", "watch", "patch"]),
        ]),
    }
}

pub(super) fn role_binding(parts: &Parts<'_>) -> RoleBinding {
    RoleBinding {
        metadata: parts.meta(&parts.names.workload),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "Role".to_owned(),
            name: parts.names.workload.clone(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: parts.names.workload.clone(),
            namespace: parts.gateway.namespace(),
            api_group: None,
        }]),
    }
}
