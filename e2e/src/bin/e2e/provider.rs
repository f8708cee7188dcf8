//! Which cluster is used, how it is started, and how images get into it: a context of the user's, `kind`, or the
//! throwaway cluster of `e2e/cluster`.

use std::path::{Path, PathBuf};

use e2e::{
    cluster::{Cluster, THROWAWAY, throwaway_folder},
    process::{self, LONG, SHORT},
    settings,
};
use tokio::process::Command;

use crate::{Failure, args::Where, console::say};

/// The name of the cluster that `kind` is asked for.
const KIND_NAME: &str = "mooring";

/// A place for clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Provider {
    /// A context that the user named.
    Context(String),
    /// `kind`, on a machine with a container engine.
    Kind,
    /// The scripts of `e2e/cluster`.
    Throwaway,
}

impl Provider {
    /// The provider to use.
    pub(crate) async fn choose(place: &Where) -> Self {
        match &place.context {
            Some(context) => Self::Context(context.clone()),
            None if process::installed("kind").await => Self::Kind,
            None => Self::Throwaway,
        }
    }

    /// The cluster, whether it is up or not.
    pub(crate) fn cluster(&self) -> Cluster {
        match self {
            Self::Context(context) => Cluster::of_context(context),
            Self::Kind => Cluster::of_context(&format!("kind-{KIND_NAME}")),
            Self::Throwaway => Cluster::throwaway(),
        }
    }

    /// Whether it is up.
    pub(crate) async fn is_up(&self) -> Result<bool, Failure> {
        match self {
            Self::Context(_) => Ok(true),
            Self::Kind => {
                let clusters = process::output(Command::new("kind").args(["get", "clusters"]), SHORT).await?;
                Ok(clusters.lines().any(|name| name == KIND_NAME))
            }
            Self::Throwaway => Ok(throwaway_folder().join("run/kubeconfig").is_file()),
        }
    }

    /// Starts it where it is not up, fetching and building what that needs.
    pub(crate) async fn start(&self) -> Result<(), Failure> {
        if self.is_up().await? {
            say("the cluster is up");
            return Ok(());
        }
        match self {
            Self::Context(_) => Ok(()),
            Self::Kind => {
                let create = ["create", "cluster", "--name", KIND_NAME, "--wait", "120s"];
                Ok(process::run(Command::new("kind").args(create), LONG).await?)
            }
            Self::Throwaway => {
                require_for_throwaway().await?;
                process::run(&mut script("get.sh"), LONG).await?;
                Ok(process::run(script("cluster.sh").args(["up", "2"]), LONG).await?)
            }
        }
    }

    /// Ends a cluster that `start` started; one that the user named stays.
    pub(crate) async fn end(&self) -> Result<(), Failure> {
        match self {
            Self::Context(_) => Ok(()),
            Self::Kind => {
                Ok(process::run(Command::new("kind").args(["delete", "cluster", "--name", KIND_NAME]), LONG)
                    .await?)
            }
            Self::Throwaway => Ok(process::run(script("cluster.sh").arg("down"), LONG).await?),
        }
    }

    /// Puts image archives into every node.
    pub(crate) async fn load(&self, images: &[PathBuf]) -> Result<(), Failure> {
        if *self == Self::Throwaway {
            return Ok(process::run(script("cluster.sh").arg("load").args(images), LONG).await?);
        }
        let (Self::Context(context), kind) = (self, format!("kind-{KIND_NAME}")) else {
            return kind_load(KIND_NAME, images).await;
        };
        if *context == kind || context.starts_with("kind-") {
            return kind_load(context.trim_start_matches("kind-"), images).await;
        }
        let files: Vec<_> = images.iter().map(|image| image.display().to_string()).collect();
        Err(format!(
            "no way is known to load images into the nodes of the context {context}: load\n  {}\nthere by its own \
             means, then run this again with --images-present",
            files.join("\n  ")
        )
        .into())
    }
}

async fn kind_load(name: &str, images: &[PathBuf]) -> Result<(), Failure> {
    for image in images {
        let load = ["load", "image-archive", "--name", name];
        process::run(Command::new("kind").args(load).arg(image), LONG).await?;
    }
    Ok(())
}

/// Names what the throwaway cluster lacks on this machine, if it lacks anything.
async fn require_for_throwaway() -> Result<(), Failure> {
    let mut missing = Vec::new();
    for program in ["apt-get", "dpkg", "unshare", "nsenter", "go", "gcc", "python3"] {
        if !process::installed(program).await {
            missing.push(program);
        }
    }
    if process::output(Command::new("id").arg("-u"), SHORT).await?.trim() != "0" {
        missing.push("root");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the cluster cannot be had: no --context, no kind on the PATH, and the {THROWAWAY} cluster lacks {}. Name a \
         context, install kind, or leave the cluster out with `cargo e2e test --no-cluster`",
        missing.join(", ")
    )
    .into())
}

fn script(name: &str) -> Command {
    Command::new(Path::new(&settings::checkout()).join("e2e/cluster").join(name))
}
