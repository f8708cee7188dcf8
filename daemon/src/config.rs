//! The configuration: where it comes from, and the form in which requests see it.

pub mod cluster;
pub mod files;
pub mod secrets;
pub mod snapshot;
