//! The queues between watches and controllers: bounded, one for each kind and scope. A full one holds the watch
//! back; nothing is dropped.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use crate::{key::Key, kind::Kind as _, metrics::Metrics, triggers::Wakes};
use mooring_crds::{ACPAgent, MCPGateway, MCPTarget};

/// How many wakes a queue holds. A controller merges equal ones as soon as it takes them.
pub const CAPACITY: usize = 1_024;

/// What a controller takes from its queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// Look at one object.
    One(Key),
    /// Look at every object.
    Every,
}

/// What a change wakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// These.
    Some(Wakes),
    /// Everything.
    All,
}

/// The ends that watches hold, of every scope.
#[derive(Debug, Clone, Default)]
pub struct Queues(Vec<ScopeQueues>);

#[derive(Debug, Clone)]
struct ScopeQueues {
    namespace: Option<String>,
    gateways: Sender,
    targets: Sender,
    agents: Sender,
    metrics: Metrics,
}

type Sender = mpsc::Sender<Item>;

/// The ends that the controllers of one scope hold.
#[derive(Debug)]
pub struct Receivers {
    /// Gateways to look at.
    pub gateways: mpsc::Receiver<Item>,
    /// Targets to look at.
    pub targets: mpsc::Receiver<Item>,
    /// Agents to look at.
    pub agents: mpsc::Receiver<Item>,
}

impl Queues {
    /// Adds the queues of one scope.
    pub fn open(&mut self, namespace: Option<String>, metrics: Metrics) -> Receivers {
        let (gateways, from_gateways) = mpsc::channel(CAPACITY);
        let (targets, from_targets) = mpsc::channel(CAPACITY);
        let (agents, from_agents) = mpsc::channel(CAPACITY);
        self.0.push(ScopeQueues { namespace, gateways, targets, agents, metrics });
        Receivers { gateways: from_gateways, targets: from_targets, agents: from_agents }
    }

    /// Hands a wake on, each key to its scope. Keys of namespaces that nobody watches are nobody's.
    pub async fn wake(&self, wake: Wake) {
        match wake {
            Wake::All => {
                for scope in &self.0 {
                    send(scope, MCPGateway::KIND, &scope.gateways, Item::Every).await;
                    send(scope, MCPTarget::KIND, &scope.targets, Item::Every).await;
                    send(scope, ACPAgent::KIND, &scope.agents, Item::Every).await;
                }
            }
            Wake::Some(Wakes { gateways, targets, agents }) => {
                self.each(MCPGateway::KIND, gateways, |scope| &scope.gateways).await;
                self.each(MCPTarget::KIND, targets, |scope| &scope.targets).await;
                self.each(ACPAgent::KIND, agents, |scope| &scope.agents).await;
            }
        }
    }

    async fn each(&self, kind: &'static str, keys: BTreeSet<Key>, of: impl Fn(&ScopeQueues) -> &Sender) {
        for key in keys {
            let own =
                |scope: &&ScopeQueues| scope.namespace.as_deref().is_none_or(|own| own == key.namespace);
            if let Some(scope) = self.0.iter().find(own) {
                send(scope, kind, of(scope), Item::One(key)).await;
            }
        }
    }
}

async fn send(scope: &ScopeQueues, kind: &'static str, queue: &Sender, item: Item) {
    // A closed queue belongs to a controller that has ended: the process is ending.
    if queue.send(item).await.is_ok() {
        scope.metrics.woke(kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_goes_to_the_scope_of_its_namespace_only() {
        let metrics = Metrics::new().unwrap();
        let mut queues = Queues::default();
        let mut a = queues.open(Some("a".to_owned()), metrics.clone());
        let mut b = queues.open(Some("b".to_owned()), metrics);
        let keys = [Key::new("b", "x"), Key::new("elsewhere", "x")];
        queues.wake(Wake::Some(Wakes { gateways: keys.into(), ..Wakes::default() })).await;
        queues.wake(Wake::All).await;
        drop(queues);
        assert_eq!(a.gateways.recv().await, Some(Item::Every));
        assert_eq!(b.gateways.recv().await, Some(Item::One(Key::new("b", "x"))));
        assert_eq!(b.gateways.recv().await, Some(Item::Every));
        assert_eq!(b.gateways.recv().await, None);
        assert_eq!(a.targets.recv().await, Some(Item::Every));
    }
}
