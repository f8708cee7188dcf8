//! What `cargo e2e` can be told on its command line.

use clap::{Args, Parser, Subcommand};

/// Tries Mooring out, puts it on a cluster, takes it off again, and runs all its tests.
#[derive(Debug, Parser)]
#[command(name = "cargo e2e")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Serves examples/quickstart.yaml on this machine, with an example MCP server behind it
    Quickstart,
    /// Puts Mooring and examples/cluster.yaml on a cluster, starting a throwaway one where none is named
    Up(Up),
    /// Takes away what `up` put there, and the throwaway cluster if `up` started it
    Down(Where),
    /// Runs every test: format, lints, documentation, licences, units, real peers, cluster
    Test(Test),
}

/// Which cluster is meant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Where {
    /// A context of your kubeconfig; without it `kind` is used where it is installed, else a throwaway cluster
    #[arg(long)]
    pub(crate) context: Option<String>,
}

/// Options of `up`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The images are in the cluster's nodes already (or will be): do not load them
    #[arg(long)]
    pub(crate) images_present: bool,
}

/// Options of `test`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) up: Up,
    /// Leave out the tests that need a cluster
    #[arg(long)]
    pub(crate) no_cluster: bool,
    /// Leave the cluster up afterwards
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run only tests whose name holds this, and none of the checks before them
    pub(crate) filter: Option<String>,
}
