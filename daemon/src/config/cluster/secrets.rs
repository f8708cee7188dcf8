//! The credentials Secret that the operator writes: the mounted copy at the start, then the Secret, watched by name.
//! Writes nothing, and logs no value.

use std::{collections::BTreeMap, io, path::Path, pin::pin, sync::Arc};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};

use crate::{config::secrets::Secrets, gateway::Gateway};

/// Reads the mounted copy. One that is not there is empty: the mount is optional, and the watch brings the values.
///
/// # Errors
/// Where it is there and cannot be read.
pub fn mounted(folder: &Path) -> io::Result<Secrets> {
    let files = match std::fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Secrets::default()),
        Err(error) => return Err(error),
    };
    let mut values = BTreeMap::new();
    for file in files {
        let file = file?;
        let Ok(key) = file.file_name().into_string() else { continue };
        // The kubelet keeps the files' versions in folders of such names, beside links to the newest.
        if !key.starts_with("..") {
            values.insert(key, std::fs::read(file.path())?);
        }
    }
    Ok(Secrets::new(values))
}

/// Follows the Secret for as long as the process runs. One that is gone changes nothing: the gateway's deletion is told
/// by its configuration, and till then sessions go on with what they have.
pub async fn follow(client: Client, namespace: String, name: String, gateway: Arc<Gateway>) {
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let mut events = pin!(watcher::watch_object(secrets, &name).default_backoff());
    let drain = gateway.shared.tasks.drain.clone();
    while let Some(Some(event)) = drain.run_until_cancelled(events.next()).await {
        match event {
            Ok(Some(secret)) => take(secret, &gateway),
            Ok(None) => tracing::warn!(secret = name, "the credentials are gone; they stay as they were"),
            Err(error) => tracing::warn!(%error, "the credentials cannot be watched; they stay as they are"),
        }
    }
}

fn take(secret: Secret, gateway: &Gateway) {
    let values = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    let secrets = Secrets::new(values);
    if gateway.snapshot().secrets != secrets {
        tracing::info!(keys = ?secrets, "credentials taken");
        gateway.rotate(secrets);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use mooring_crds::config::{CredentialsConfig, GatewayConfig, TargetConfig};

    use super::*;
    use crate::testing::{gateway_config, shared, target_config};

    #[test]
    fn the_mounted_copy_is_read_without_the_kubelets_own_files_and_may_be_missing() {
        let folder = std::env::temp_dir().join(format!("mooring-secrets-{}", std::process::id()));
        assert_eq!(mounted(&folder).unwrap(), Secrets::default());
        std::fs::create_dir_all(folder.join("..2026")).unwrap();
        std::fs::write(folder.join("..2026/k"), "v").unwrap();
        std::fs::write(folder.join("k"), "v").unwrap();
        let read = mounted(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read, Secrets::new(BTreeMap::from([("k".to_owned(), b"v".to_vec())])));
    }

    /// Case 051.
    #[tokio::test]
    async fn a_changed_value_makes_anew_the_target_that_uses_it_and_no_other() {
        let asked_with = |alias: &str| TargetConfig {
            credentials: Some(CredentialsConfig::Headers {
                headers: BTreeMap::from([("x-key".to_owned(), format!("{alias}.key"))]),
            }),
            ..target_config(alias)
        };
        let config = GatewayConfig { targets: vec![asked_with("a"), asked_with("b")], ..gateway_config() };
        let secret = |a: &str| Secret {
            data: Some(
                [("a.key", a), ("b.key", "same")]
                    .map(|(key, value)| (key.to_owned(), ByteString(value.into())))
                    .into(),
            ),
            ..Secret::default()
        };
        let gateway = Gateway::start(config, Secrets::default(), shared());
        take(secret("one"), &gateway);
        let before = gateway.snapshot();
        take(secret("two"), &gateway);
        let after = gateway.snapshot();
        let same = |at: usize| Arc::ptr_eq(&before.targets[at], &after.targets[at]);
        assert_eq!((same(0), same(1)), (false, true));
        assert_eq!(after.secrets.get("a.key"), Some(b"two".as_ref()));
    }
}
