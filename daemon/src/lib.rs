//! The daemon. A library so that benchmarks and tests reach its parts; `main.rs` is the program.

pub mod access;
pub mod args;
pub mod auth;
pub mod body;
pub mod bridge;
pub mod capabilities;
pub mod catalog;
pub mod config;
pub mod edge;
pub mod fault;
pub mod forwarded;
pub mod gateway;
pub mod glob;
pub mod jsonrpc;
pub mod listener;
pub mod mcp;
pub mod metrics;
pub mod receive;
pub mod relay;
pub mod route;
pub mod run;
pub mod seal;
pub mod session;
pub mod store;
pub mod target;
#[cfg(test)]
mod testing;
pub mod version;
