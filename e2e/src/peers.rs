//! The MCP clients, servers and suites of others, pinned, kept in the cache and run as they are.

pub mod conformance;
mod inspector;
mod install;
mod run;
mod servers;
mod stdio_servers;
mod tour;

pub use self::{
    inspector::Inspector,
    install::{
        Environment, InstallCause, InstallError, NodePeers, Packages, install_all, install_packages,
        install_python, install_rust,
    },
    run::{Peer, PeerError, Said},
    servers::{EverythingServer, FixtureServer},
    stdio_servers::{Call, StdioServers, time, told},
    tour::{Prefixes, Seen},
};

/// The version of server-everything.
pub const EVERYTHING_VERSION: &str = "2026.8.31";

/// The program of server-everything below the folder that holds `node_modules`.
pub const EVERYTHING_ENTRY: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Installs Node, the TypeScript clients and server-everything, unless they are there.
pub async fn install_node() -> Result<NodePeers, InstallError> {
    install_packages(Packages::Clients).await
}
