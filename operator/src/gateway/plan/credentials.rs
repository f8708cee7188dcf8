//! The one Secret with the values that the daemons' configuration names by key. Pure.

use k8s_openapi::{ByteString, api::core::v1::Secret};

use super::Parts;

pub(super) fn credentials(parts: &Parts<'_>) -> Secret {
    let values = parts.values.iter().map(|(key, value)| (key.clone(), ByteString(value.clone())));
    Secret {
        metadata: parts.meta(&parts.names.credentials),
        // An empty map is not written: an apply would own the empty field.
        data: (!parts.values.is_empty()).then(|| values.collect()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
