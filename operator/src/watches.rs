//! Opens every store, queue and watch of every scope. Watches are shared: one for each kind and scope.

use std::sync::Arc;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{ConfigMap, Secret},
        discovery::v1::EndpointSlice,
    },
};
use kube::{Api, Client, Resource, ResourceExt, api::DynamicObject, runtime::watcher::Config};
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget};
use mooring_runtime::Tasks;
use serde::de::DeserializeOwned;

use crate::{
    child::{ChildKind, MANAGED_BY},
    key::Key,
    kind::Kind as _,
    metrics::Metrics,
    queue::{Queues, Receivers},
    references::{self, Objects, Valued},
    stores::{Guarded, Scope, Seen, Stores},
    triggers::{self, Change, Wakes},
    watch::{Keep, Referenced, Shelf, Told, Watch},
};

/// How many seconds a watch lasts before the API server ends it and it is begun again. Below the client's patience
/// with a silent connection (`run.rs`), so that a quiet watch is not taken for a dead one.
pub const WATCH_SECONDS: u32 = 60;

/// What reconciles read, and what wakes them, for each scope.
#[derive(Debug)]
pub struct Opened {
    /// All stores.
    pub stores: Stores,
    /// The queues of each scope, in the order of `stores.scopes`.
    pub queues: Vec<Receivers>,
}

/// The writing ends of one scope's stores.
struct Writers {
    gateways: Shelf<Guarded<MCPGateway>>,
    targets: Shelf<Guarded<MCPTarget>>,
    agents: Shelf<Guarded<ACPAgent>>,
    children: Vec<(ChildKind, Shelf<DynamicObject>)>,
    slices: Shelf<EndpointSlice>,
    secrets: Shelf<Secret>,
    config_maps: Shelf<ConfigMap>,
}

/// Starts to watch. Every watch runs on `tasks` and ends at its drain.
pub fn open(client: &Client, namespaces: &[Option<String>], metrics: &Metrics, tasks: &Tasks) -> Opened {
    let mut stores = Stores::default();
    let mut queues = Queues::default();
    let mut receivers = Vec::with_capacity(namespaces.len());
    let mut all_writers = Vec::with_capacity(namespaces.len());
    for namespace in namespaces {
        let writers = Writers::new();
        stores.scopes.push(writers.readers(namespace.clone()));
        receivers.push(queues.open(namespace.clone(), metrics.clone()));
        all_writers.push((namespace.as_deref(), writers));
    }
    // Only now: what concerns whom is asked of every scope's stores.
    let starter = Starter { client, metrics, tasks, stores: &stores, queues: &queues };
    for (namespace, writers) in all_writers {
        starter.start(namespace, writers);
    }
    Opened { stores, queues: receivers }
}

impl Writers {
    fn new() -> Self {
        Self {
            gateways: Shelf::new(()),
            targets: Shelf::new(()),
            agents: Shelf::new(()),
            children: ChildKind::ALL.map(|kind| (kind, Shelf::new(kind.resource()))).into(),
            slices: Shelf::new(()),
            secrets: Shelf::new(()),
            config_maps: Shelf::new(()),
        }
    }

    fn readers(&self, namespace: Option<String>) -> Scope {
        Scope {
            namespace,
            gateways: self.gateways.writer.as_reader(),
            targets: self.targets.writer.as_reader(),
            agents: self.agents.writer.as_reader(),
            children: self.children.iter().map(|(kind, shelf)| (*kind, shelf.writer.as_reader())).collect(),
            slices: self.slices.writer.as_reader(),
            secrets: objects(&self.secrets),
            config_maps: objects(&self.config_maps),
            seen: Seen {
                own: vec![
                    (MCPGateway::KIND, self.gateways.seen.clone()),
                    (MCPTarget::KIND, self.targets.seen.clone()),
                ],
                rest: self
                    .children
                    .iter()
                    .map(|(kind, shelf)| (kind.as_str(), shelf.seen.clone()))
                    .chain([
                        ("EndpointSlice", self.slices.seen.clone()),
                        ("Secret", self.secrets.seen.clone()),
                        ("ConfigMap", self.config_maps.seen.clone()),
                    ])
                    .collect(),
            },
        }
    }
}

struct Starter<'a> {
    client: &'a Client,
    metrics: &'a Metrics,
    tasks: &'a Tasks,
    stores: &'a Stores,
    queues: &'a Queues,
}

impl Starter<'_> {
    fn start(&self, namespace: Option<&str>, writers: Writers) {
        let Writers { gateways, targets, agents, children, slices, secrets, config_maps } = writers;
        let ours = format!("{}={}", MANAGED_BY.0, MANAGED_BY.1);
        let stores = self.stores.clone();
        let (config, keep, told) = (everything(), Keep::Everything, self.noting());
        self.begin((self.typed(namespace), config, keep, told), gateways, move |change| {
            let wakes = triggers::gateway(&decoded(change), &stores.targets(|_| true));
            Wakes { gateways: keys(change).chain(wakes.gateways).collect(), ..wakes }
        });
        let stores = self.stores.clone();
        let (config, keep, told) = (everything(), Keep::Everything, self.noting());
        self.begin((self.typed(namespace), config, keep, told), targets, move |change| {
            let wakes = triggers::target(&decoded(change), &stores.targets(|_| true));
            Wakes { targets: keys(change).chain(wakes.targets).collect(), ..wakes }
        });
        self.watch((self.typed(namespace), everything()), agents, move |change| {
            let wakes = triggers::agent(&decoded(change));
            Wakes { agents: keys(change).chain(wakes.agents).collect(), ..wakes }
        });
        for (kind, shelf) in children {
            let stores = self.stores.clone();
            let resource = kind.resource();
            let api = namespace.map_or_else(
                || Api::all_with(self.client.clone(), &resource),
                |namespace| Api::namespaced_with(self.client.clone(), namespace, &resource),
            );
            // Targets name Services of anybody's.
            if kind == ChildKind::Service {
                self.watch((api, everything()), shelf, move |change| {
                    triggers::service(change, &stores.targets(|_| true))
                });
            } else {
                self.watch((api, everything().labels(&ours)), shelf, move |change| {
                    triggers::child(change, &stores.targets(|_| true))
                });
            }
        }
        let stores = self.stores.clone();
        // Targets name Services of anybody's.
        self.watch((self.typed(namespace), everything()), slices, move |change| {
            triggers::slice(change, &stores.gateways(), &stores.targets(|_| true))
        });
        // Helm keeps whole charts in Secrets.
        self.referenced(namespace, everything().fields("type!=helm.sh/release.v1"), secrets);
        self.referenced(namespace, everything(), config_maps);
    }

    /// Watches objects of anybody's, of which manifests refer to some.
    fn referenced<K>(&self, namespace: Option<&str>, config: Config, shelf: Shelf<K>)
    where
        K: Valued + DeserializeOwned + Resource<Scope = NamespaceResourceScope>,
    {
        let stores = self.stores.clone();
        let keep = Keep::Referenced(Referenced { wanted: stores.wanted.clone(), trim: references::trim });
        let api = self.typed(namespace);
        self.begin((api, config, keep, Arc::new(|| {})), shelf, move |change| {
            references::concerns(change, &stores.gateways(), &stores.targets(|_| true))
        });
    }

    /// Notes anew what manifests refer to.
    fn noting(&self) -> Told {
        let stores = self.stores.clone();
        Arc::new(move || {
            stores.wanted.replace(references::wanted(&stores.gateways(), &stores.targets(|_| true)));
        })
    }

    fn typed<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn watch<K>(
        &self,
        (api, config): (Api<K>, Config),
        shelf: Shelf<K>,
        concerns: impl Fn(&Change<'_, K>) -> Wakes + Send + Sync + 'static,
    ) where
        K: Resource + ResourceExt + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
        K::DynamicType: Eq + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync,
    {
        self.begin((api, config, Keep::Everything, Arc::new(|| {})), shelf, concerns);
    }

    fn begin<K>(
        &self,
        (api, config, keep, told): (Api<K>, Config, Keep<K>, Told),
        shelf: Shelf<K>,
        concerns: impl Fn(&Change<'_, K>) -> Wakes + Send + Sync + 'static,
    ) where
        K: Resource + ResourceExt + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
        K::DynamicType: Eq + std::hash::Hash + Clone + std::fmt::Debug + Send + Sync,
    {
        let (queues, metrics) = (self.queues.clone(), self.metrics.clone());
        let watch = Watch { api, config, shelf, queues, metrics, keep, told };
        self.tasks.spawn(watch.run(concerns, self.tasks.drain.clone()));
    }
}

fn objects<K: Valued>(shelf: &Shelf<K>) -> Objects<K> {
    Objects { store: shelf.writer.as_reader(), seen: shelf.seen.clone() }
}

/// Every object.
fn everything() -> Config {
    Config::default().timeout(WATCH_SECONDS)
}

/// The change as far as it can be decoded.
fn decoded<'a, K>(change: &Change<'a, Guarded<K>>) -> Change<'a, K> {
    let inner = |object: Option<&'a Guarded<K>>| object.and_then(|object| object.0.as_ref().ok());
    Change { old: inner(change.old), new: inner(change.new) }
}

/// The object itself, decodable or not: one that is not is marked.
fn keys<K: Resource<DynamicType = ()>>(change: &Change<'_, Guarded<K>>) -> impl Iterator<Item = Key> {
    change.old.into_iter().chain(change.new).map(Key::of).collect::<Vec<_>>().into_iter()
}
