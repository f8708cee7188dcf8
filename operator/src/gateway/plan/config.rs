//! The configuration that daemons read, and the report that they write. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use mooring_crds::config::CONFIG_KEY;

use super::Parts;

pub(super) fn configuration(parts: &Parts<'_>) -> serde_json::Result<ConfigMap> {
    let data = BTreeMap::from([(CONFIG_KEY.to_owned(), serde_json::to_string(parts.config)?)]);
    Ok(ConfigMap { metadata: parts.meta(&parts.names.config), data: Some(data), ..ConfigMap::default() })
}

/// Empty: its data belongs to the daemons, one key a pod.
pub(super) fn report(parts: &Parts<'_>) -> ConfigMap {
    ConfigMap { metadata: parts.meta(&parts.names.report), ..ConfigMap::default() }
}
