//! Mooring on a real Kubernetes, as `cargo e2e test` installs it. Each test has a namespace of its own; one at a time,
//! since some of them look at, or stop, the one operator.

mod auth;
mod clients;
mod credentials;
mod manifests;
mod operator;
mod ownership;
mod status;
mod targets;
