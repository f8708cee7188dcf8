//! Every setting of the operator, once: flags, and the environment behind them. May not act on them.

use std::net::SocketAddr;

use clap::{Args as ClapArgs, Parser, Subcommand};
use mooring_crds::compile::Platform;

use crate::context::Settings;

/// Reconciles MCPGateways, MCPTargets and ACPAgents into pods.
#[derive(Debug, Parser)]
#[command(name = "mooring-operator", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run until SIGTERM.
    Run(Box<Run>),
    /// Print the CustomResourceDefinitions as YAML.
    Crds,
}

/// The settings of `run`.
#[derive(Debug, ClapArgs)]
pub struct Run {
    /// The image of the daemon that gateways run.
    #[arg(long)]
    pub daemon_image: String,
    /// When nodes pull it: Always, IfNotPresent or Never.
    #[arg(long, default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    pub daemon_image_pull_policy: String,
    /// The namespaces to watch, separated by commas; without it the whole cluster.
    #[arg(long, value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// The shortest session timeout that a gateway may ask for, in seconds.
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(i32).range(1..))]
    pub session_timeout_min: i32,
    /// The longest session timeout that a gateway may ask for, in seconds.
    #[arg(long, default_value_t = 28_800, value_parser = clap::value_parser!(i32).range(1..))]
    pub session_timeout_max: i32,
    /// Where /livez, /readyz and /metrics listen.
    #[arg(long, default_value = "0.0.0.0:9090")]
    pub health_address: SocketAddr,
    /// What is logged, such as `info` or `mooring_operator=debug,info`.
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub log: String,
    /// The namespace of the Lease that elects the leader.
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub lease_namespace: String,
    /// This replica's name in the Lease and in events; unique among replicas.
    #[arg(long, env = "POD_NAME", default_value = "mooring-operator")]
    pub identity: String,
}

impl Run {
    /// What reconciles need of the settings.
    pub fn settings(&self) -> Settings {
        Settings {
            daemon_image: self.daemon_image.clone(),
            daemon_image_pull_policy: self.daemon_image_pull_policy.clone(),
            platform: Platform {
                session_timeout_seconds: self.session_timeout_min..=self.session_timeout_max,
                allow_loopback: false,
                allow_processes: false,
                has_cluster: true,
            },
        }
    }

    /// The scopes to watch: one for each namespace, or the whole cluster. Names are not repeated.
    pub fn scopes(&self) -> Vec<Option<String>> {
        let mut names: Vec<&str> =
            self.namespaces.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            vec![None]
        } else {
            names.into_iter().map(|name| Some(name.to_owned())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> Run {
        let all = ["mooring-operator", "run", "--daemon-image", "moored:1"].iter().chain(arguments);
        match Args::try_parse_from(all).unwrap().command {
            Command::Run(run) => *run,
            Command::Crds => panic!("another command"),
        }
    }

    #[test]
    fn without_namespaces_the_whole_cluster_is_one_scope() {
        assert_eq!(run(&[]).scopes(), [None]);
    }

    #[test]
    fn each_named_namespace_is_a_scope_of_its_own() {
        assert_eq!(run(&["--namespaces", "b, a,,a"]).scopes(), [Some("a".to_owned()), Some("b".to_owned())]);
    }

    #[test]
    fn the_platform_limits_come_from_the_flags() {
        let settings = run(&["--session-timeout-min", "1", "--session-timeout-max", "60"]).settings();
        assert_eq!(settings.platform.session_timeout_seconds, 1..=60);
    }
}
