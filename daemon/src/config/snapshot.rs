//! One consistent view of a gateway's configuration. A request loads it once and sees no change after that.

use std::sync::Arc;

use ipnet::IpNet;
use mooring_crds::config::{GatewayConfig, SessionMode, Streaming};

use crate::{
    auth::Authenticator, config::secrets::Secrets, edge::Accepts, gateway::Shared, route::Router,
    target::Target,
};

/// A configuration with the targets that it names.
#[derive(Debug)]
pub struct Snapshot {
    /// As compiled from the manifests.
    pub config: GatewayConfig,
    /// The values of the Secrets that it names by key.
    pub secrets: Secrets,
    /// Its targets, oldest first. Positions in [`Router`] count these.
    pub targets: Vec<Arc<Target>>,
    /// The networks whose forwarding headers count.
    pub proxies: Vec<IpNet>,
    /// How names are read.
    pub router: Router,
    /// How it is told who calls.
    pub auth: Authenticator,
}

impl Snapshot {
    /// Makes the targets of `config`; one that `older` has with an equal configuration and equal values of Secrets is
    /// the same target still, with its connections. A changed credential is another target: sessions go on with it, those
    /// that live in a bridge in the same one, and the catalogue asks it anew.
    ///
    /// A target whose URL cannot be used is left out, and said in the log: the others are served.
    pub fn new(config: GatewayConfig, secrets: Secrets, older: Option<&Self>, shared: &Shared) -> Self {
        let Shared { connector, metrics, .. } = shared;
        let auth = Authenticator::new(&config.auth, &secrets, older.map(|older| &older.auth), shared);
        let mut targets = Vec::with_capacity(config.targets.len());
        for wanted in &config.targets {
            let kept =
                older.and_then(|older| older.targets.iter().find(|target| target.is(wanted, &secrets)));
            if let Some(kept) = kept {
                kept.set_endpoints(&wanted.endpoints);
                targets.push(Arc::clone(kept));
                continue;
            }
            let before = older.and_then(|older| {
                older.targets.iter().find(|target| target.config.uid == wanted.uid).map(|target| &**target)
            });
            let metrics = metrics.target(&config.name, &wanted.alias);
            match Target::after(before, wanted.clone(), &secrets, connector, metrics) {
                Ok(target) => targets.push(target),
                Err(error) => tracing::error!(gateway = %config.name, %error, "a target is left out"),
            }
        }
        let router = Router::new(config.naming.clone(), targets.iter().map(|target| target.alias()));
        let proxies = proxies(&config);
        Self { config, secrets, targets, proxies, router, auth }
    }

    /// Whether answers may be event streams.
    pub fn streams(&self) -> bool {
        self.config.streaming == Streaming::Enabled && self.config.session.mode == SessionMode::Stateful
    }

    /// What a client that takes `accepts` is answered with.
    pub fn streaming(&self, accepts: Accepts) -> Accepts {
        match self.config.streaming {
            Streaming::Enabled => accepts,
            Streaming::Disabled => Accepts::Json,
        }
    }
}

/// What was accepted can be read; anything else would trust nobody.
fn proxies(config: &GatewayConfig) -> Vec<IpNet> {
    let read = |network: &String| {
        network.parse().inspect_err(|error| {
            tracing::error!(gateway = %config.name, network, %error, "a trusted proxy is left out");
        })
    };
    config.trusted_proxies.iter().filter_map(|network| read(network).ok()).collect()
}
