//! A daemon's identity and rights: its own two ConfigMaps and its Secret, by name; and, where a target is asked with one,
//! tokens of its own account. Pure.

use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::ResourceExt;
use mooring_crds::config::CredentialsConfig;

use super::Parts;

pub(super) fn service_account(parts: &Parts<'_>) -> ServiceAccount {
    ServiceAccount { metadata: parts.meta(&parts.names.workload), ..ServiceAccount::default() }
}

pub(super) fn role(parts: &Parts<'_>) -> Role {
    let rule = |resource: &str, name: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: Some(vec![name.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        non_resource_urls: None,
    };
    let names = parts.names;
    let mut rules = vec![
        rule("configmaps", &names.config, &["get", "list", "watch"]),
        rule("configmaps", &names.report, &["get", "list", "watch", "patch"]),
        rule("secrets", &names.credentials, &["get", "list", "watch"]),
    ];
    let mut targets = parts.config.gateways.iter().flat_map(|gateway| &gateway.targets);
    if targets.any(|target| matches!(target.credentials, Some(CredentialsConfig::ServiceAccountToken { .. })))
    {
        rules.push(rule("serviceaccounts/token", &names.workload, &["create"]));
    }
    Role { metadata: parts.meta(&names.workload), rules: Some(rules) }
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
