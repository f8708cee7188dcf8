//! The example MCP server as a program: listens where it is told, says so, and ends on SIGTERM or Ctrl-C.

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use clap::Parser;
use e2e::{example::ExampleServer, process};

/// A small MCP server for trying Mooring out.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8931")]
    listen: SocketAddr,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let server = ExampleServer::start(Arguments::parse().listen).await?;
    writeln!(io::stdout(), "an example MCP server at {}", server.url())?;
    process::told_to_end().await?;
    server.stop().await;
    Ok(())
}
