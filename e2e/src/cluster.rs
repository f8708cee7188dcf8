//! A Kubernetes cluster as tests see it: through kubectl, with deadlines. Starting and ending clusters is not its
//! business; it is told by the environment, or by `cargo e2e`, which one to use.

mod dump;
mod forward;
mod namespace;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use serde_json::Value;
use tokio::process::Command;

pub use self::{
    forward::Forward,
    namespace::{Namespace, Outcome, PATIENCE, condition, in_namespace},
};
use crate::{
    process::{self, ProcessError, SHORT},
    settings,
};

/// What the cluster of `e2e/cluster` is called in messages.
pub const THROWAWAY: &str = "throwaway";

/// The version of Kubernetes that the throwaway cluster runs; `e2e/cluster/versions.sh` names the same.
const KUBERNETES: &str = "1.36.3";

/// Why the cluster did not do what a test wants.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// kubectl or helm failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// kubectl answered something that is not JSON.
    #[error("kubectl gave no JSON")]
    Json(#[from] serde_json::Error),
    /// A condition did not come.
    #[error("waited {within:?} in vain for {what}; last seen:\n{last:#}")]
    Overdue {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// The object as it was at last.
        last: Value,
    },
    /// A port-forward did not come about.
    #[error("kubectl port-forward gave no port")]
    Forward,
}

/// A cluster, by the way in which kubectl finds it.
#[derive(Debug, Clone)]
pub struct Cluster {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    tools: Option<PathBuf>,
}

/// The folder of the throwaway cluster: its programs and, while it is up, its state.
pub fn throwaway_folder() -> PathBuf {
    settings::cache().join(format!("kubernetes-{KUBERNETES}"))
}

// === impl Cluster ===

impl Cluster {
    /// The cluster of a context of the user's kubeconfig.
    pub fn of_context(context: &str) -> Self {
        Self { kubeconfig: None, context: Some(context.to_owned()), tools: None }
    }

    /// The throwaway cluster.
    pub fn throwaway() -> Self {
        let folder = throwaway_folder();
        let (kubeconfig, tools) = (Some(folder.join("run/kubeconfig")), Some(folder.join("bin")));
        Self { kubeconfig, context: None, tools }
    }

    /// The cluster that the environment names (`MOORING_CONTEXT`), else the throwaway cluster.
    pub fn of_environment() -> Self {
        settings::context().map_or_else(Self::throwaway, |context| Self::of_context(&context))
    }

    /// Runs kubectl in a namespace and returns what it says.
    pub async fn kubectl(
        &self,
        namespace: &str,
        arguments: &[&str],
        within: Duration,
    ) -> Result<String, ClusterError> {
        let mut kubectl = self.command("kubectl");
        Ok(process::output(kubectl.args(["--namespace", namespace]).args(arguments), within).await?)
    }

    /// Applies manifests in a namespace.
    pub async fn apply(&self, namespace: &str, manifests: &str) -> Result<(), ClusterError> {
        let mut kubectl = self.command("kubectl");
        kubectl.args(["--namespace", namespace, "apply", "--server-side", "--filename", "-"]);
        process::feed(&mut kubectl, manifests, SHORT).await?;
        Ok(())
    }

    /// Creates an object, such as a review, which is only ever created; returns what the API server makes of it.
    pub async fn create(&self, namespace: &str, manifest: &str) -> Result<Value, ClusterError> {
        let mut kubectl = self.command("kubectl");
        kubectl.args(["--namespace", namespace, "create", "--output", "json", "--filename", "-"]);
        Ok(serde_json::from_str(&process::feed(&mut kubectl, manifest, SHORT).await?)?)
    }

    /// Tries to apply manifests that the API server is to refuse, and returns what it says to that.
    pub async fn refusal(&self, namespace: &str, manifests: &str) -> Result<String, ClusterError> {
        match self.apply(namespace, manifests).await {
            Ok(()) => Ok(String::new()),
            Err(ClusterError::Process(ProcessError::Failed { output, .. })) => Ok(output),
            Err(why) => Err(why),
        }
    }

    /// An object, or a list of objects, as JSON; null where there is none.
    pub async fn get(&self, namespace: &str, what: &[&str]) -> Result<Value, ClusterError> {
        let arguments = [&["get", "--ignore-not-found", "--output", "json"], what].concat();
        let text = self.kubectl(namespace, &arguments, SHORT).await?;
        if text.trim().is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&text)?) }
    }

    /// A way from this machine to a port of something in a namespace, such as `deployment/NAME`.
    pub async fn forward(&self, namespace: &str, what: &str, port: u16) -> Result<Forward, ClusterError> {
        Forward::open(self, namespace, what, port).await
    }

    /// helm for this cluster.
    pub fn helm(&self) -> Command {
        self.command("helm")
    }

    /// The lines by which a shell comes to use this cluster.
    pub fn exports(&self) -> String {
        let kubeconfig =
            self.kubeconfig.iter().map(|path| format!("  export KUBECONFIG={}\n", path.display()));
        let tools = self.tools.iter().map(|path| format!("  export PATH={}:$PATH\n", path.display()));
        let context = self.context.iter().map(|name| format!("  kubectl config use-context {name}\n"));
        kubeconfig.chain(tools).chain(context).collect()
    }

    /// kubectl or helm: the cluster's own where it brings them, told which cluster is meant.
    fn command(&self, program: &str) -> Command {
        let own = self.tools.as_ref().map(|tools| tools.join(program)).filter(|path| path.is_file());
        let mut command = Command::new(own.map_or_else(|| OsString::from(program), Into::into));
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        if let Some(context) = &self.context {
            command.args([if program == "helm" { "--kube-context" } else { "--context" }, context]);
        }
        command
    }
}
