//! The signals that end a process: SIGTERM and SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from its making on, so that a signal is never lost to a later registration.
#[derive(Debug)]
pub struct Termination {
    term: Signal,
    int: Signal,
}

impl Termination {
    /// Registers for both signals.
    ///
    /// # Errors
    /// Where the system refuses a signal handler.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Returns at the next signal, with its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}
