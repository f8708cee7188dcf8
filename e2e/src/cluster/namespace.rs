//! A namespace for one test: made for it, looked at by it, dumped when it fails, and removed.

use std::time::Duration;

use serde_json::Value;
use tokio::task::LocalSet;

use super::{Cluster, ClusterError, Forward, dump};
use crate::process::{self, SHORT};

/// How long a change may take to be seen unless a test says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How a test ends.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// The namespace of one test.
#[derive(Debug, Clone)]
pub struct Namespace {
    cluster: Cluster,
    name: String,
}

/// Runs a test in a namespace of its own. A test that fails or panics leaves objects, events and logs in
/// `e2e-failures/TEST`; the namespace is removed in any case.
pub async fn in_namespace(test: &str, story: impl AsyncFnOnce(Namespace) -> Outcome + 'static) -> Outcome {
    let cluster = Cluster::of_environment();
    let name = format!("e2e-{}-{}", test.replace('_', "-").to_lowercase(), std::process::id());
    let name = name.get(..name.len().min(63)).unwrap_or(&name).trim_end_matches('-').to_owned();
    cluster.kubectl("default", &["create", "namespace", &name], SHORT).await?;
    let namespace = Namespace { cluster, name };
    // On a task of its own, so that a failed assertion is caught and what it leaves behind can be kept.
    let (stories, told) = (LocalSet::new(), namespace.clone());
    let told = stories.spawn_local(async move { story(told).await });
    let ended = stories.run_until(told).await;
    if !matches!(ended, Ok(Ok(()))) {
        dump::dump(&namespace.cluster, &namespace.name, test).await;
    }
    let delete = ["delete", "namespace", &namespace.name, "--wait=false"];
    namespace.cluster.kubectl("default", &delete, SHORT).await?;
    match ended {
        Ok(outcome) => outcome,
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(failed) => Err(failed.into()),
    }
}

// === impl Namespace ===

impl Namespace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster it is in.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Runs kubectl here and returns what it says.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, ClusterError> {
        self.cluster.kubectl(&self.name, arguments, PATIENCE).await
    }

    /// Applies manifests here.
    pub async fn apply(&self, manifests: &str) -> Result<(), ClusterError> {
        self.cluster.apply(&self.name, manifests).await
    }

    /// Creates an object here and returns what the API server makes of it.
    pub async fn create(&self, manifest: &str) -> Result<Value, ClusterError> {
        self.cluster.create(&self.name, manifest).await
    }

    /// What the API server says to manifests that it is to refuse; empty if it takes them.
    pub async fn refusal(&self, manifests: &str) -> Result<String, ClusterError> {
        self.cluster.refusal(&self.name, manifests).await
    }

    /// An object, or a list of objects, as JSON; null where there is none.
    pub async fn get(&self, what: &[&str]) -> Result<Value, ClusterError> {
        self.cluster.get(&self.name, what).await
    }

    /// Waits until what `kubectl get WHAT` shows meets a condition, and returns it.
    pub async fn until(
        &self,
        what: &[&str],
        within: Duration,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value, ClusterError> {
        let mut last = Value::Null;
        let met = process::poll(within, async || {
            last = self.get(what).await.ok()?;
            condition(&last).then_some(())
        });
        match met.await {
            Some(()) => Ok(last),
            None => Err(ClusterError::Overdue { what: what.join(" "), within, last }),
        }
    }

    /// Waits until an object's condition has a status, and returns that condition.
    pub async fn until_condition(&self, what: &str, kind: &str, status: &str) -> Result<Value, ClusterError> {
        let found =
            |object: &Value| condition(object, kind).filter(|found| found["status"] == status).cloned();
        let object = self.until(&[what], PATIENCE, |object| found(object).is_some()).await?;
        Ok(found(&object).unwrap_or_default())
    }

    /// A way from this machine to a port of something here, such as `service/NAME`.
    pub async fn forward(&self, what: &str, port: u16) -> Result<Forward, ClusterError> {
        self.cluster.forward(&self.name, what, port).await
    }
}

/// A condition of an object's status that is about the object's present generation.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let generation = object.pointer("/metadata/generation");
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| {
        let observed = condition.get("observedGeneration");
        condition.get("type").is_some_and(|is| is == kind) && (observed.is_none() || observed == generation)
    })
}
