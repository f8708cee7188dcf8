//! What the watches have seen, to read from memory: one store for each kind and scope. Cannot ask the API server.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Resource,
    core::{DeserializeGuard, DynamicObject},
    runtime::reflector::{ObjectRef, Store},
};
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{child::ChildKind, key::Key};

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
    /// The endpoints of our Services.
    pub slices: Store<EndpointSlice>,
    /// Which of these have been seen whole.
    pub seen: Seen,
}

/// Which stores have been seen whole: a token each, cancelled then. (A store's own wait wakes one waiter only.)
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Gateways and targets.
    pub own: Vec<CancellationToken>,
    /// Everything else.
    pub rest: Vec<CancellationToken>,
}

/// The stores of every scope.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    /// In no order that matters; they do not overlap.
    pub scopes: Vec<Scope>,
}

/// How long a kind waits for the stores that it can do without: what is not in them is asked of the API server.
const GRACE: Duration = Duration::from_secs(20);

impl Stores {
    /// Waits until the kinds of ours have been seen whole, and, for a while, the rest.
    ///
    /// A right that is missing on one kind of child must not stop everything; the log names it, and so does the
    /// status of the objects that need it.
    pub async fn ready(&self) {
        for seen in self.scopes.iter().flat_map(|scope| &scope.seen.own) {
            seen.cancelled().await;
        }
        let rest = async {
            for seen in self.scopes.iter().flat_map(|scope| &scope.seen.rest) {
                seen.cancelled().await;
            }
        };
        if timeout(GRACE, rest).await.is_err() {
            tracing::warn!("some kinds of children have not been listed yet: going on without");
        }
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

    /// The endpoints of one of our Services.
    pub fn slices(&self, service: &Key) -> Vec<Arc<EndpointSlice>> {
        let Some(scope) = self.scope(&service.namespace) else { return Vec::new() };
        scope.slices.state_filter(|slice| service_of(slice).as_ref() == Some(service))
    }
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
