//! Pure: Secrets and ConfigMaps beside the manifests that `moored serve` runs from: what references are looked up in.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use mooring_crds::{
    manifest::Unreadable,
    secrets::{Found, SecretSource, SourceKind},
};
use serde_json::Value;

/// The values of every Secret and ConfigMap, by object and by key. `Debug` shows how many.
#[derive(Default)]
pub(super) struct Values(BTreeMap<(SourceKind, String, String), BTreeMap<String, Vec<u8>>>);

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Values").field(&self.0.len()).finish()
    }
}

impl Values {
    /// What of an object's kind and version it is, where values are in it.
    pub(super) fn kind(api_version: &str, kind: &str) -> Option<SourceKind> {
        match (api_version, kind) {
            ("v1", "Secret") => Some(SourceKind::Secret),
            ("v1", "ConfigMap") => Some(SourceKind::ConfigMap),
            _ => None,
        }
    }

    /// Adds an object that has this name and namespace.
    ///
    /// # Errors
    /// [`Unreadable`], without any of its values in the text.
    pub(super) fn add(
        &mut self,
        kind: SourceKind,
        (namespace, name): (&str, &str),
        document: &Value,
    ) -> Result<(), Unreadable> {
        // The parser's own words may repeat what it could not read.
        let unreadable = |_| Unreadable::Malformed(format!("its data is none that a {kind} can have"));
        let bytes = |data: Option<BTreeMap<String, ByteString>>| {
            data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0))
        };
        let texts = |data: Option<BTreeMap<String, String>>| {
            data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()))
        };
        let values = match kind {
            SourceKind::Secret => {
                let secret: Secret = serde_json::from_value(document.clone()).map_err(unreadable)?;
                // What is written as text counts, as an API server has it.
                bytes(secret.data).chain(texts(secret.string_data)).collect()
            }
            SourceKind::ConfigMap => {
                let map: ConfigMap = serde_json::from_value(document.clone()).map_err(unreadable)?;
                bytes(map.binary_data).chain(texts(map.data)).collect()
            }
        };
        self.0.insert((kind, namespace.to_owned(), name.to_owned()), values);
        Ok(())
    }

    /// Looks one entry of a source up.
    pub(super) fn find(&self, source: &SecretSource, entry: &str) -> Found {
        match self.0.get(&(source.kind, source.namespace.clone(), source.name.clone())) {
            None => Found::NoObject,
            Some(values) => values.get(entry).map_or(Found::NoEntry, |value| Found::Value(value.clone())),
        }
    }
}
