//! The operator itself: quiet while nothing changes, and not in the way of the data.

use std::time::Duration;

use e2e::{
    client::Client,
    cluster::{Cluster, Namespace, Outcome, PATIENCE, in_namespace},
    moored::Metrics,
    process,
};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::manifests::{Failure, session, working_gateway};

/// Where `cargo e2e up` installs the operator.
const SYSTEM: &str = "mooring-system";

/// How long nothing is written while nothing changes.
const QUIET: Duration = Duration::from_secs(30);

#[tokio::test]
async fn an_operator_whose_objects_do_not_change_writes_nothing() -> Outcome {
    in_namespace("quiet", async |namespace| {
        working_gateway(&namespace).await?;
        // Tests before this one leave namespaces that are still being deleted: quiet has to begin some time.
        let versions = versions(&namespace).await?;
        let (mut since, mut last) = (Instant::now(), writes(&namespace).await?);
        let quiet = process::poll(PATIENCE * 2, async || {
            let now = writes(&namespace).await.ok()?;
            if now.to_bits() != last.to_bits() {
                (since, last) = (Instant::now(), now);
            }
            (since.elapsed() >= QUIET).then_some(())
        });
        assert!(quiet.await.is_some(), "never {QUIET:?} without a write");
        assert_eq!(self::versions(&namespace).await?, versions);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_an_operator_sessions_go_on_and_new_ones_begin() -> Outcome {
    in_namespace("operator_gone", async |namespace| {
        working_gateway(&namespace).await?;
        let (_forward, old) = session(&namespace).await?;
        let system = namespace.cluster().clone();
        let served = async {
            scale(&system, "0").await?;
            let (_way, new) = session(&namespace).await?;
            let sum = json!({"a": 1, "b": 1});
            let (old, new) =
                (old.call("first___add", sum.clone()).await?, new.call("first___add", sum).await?);
            Ok::<_, Failure>([old.tool_text(), new.tool_text()])
        };
        let served = served.await;
        // Before anything is judged: other tests need it.
        scale(&system, "1").await?;
        assert_eq!(served?, [Some("2".to_owned()), Some("2".to_owned())]);
        Ok(())
    })
    .await
}

/// Scales the operator and waits until that is so.
async fn scale(cluster: &Cluster, replicas: &str) -> Result<(), Failure> {
    let scale = ["scale", "deployment", "--all", &format!("--replicas={replicas}")];
    cluster.kubectl(SYSTEM, &scale, PATIENCE).await?;
    let settled = process::poll(PATIENCE, async || {
        let pods = cluster.get(SYSTEM, &["pods"]).await.ok()?;
        // Of no pods kubectl says nothing.
        let pods = pods.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let ready =
            pods.iter().filter(|pod| pod.pointer("/status/containerStatuses/0/ready") == Some(&json!(true)));
        (pods.len().to_string() == replicas && ready.count() == pods.len()).then_some(())
    });
    settled.await.ok_or_else(|| format!("the operator was not scaled to {replicas}").into())
}

/// How often the operator has written anything but its Lease.
async fn writes(namespace: &Namespace) -> Result<f64, Failure> {
    let forward = operator(namespace).await?;
    let client = Client::with_fresh_connections(&forward.url_of("/metrics"))?;
    let answer = client.send(client.request(Method::GET).body(bytes::Bytes::new())?).await?;
    let metrics = Metrics::parse(&answer.text());
    let leases = metrics.sum("mooring_operator_writes_total", &[("kind", "Lease")]);
    if metrics.has("mooring_operator_writes_total") {
        Ok(metrics.sum("mooring_operator_writes_total", &[]) - leases)
    } else {
        Err(answer.unexpected().into())
    }
}

/// A way to the operator's health port.
async fn operator(namespace: &Namespace) -> Result<e2e::cluster::Forward, Failure> {
    Ok(namespace.cluster().forward(SYSTEM, "deployment/mooring-operator", 9090).await?)
}

/// Kind, name and resource version of everything of the namespace that the operator writes.
async fn versions(namespace: &Namespace) -> Result<Vec<Value>, Failure> {
    let kinds = "mcpgateways,mcptargets,deployments,services,serviceaccounts,roles,rolebindings,configmaps,\
                 poddisruptionbudgets";
    let list = namespace.get(&[kinds]).await?;
    let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
    let version = |item: &Value| {
        json!(["/kind", "/metadata/name", "/metadata/resourceVersion"].map(|at| item.pointer(at)))
    };
    Ok(items.map(version).collect())
}
