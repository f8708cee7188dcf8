//! One consistent view of a gateway's configuration. A request loads it once and sees no change after that.

use std::sync::Arc;

use mooring_crds::config::GatewayConfig;

use crate::{
    config::secrets::Secrets,
    metrics::Metrics,
    route::Router,
    target::{Target, connect::Connector},
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
    /// How names are read.
    pub router: Router,
}

impl Snapshot {
    /// Makes the targets of `config`; one that `older` has with an equal configuration and equal values of Secrets is
    /// the same target still, with its connections. A changed credential is another target: sessions go on with it, and the
    /// catalogue asks it anew.
    ///
    /// A target whose URL cannot be used is left out, and said in the log: the others are served.
    pub fn new(
        config: GatewayConfig,
        secrets: Secrets,
        older: Option<&Self>,
        connector: &Connector,
        metrics: &Metrics,
    ) -> Self {
        let mut targets = Vec::with_capacity(config.targets.len());
        for wanted in &config.targets {
            let kept =
                older.and_then(|older| older.targets.iter().find(|target| target.is(wanted, &secrets)));
            if let Some(kept) = kept {
                kept.set_endpoints(&wanted.endpoints);
                targets.push(Arc::clone(kept));
                continue;
            }
            let metrics = metrics.target(&config.name, &wanted.alias);
            match Target::new(wanted.clone(), &secrets, connector, metrics) {
                Ok(target) => targets.push(target),
                Err(error) => tracing::error!(gateway = %config.name, %error, "a target is left out"),
            }
        }
        let router = Router::new(config.naming.clone(), targets.iter().map(|target| target.alias()));
        Self { config, secrets, targets, router }
    }
}
