//! `cargo e2e`: tries Mooring out, puts it on a cluster, takes it off again, and runs all its tests.

mod args;
mod binaries;
mod console;
mod images;
mod install;
mod provider;
mod quickstart;
mod suite;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Arguments, Verb};

/// What ends a command early; the message is for the person who ran it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Quickstart => quickstart::run().await,
        Verb::Up(options) => install::up(&options).await,
        Verb::Down(options) => install::down(&options).await,
        Verb::Test(options) => suite::run(&options).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::failed(&*failure);
            ExitCode::FAILURE
        }
    }
}
