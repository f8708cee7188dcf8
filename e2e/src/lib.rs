//! The tests' side of Mooring: scripted peers, real peers, a throwaway cluster, and the daemon run as a black box.
//! Links neither the daemon nor the operator.

pub mod asking;
pub mod client;
pub mod cluster;
pub mod example;
pub mod folder;
mod http;
pub mod identity;
mod jsonrpc;
pub mod manifest;
pub mod moored;
pub mod peers;
pub mod process;
pub mod processes;
pub mod scripted;
pub mod settings;
pub mod token_endpoint;
pub mod two_endpoints;
