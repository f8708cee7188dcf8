//! Pure: the daemon's `jsonrpc`, taken by its path instead of with the daemon, which would be built whole for it.
//! Holds as long as that module needs nothing else of the daemon.

#[path = "../../daemon/src"]
mod daemon {
    pub mod jsonrpc;
}

pub use daemon::jsonrpc;
