//! What a failed test leaves behind, in `e2e-failures/TEST` of the checkout: objects, events and logs of its namespace
//! and the operator's log. It never fails: what cannot be had is named in the file that lacks it.

use std::{fs, path::Path};

use super::Cluster;
use crate::{process::SHORT, settings};

/// What is asked of a namespace: the file, and kubectl's arguments.
const LOOKS: [(&str, &[&str]); 4] = [
    ("mooring.yaml", &["get", "mcpgateways,mcptargets,acpagents", "--output", "yaml"]),
    (
        "objects.txt",
        &[
            "get",
            "all,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets",
            "--output",
            "wide",
        ],
    ),
    ("pods.txt", &["describe", "pods"]),
    ("events.txt", &["get", "events", "--sort-by=.lastTimestamp"]),
];

/// Keeps what can be seen of a namespace.
pub(super) async fn dump(cluster: &Cluster, namespace: &str, test: &str) {
    let folder = settings::checkout().join("e2e-failures").join(test);
    // A folder that cannot be made shows below, file by file; the test's own failure matters more.
    drop(fs::remove_dir_all(&folder));
    drop(fs::create_dir_all(&folder));
    for (file, look) in LOOKS {
        keep(cluster, namespace, look, &folder.join(file)).await;
    }
    let pods =
        cluster.kubectl(namespace, &["get", "pods", "--output", "name"], SHORT).await.unwrap_or_default();
    for pod in pods.lines() {
        let file = format!("{}.log", pod.trim_start_matches("pod/"));
        keep(cluster, namespace, &["logs", "--all-containers", pod], &folder.join(file)).await;
    }
    let operator =
        ["logs", "--selector", "app.kubernetes.io/name=mooring-operator", "--tail", "2000", "--prefix"];
    keep(cluster, "mooring-system", &operator, &folder.join("operator.log")).await;
}

async fn keep(cluster: &Cluster, namespace: &str, look: &[&str], file: &Path) {
    let text = match cluster.kubectl(namespace, look, SHORT).await {
        Ok(text) => text,
        Err(why) => format!("{why}\n"),
    };
    drop(fs::write(file, text));
}
