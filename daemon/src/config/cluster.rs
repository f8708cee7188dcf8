//! The configuration that the operator writes: the mounted copy at the start, then the ConfigMap, watched by name; and
//! the report that goes back. Writes nothing else.

pub mod secrets;

use std::{collections::BTreeMap, path::Path, pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{Patch, PatchParams},
    runtime::watcher,
};
use mooring_crds::config::{CONFIG_FORMAT, CONFIG_KEY, DaemonConfig, GatewayConfig};
use mooring_runtime::Tasks;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    capabilities::ClientCapabilities, catalog::report, fault::EndReason, gateway::Gateway, version::LATEST,
};

/// How long the configuration must stay absent before the gateway counts as deleted (DESIGN §3.5).
const ABSENCE: Duration = Duration::from_secs(10);
/// Changes of the report within this time are one write.
const SETTLE: Duration = Duration::from_millis(100);
/// How long a write of the report may take.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// How long the question whether it is really absent may take.
const CONFIRM_TIME: Duration = Duration::from_secs(5);
/// How long a connection to the API server may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long the API server may be silent. Longer than any watch lasts, so that only a dead connection is cut.
const READ_TIME: Duration = Duration::from_secs(300);
/// Before a report that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadConfig {
    /// The mounted copy cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no configuration.
    #[error("the configuration cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of a newer version's format.
    #[error("the configuration has format {0}, and this daemon reads up to {CONFIG_FORMAT}")]
    Format(i32),
    /// It does not hold exactly one gateway.
    #[error("the configuration holds {0} gateways; a pod serves one")]
    Gateways(usize),
}

/// Where configuration and report are.
#[derive(Debug, Clone)]
pub struct Names {
    /// The configuration's ConfigMap.
    pub config_map: String,
    /// The report's ConfigMap.
    pub report_map: String,
    /// This pod: its key in the report.
    pub pod: String,
    /// Their namespace.
    pub namespace: String,
}

/// A client of the API server whose waits are bounded.
///
/// # Errors
/// Where the process is in no cluster and no kubeconfig names one.
pub async fn client() -> Result<Client, kube::Error> {
    let mut config = Config::infer().await.map_err(kube::Error::InferConfig)?;
    config.connect_timeout = Some(CONNECT_TIME);
    config.read_timeout = Some(READ_TIME);
    Client::try_from(config)
}

/// Reads the one gateway of a configuration, and its digest.
///
/// # Errors
/// [`BadConfig`].
pub fn parse(json: &str) -> Result<(GatewayConfig, String), BadConfig> {
    let mut config: DaemonConfig = serde_json::from_str(json)?;
    if config.format > CONFIG_FORMAT {
        return Err(BadConfig::Format(config.format));
    }
    let digest = config.digest();
    match (config.gateways.pop(), config.gateways.len()) {
        (Some(gateway), 0) => Ok((gateway, digest)),
        (gateway, others) => Err(BadConfig::Gateways(others + usize::from(gateway.is_some()))),
    }
}

/// Reads the mounted copy: with it a daemon starts and serves while the API server is down.
///
/// # Errors
/// [`BadConfig`].
pub fn mounted(folder: &Path) -> Result<(GatewayConfig, String), BadConfig> {
    let path = folder.join(CONFIG_KEY);
    let json = std::fs::read_to_string(&path)
        .map_err(|source| BadConfig::Read { path: path.display().to_string(), source })?;
    parse(&json)
}

/// Follows the ConfigMap for as long as the process runs. What cannot be read changes nothing.
pub async fn follow(client: Client, names: Names, gateway: Arc<Gateway>, digest: watch::Sender<String>) {
    let maps: Api<ConfigMap> = Api::namespaced(client, &names.namespace);
    let drain = gateway.shared.tasks.drain.clone();
    let events = watcher::watch_object(maps.clone(), &names.config_map);
    let mut events = pin!(watcher_backoff(events));
    let mut absent_since: Option<Instant> = None;
    loop {
        let next = async {
            match absent_since {
                None => events.next().await.map(Some),
                Some(since) => match timeout_at(since + ABSENCE, events.next()).await {
                    Ok(event) => event.map(Some),
                    Err(_) => Some(None),
                },
            }
        };
        match drain.run_until_cancelled(next).await {
            None | Some(None) => return,
            Some(Some(None)) => match timeout(CONFIRM_TIME, maps.get_opt(&names.config_map)).await {
                Ok(Ok(None)) => {
                    tracing::warn!(
                        config_map = names.config_map,
                        "the configuration is gone: the gateway was deleted"
                    );
                    gateway.sessions.end_all(EndReason::GatewayDeleted).await;
                    absent_since = None;
                }
                Ok(Ok(Some(map))) => {
                    absent_since = None;
                    take(&map, &gateway, &digest).await;
                }
                // Asked again behind the same time: all sessions end on nothing but a clear word.
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!(
                        "the configuration seems to be gone, and the API server does not confirm it"
                    );
                    absent_since = Some(Instant::now());
                }
            },
            Some(Some(Some(Ok(Some(map))))) => {
                absent_since = None;
                take(&map, &gateway, &digest).await;
            }
            Some(Some(Some(Ok(None)))) => absent_since = absent_since.or_else(|| Some(Instant::now())),
            // An API server that cannot be reached, or refuses, is no absence.
            Some(Some(Some(Err(error)))) => {
                absent_since = None;
                tracing::warn!(%error, "the configuration cannot be watched; it stays as it is");
            }
        }
    }
}

fn watcher_backoff<S>(events: S) -> impl futures_util::Stream<Item = S::Item>
where
    S: futures_util::TryStream + futures_util::Stream<Item = Result<S::Ok, S::Error>>,
{
    kube::runtime::WatchStreamExt::default_backoff(events)
}

async fn take(map: &ConfigMap, gateway: &Gateway, digest: &watch::Sender<String>) {
    let Some(json) = map.data.as_ref().and_then(|data| data.get(CONFIG_KEY)) else {
        tracing::error!(config_map = map.name_any(), key = CONFIG_KEY, "the configuration has no such key");
        return;
    };
    match parse(json) {
        Ok((config, new)) => {
            let current = gateway.snapshot();
            if current.config.uid != config.uid {
                // Another object of that name: the sessions belonged to the old one.
                gateway.sessions.end_all(EndReason::GatewayDeleted).await;
            }
            if current.config != config {
                tracing::info!(targets = config.targets.len(), digest = new, "configuration taken");
                gateway.configure(config);
            }
            digest.send_replace(new);
        }
        Err(error) => tracing::error!(%error, "the configuration stays as it is"),
    }
}

/// Writes this pod's report whenever it changes, and wherever the cluster does not show what was written: the object may
/// be deleted by hand, and the operator then makes an empty one.
pub async fn report_changes(
    client: Client,
    names: Names,
    gateway: Arc<Gateway>,
    mut digest: watch::Receiver<String>,
) {
    let maps: Api<ConfigMap> = Api::namespaced(client, &names.namespace);
    let tasks: Tasks = gateway.shared.tasks.clone();
    let view = gateway.view(LATEST, &ClientCapabilities::default());
    let mut changes = view.news();
    let mut shown = pin!(watcher_backoff(watcher::watch_object(maps.clone(), &names.report_map)));
    let mut written: Option<String> = None;
    loop {
        changes.mark_unchanged();
        digest.mark_unchanged();
        let report = report::report(&digest.borrow().clone(), &view.merged());
        let mut wait = None;
        match serde_json::to_string(&report) {
            Ok(json) if written.as_ref() != Some(&json) => {
                match timeout(WRITE_TIME, write(&maps, &names, &json)).await {
                    Ok(Ok(())) => written = Some(json),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "the report cannot be written");
                        wait = Some(RETRY);
                    }
                    Err(_) => wait = Some(RETRY),
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the report is no JSON"),
        }
        let news = async {
            loop {
                tokio::select! {
                    changed = changes.changed() => return changed.is_ok(),
                    changed = digest.changed() => return changed.is_ok(),
                    event = shown.next() => match event {
                        Some(Ok(map)) if differs(map.as_ref(), &names.pod, written.as_deref()) => {
                            written = None;
                            return true;
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => tracing::debug!(%error, "the report cannot be watched"),
                        None => return false,
                    },
                }
            }
        };
        let go_on = match wait {
            None => tasks.drain.run_until_cancelled(news).await == Some(true),
            // A retry, or sooner where there is news.
            Some(wait) => timeout(wait, tasks.drain.cancelled()).await.is_err(),
        };
        // Changes that come close together are one write.
        if !go_on || timeout(SETTLE, tasks.drain.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Whether the report that the cluster shows is not what `pod` has written. An object that is not there waits for the
/// operator, who makes it.
fn differs(map: Option<&ConfigMap>, pod: &str, written: Option<&str>) -> bool {
    let Some(map) = map else { return false };
    map.data.as_ref().and_then(|data| data.get(pod)).map(String::as_str) != written
}

async fn write(maps: &Api<ConfigMap>, names: &Names, json: &str) -> Result<(), kube::Error> {
    let data = BTreeMap::from([(names.pod.as_str(), json)]);
    let patch = Patch::Merge(serde_json::json!({ "data": data }));
    maps.patch_metadata(&names.report_map, &PatchParams::default(), &patch).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::secrets::Secrets,
        testing::{gateway_config, opening, shared},
    };

    fn json(config: &DaemonConfig) -> String {
        serde_json::to_string(config).unwrap()
    }

    #[test]
    fn a_configuration_reads_back_and_keeps_its_digest() {
        let config = DaemonConfig { format: CONFIG_FORMAT, gateways: vec![gateway_config()] };
        let (gateway, digest) = parse(&json(&config)).unwrap();
        assert_eq!((gateway, digest), (gateway_config(), config.digest()));
    }

    #[tokio::test]
    async fn another_gateway_of_the_same_name_ends_the_sessions_of_the_old_one() {
        let gateway = Gateway::start(
            GatewayConfig { uid: "old".to_owned(), ..gateway_config() },
            Secrets::default(),
            shared(),
        );
        let (tell, digest) = watch::channel(String::new());
        gateway.sessions.create(opening()).await.unwrap();
        let map = |config: GatewayConfig| {
            let config = DaemonConfig { format: CONFIG_FORMAT, gateways: vec![config] };
            let data = BTreeMap::from([(CONFIG_KEY.to_owned(), json(&config))]);
            ConfigMap { data: Some(data), ..ConfigMap::default() }
        };
        let changed = GatewayConfig { uid: "old".to_owned(), path: "/other".to_owned(), ..gateway_config() };
        take(&map(changed), &gateway, &tell).await;
        assert_eq!(gateway.sessions.len(), 1, "a changed gateway is the same gateway");
        take(&map(GatewayConfig { uid: "new".to_owned(), ..gateway_config() }), &gateway, &tell).await;
        assert!(gateway.sessions.is_empty());
        assert_eq!((gateway.snapshot().config.uid.as_str(), digest.borrow().is_empty()), ("new", false));
        let text = prometheus::TextEncoder::new().encode_to_string(&gateway.shared.metrics.registry.gather());
        assert!(text.unwrap().contains(r#"ended_total{gateway="tools",reason="gateway_deleted"} 1"#));
    }

    #[test]
    fn a_report_that_was_deleted_by_hand_and_made_anew_is_written_again() {
        let map = |data: Option<&str>| ConfigMap {
            data: data.map(|json| BTreeMap::from([("pod".to_owned(), json.to_owned())])),
            ..ConfigMap::default()
        };
        assert!(differs(Some(&map(None)), "pod", Some("{}")));
        assert!(differs(Some(&map(Some("{\"edited\":1}"))), "pod", Some("{}")));
        assert!(!differs(Some(&map(Some("{}"))), "pod", Some("{}")));
        assert!(!differs(None, "pod", Some("{}")), "the operator makes it first");
    }

    #[test]
    fn a_configuration_of_a_newer_format_or_of_no_gateway_is_refused() {
        let newer = DaemonConfig { format: CONFIG_FORMAT + 1, gateways: vec![gateway_config()] };
        assert!(matches!(parse(&json(&newer)), Err(BadConfig::Format(_))));
        let none = DaemonConfig { format: CONFIG_FORMAT, gateways: Vec::new() };
        assert!(matches!(parse(&json(&none)), Err(BadConfig::Gateways(0))));
        let two = DaemonConfig { format: CONFIG_FORMAT, gateways: vec![gateway_config(), gateway_config()] };
        assert!(matches!(parse(&json(&two)), Err(BadConfig::Gateways(2))));
    }
}
