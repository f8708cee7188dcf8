//! The contract between manifests, operator and daemon: the three kinds, their conditions, the daemon's configuration,
//! and the pure function between them. Cannot do IO.
#![expect(unreachable_pub, reason = "KubeSchema copies each type into a function body to read its schema")]
#![expect(rustdoc::bare_urls, reason = "doc comments are what kubectl explain prints, as it is")]

pub mod address;
pub mod agent;
pub mod auth;
pub mod compile;
pub mod condition;
pub mod config;
pub mod credentials;
pub mod definition;
pub mod gateway;
pub mod manifest;
pub mod names;
pub mod pod_template;
pub mod propagation;
pub mod reference;
pub mod rule;
pub mod scaling;
pub mod secrets;
pub mod served;
pub mod server;
pub mod serving;
pub mod session;
pub mod store;
pub mod target;
pub mod timeouts;

pub use agent::{ACPAgent, ACPAgentSpec, ACPAgentStatus};
pub use compile::{
    Attachment, Compiled, Platform, Refusal, accept_agent, accept_gateway, accept_target, compile,
    requests_may_go_to,
};
pub use definition::definitions;
pub use gateway::{MCPGateway, MCPGatewaySpec, MCPGatewayStatus};
pub use target::{MCPTarget, MCPTargetSpec, MCPTargetStatus};

#[cfg(test)]
mod refused;
