//! What manifests refer to: which Secrets and ConfigMaps of anybody's are kept in memory, and of all others nothing but
//! that they are there.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt, runtime::reflector::Store};
use mooring_crds::{
    MCPGateway, MCPTarget,
    compile::{sources_of_gateway, sources_of_target},
    secrets::{Found, SecretSource, SourceKind},
};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    key::Key,
    target::references,
    triggers::{Change, Wakes},
};

/// Marks, in memory only, an object whose values were left out when it was seen.
const LEFT_OUT: &str = "mooring.dev/left-out";

/// An object that values are read from.
pub type Reference = (SourceKind, Key);

/// The objects that manifests refer to, shared by all who watch.
#[derive(Debug, Clone)]
pub struct Wanted(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    set: RwLock<BTreeSet<Reference>>,
    changes: watch::Sender<u64>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self(Arc::new(Inner { set: RwLock::default(), changes: watch::Sender::new(0) }))
    }
}

impl Wanted {
    /// Takes what is referred to now.
    pub fn replace(&self, wanted: BTreeSet<Reference>) {
        let mut set = self.0.set.write();
        if *set != wanted {
            *set = wanted;
            drop(set);
            self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Whether anything refers to the object.
    pub fn contains(&self, reference: &Reference) -> bool {
        self.0.set.read().contains(reference)
    }

    /// Follows what is referred to.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// What these objects refer to.
pub fn wanted(gateways: &[MCPGateway], targets: &[MCPTarget]) -> BTreeSet<Reference> {
    let of_gateways = gateways.iter().flat_map(sources_of_gateway);
    of_gateways.chain(targets.iter().flat_map(sources_of_target)).map(|source| reference(&source)).collect()
}

fn reference(source: &SecretSource) -> Reference {
    (source.kind, Key::new(&source.namespace, &source.name))
}

/// An object with values, as Kubernetes has it.
pub trait Valued: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static {
    /// What it is.
    const KIND: SourceKind;
    /// One of its values.
    fn value(&self, entry: &str) -> Option<Vec<u8>>;
    /// Forgets its values.
    fn clear(&mut self);
    /// Whether both have the same values.
    fn same(&self, other: &Self) -> bool;
}

impl Valued for Secret {
    const KIND: SourceKind = SourceKind::Secret;

    fn value(&self, entry: &str) -> Option<Vec<u8>> {
        self.data.as_ref()?.get(entry).map(|ByteString(value)| value.clone())
    }

    fn clear(&mut self) {
        (self.data, self.string_data) = (None, None);
    }

    fn same(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl Valued for ConfigMap {
    const KIND: SourceKind = SourceKind::ConfigMap;

    fn value(&self, entry: &str) -> Option<Vec<u8>> {
        let text = self.data.as_ref().and_then(|data| data.get(entry)).map(|text| text.clone().into_bytes());
        text.or_else(|| self.binary_data.as_ref()?.get(entry).map(|ByteString(value)| value.clone()))
    }

    fn clear(&mut self) {
        (self.data, self.binary_data) = (None, None);
    }

    fn same(&self, other: &Self) -> bool {
        self.data == other.data && self.binary_data == other.binary_data
    }
}

/// The objects of one kind and scope.
#[derive(Debug, Clone)]
pub struct Objects<K: Valued> {
    /// Those that are referred to with their values, the others without.
    pub store: Store<K>,
    /// Cancelled when they have been seen whole.
    pub seen: CancellationToken,
}

impl<K: Valued> Objects<K> {
    /// Looks one value up.
    pub fn find(&self, key: &Key, entry: &str) -> Found {
        if !self.seen.is_cancelled() {
            return Found::Unread;
        }
        let at = kube::runtime::reflector::ObjectRef::<K>::new(&key.name).within(&key.namespace);
        match self.store.get(&at) {
            None => Found::NoObject,
            Some(object) if is_left_out(object.meta()) => Found::Unread,
            Some(object) => object.value(entry).map_or(Found::NoEntry, Found::Value),
        }
    }
}

/// Whether an object's values were left out when it was seen.
pub fn is_left_out(meta: &ObjectMeta) -> bool {
    meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LEFT_OUT))
}

/// Leaves out of `object` what nobody needs: of one that is not `wanted` everything but that it is there.
pub fn trim<K: Valued>(object: &mut K, wanted: &Wanted) {
    // `kubectl apply` leaves a copy of all values in an annotation.
    let meta = object.meta_mut();
    (meta.annotations, meta.labels, meta.owner_references) = (None, None, None);
    if !wanted.contains(&(K::KIND, Key::of(object))) {
        object.annotations_mut().insert(LEFT_OUT.to_owned(), String::new());
        object.clear();
    }
}

/// An object with values changed: it concerns who refers to it, where the values are others now.
pub fn concerns<K: Valued>(change: &Change<'_, K>, gateways: &[MCPGateway], targets: &[MCPTarget]) -> Wakes {
    if let (Some(old), Some(new)) = (change.old, change.new)
        && old.same(new)
        && is_left_out(old.meta()) == is_left_out(new.meta())
    {
        return Wakes::default();
    }
    let changed: BTreeSet<Reference> =
        change.old.into_iter().chain(change.new).map(|object| (K::KIND, Key::of(object))).collect();
    let refers =
        |sources: Vec<SecretSource>| sources.iter().any(|source| changed.contains(&reference(source)));
    let mut wakes = Wakes::default();
    for target in targets.iter().filter(|target| refers(sources_of_target(target))) {
        wakes.gateways.extend(references(target));
        wakes.targets.insert(Key::of(target));
    }
    wakes.gateways.extend(gateways.iter().filter(|gateway| refers(sources_of_gateway(gateway))).map(Key::of));
    wakes
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
