//! The process: parse, run, exit with a code that says why. Decides nothing else.

use clap::Parser;
use mooring_operator::{args::Args, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    run::main(Args::parse()).into()
}
