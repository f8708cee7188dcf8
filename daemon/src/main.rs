//! `moored`: parses the command line, runs, and says why where it cannot.

use clap::Parser;
use moored::{args::Args, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match run::run(Args::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // The log may not have started; whoever started us reads this.
            #[expect(clippy::print_stderr, reason = "the last word of a process that could not start")]
            {
                eprintln!("moored: {error}");
            }
            std::process::ExitCode::from(2)
        }
    }
}
