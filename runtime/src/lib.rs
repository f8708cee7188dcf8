//! What operator and daemon both need to live: telemetry, health, readiness, drain, signals, clock.

pub mod clock;
pub mod drain;
pub mod health;
pub mod ready;
pub mod signal;
pub mod telemetry;

pub use clock::{Clock, Timestamp};
pub use drain::{Outcome, Tasks};
pub use ready::Readiness;
