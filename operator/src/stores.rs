//! What the watches have seen, to read from memory: one store for each kind and scope. Cannot ask the API server.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    discovery::v1::EndpointSlice,
};
use kube::{
    Resource,
    core::{DeserializeGuard, DynamicObject},
    runtime::reflector::{ObjectRef, Store},
};
use mooring_crds::{
    ACPAgent, MCPGateway, MCPTarget,
    secrets::{Found, SecretSource, SourceKind},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    child::ChildKind,
    key::Key,
    references::{Objects, Wanted},
};

/// An object of ours, or, where its text does not fit the type, its metadata and why.
pub type Guarded<K> = DeserializeGuard<K>;

/// The stores of one watched namespace, or of the whole cluster.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The namespace; none is the cluster.
    pub namespace: Option<String>,
    /// Every gateway.
    pub gateways: Store<Guarded<MCPGateway>>,
    /// Every target.
    pub targets: Store<Guarded<MCPTarget>>,
    /// Every agent.
    pub agents: Store<Guarded<ACPAgent>>,
    /// Children by kind: those with our label, and every Service.
    pub children: Vec<(ChildKind, Store<DynamicObject>)>,
    /// The endpoints of every Service: targets name anybody's.
    pub slices: Store<EndpointSlice>,
    /// Anybody's Secrets; of those that nothing refers to, only that they are there.
    pub secrets: Objects<Secret>,
    /// Anybody's ConfigMaps, likewise.
    pub config_maps: Objects<ConfigMap>,
    /// Which of these have been seen whole.
    pub seen: Seen,
}

/// Which stores have been seen whole: a token each, cancelled then. (A store's own wait wakes one waiter only.)
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Gateways and targets, by kind.
    pub own: Vec<(&'static str, CancellationToken)>,
    /// Everything else, by kind.
    pub rest: Vec<(&'static str, CancellationToken)>,
}

/// The stores of every scope.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    /// In no order that matters; they do not overlap.
    pub scopes: Vec<Scope>,
    /// What manifests refer to.
    pub wanted: Wanted,
}

/// How long a kind waits for the stores that it can do without: children that are not in them are asked of the API
/// server, and objects of another scope wake whom they concern once they are there.
const GRACE: Duration = Duration::from_secs(20);

impl Stores {
    /// Waits until a scope's own gateways and targets have been seen whole, and, for a while, everything else.
    ///
    /// A right that is missing on one kind of child, or in one scope, must not stop everything; the log names it,
    /// and so does the status of the objects that need it.
    pub async fn ready(&self, scope: &Scope) {
        for (_, seen) in &scope.seen.own {
            seen.cancelled().await;
        }
        let rest = async {
            for (_, _, seen) in self.seen() {
                seen.cancelled().await;
            }
        };
        if timeout(GRACE, rest).await.is_err() {
            tracing::warn!(
                scope = named(scope),
                unlisted = self.unlisted().join(", "),
                "some stores have not been listed yet: going on without"
            );
        }
    }

    /// What has not been seen whole yet, in words.
    fn unlisted(&self) -> Vec<String> {
        let unlisted = self.seen().filter(|(_, _, seen)| !seen.is_cancelled());
        unlisted.map(|(scope, kind, _)| format!("{kind} of {}", named(scope))).collect()
    }

    fn seen(&self) -> impl Iterator<Item = (&Scope, &'static str, &CancellationToken)> {
        self.scopes.iter().flat_map(|scope| {
            let all = scope.seen.own.iter().chain(&scope.seen.rest);
            all.map(move |(kind, seen)| (scope, *kind, seen))
        })
    }

    /// The scope that a namespace belongs to; none where it is not watched.
    pub fn scope(&self, namespace: &str) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.namespace.as_deref().is_none_or(|own| own == namespace))
    }

    /// Whether a namespace is watched.
    pub fn watches(&self, namespace: &str) -> bool {
        self.scope(namespace).is_some()
    }

    /// One gateway, where it exists and can be decoded.
    pub fn gateway(&self, key: &Key) -> Option<MCPGateway> {
        get(&self.scope(&key.namespace)?.gateways, key)
    }

    /// Every gateway that can be decoded.
    pub fn gateways(&self) -> Vec<MCPGateway> {
        self.scopes.iter().flat_map(|scope| all(&scope.gateways, |_| true)).collect()
    }

    /// Every target that can be decoded and that `wanted` picks.
    pub fn targets(&self, wanted: impl Fn(&MCPTarget) -> bool) -> Vec<MCPTarget> {
        self.scopes.iter().flat_map(|scope| all(&scope.targets, &wanted)).collect()
    }

    /// One child, or any Service.
    pub fn child(&self, kind: ChildKind, key: &Key) -> Option<Arc<DynamicObject>> {
        let scope = self.scope(&key.namespace)?;
        let (_, store) = scope.children.iter().find(|(of, _)| *of == kind)?;
        store.get(&ObjectRef::new_with(&key.name, kind.resource()).within(&key.namespace))
    }

    /// Whether everything of a child's kind has been seen whole in its namespace.
    pub fn listed(&self, kind: ChildKind, namespace: &str) -> bool {
        self.scope(namespace).is_some_and(|scope| {
            scope.seen.rest.iter().all(|(of, seen)| *of != kind.as_str() || seen.is_cancelled())
        })
    }

    /// One value of a Secret or ConfigMap that a manifest refers to.
    pub fn value(&self, source: &SecretSource, entry: &str) -> Found {
        let Some(scope) = self.scope(&source.namespace) else { return Found::NoObject };
        let key = Key::new(&source.namespace, &source.name);
        match source.kind {
            SourceKind::Secret => scope.secrets.find(&key, entry),
            SourceKind::ConfigMap => scope.config_maps.find(&key, entry),
        }
    }

    /// The endpoints of one Service.
    pub fn slices(&self, service: &Key) -> Vec<Arc<EndpointSlice>> {
        let Some(scope) = self.scope(&service.namespace) else { return Vec::new() };
        scope.slices.state_filter(|slice| service_of(slice).as_ref() == Some(service))
    }
}

fn named(scope: &Scope) -> &str {
    scope.namespace.as_deref().unwrap_or("the cluster")
}

/// The Service that an EndpointSlice belongs to.
pub fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let name = slice.metadata.labels.as_ref()?.get("kubernetes.io/service-name")?;
    Some(Key::new(slice.metadata.namespace.clone()?, name))
}

fn get<K>(store: &Store<Guarded<K>>, key: &Key) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    store.get(&ObjectRef::new(&key.name).within(&key.namespace))?.0.as_ref().ok().cloned()
}

fn all<K>(store: &Store<Guarded<K>>, wanted: impl Fn(&K) -> bool) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let fits = |object: &Arc<Guarded<K>>| object.0.as_ref().ok().filter(|object| wanted(object)).cloned();
    store.state().iter().filter_map(fits).collect()
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store::Writer;

    use super::*;

    /// An empty scope of which nothing has been seen.
    fn scope(namespace: &str) -> Scope {
        Scope {
            namespace: Some(namespace.to_owned()),
            gateways: Writer::default().as_reader(),
            targets: Writer::default().as_reader(),
            agents: Writer::default().as_reader(),
            children: Vec::new(),
            slices: Writer::default().as_reader(),
            secrets: Objects { store: Writer::default().as_reader(), seen: CancellationToken::new() },
            config_maps: Objects { store: Writer::default().as_reader(), seen: CancellationToken::new() },
            seen: Seen {
                own: vec![("MCPGateway", CancellationToken::new())],
                rest: vec![("Service", CancellationToken::new())],
            },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_scope_that_is_never_listed_stops_itself_and_no_other() {
        let stores = Stores { scopes: vec![scope("a"), scope("b")], ..Stores::default() };
        let [a, b] = stores.scopes.as_slice() else { unreachable!("two were made") };
        for (_, seen) in a.seen.own.iter().chain(&a.seen.rest) {
            seen.cancel();
        }
        let hour = Duration::from_hours(1);
        let slightly_longer = GRACE + Duration::from_secs(1);
        assert!(timeout(slightly_longer, stores.ready(a)).await.is_ok(), "the other scope stopped it");
        assert!(timeout(hour, stores.ready(b)).await.is_err(), "it would take what exists for missing");
        assert_eq!(stores.unlisted(), ["MCPGateway of b", "Service of b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn where_everything_is_seen_nothing_waits() {
        let stores = Stores { scopes: vec![scope("a"), scope("b")], ..Stores::default() };
        stores.seen().for_each(|(_, _, seen)| seen.cancel());
        let began = tokio::time::Instant::now();
        stores.ready(&stores.scopes[0]).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
