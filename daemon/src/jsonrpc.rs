//! JSON-RPC 2.0 as it stands on the wire. Pure: bytes in, bytes out.

pub mod envelope;
mod keys;
pub mod reply;
pub mod span;
pub mod sse;

pub use envelope::{Invalid, Kind, Message, Params};
