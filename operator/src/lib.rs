//! Reconciles the three kinds of Mooring into pods. Sees no session and no request.
//!
//! Reading order: `run` -> `watch` -> `triggers` -> `queue` -> `gather` -> `controller` -> `reconcile` -> the kind
//! (`gateway`, `target`, `agent`: observe, plan, judge) -> `apply`.

pub mod agent;
pub mod apply;
pub mod args;
pub mod backoff;
pub mod child;
pub mod condition;
pub mod context;
pub mod controller;
pub mod daemons;
pub mod endpoints;
pub mod error;
pub mod events;
pub mod gateway;
pub mod gather;
pub mod key;
pub mod kind;
pub mod lease;
pub mod ledger;
pub mod metrics;
pub mod queue;
pub mod reconcile;
pub mod references;
pub mod rollout;
pub mod run;
pub mod schema;
pub mod status_json;
pub mod stores;
pub mod target;
pub mod triggers;
pub mod watch;
pub mod watches;
