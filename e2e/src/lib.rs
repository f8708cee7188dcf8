//! The tests' side of Mooring: scripted peers, real peers, a throwaway cluster, and the daemon run as a black box.
//! Links neither the daemon nor the operator.

pub mod client;
pub mod cluster;
pub mod example;
pub mod folder;
mod http;
mod jsonrpc;
pub mod manifest;
pub mod moored;
pub mod peers;
pub mod process;
pub mod scripted;
pub mod settings;
pub mod token_endpoint;
