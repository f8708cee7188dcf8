//! The example MCP server as a program: listens where it is told, says so, and ends on SIGTERM or Ctrl-C.

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use clap::Parser;
use e2e::{example::ExampleServer, process};
use http::HeaderName;

/// A small MCP server for trying Mooring out.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8931")]
    listen: SocketAddr,
    /// A header that callers may be shown of their own requests, by the tool `header`; any number of times.
    #[arg(long)]
    show: Vec<HeaderName>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let Arguments { listen, show } = Arguments::parse();
    let server = ExampleServer::start_showing(listen, show).await?;
    writeln!(io::stdout(), "an example MCP server at {}", server.url())?;
    process::told_to_end().await?;
    server.stop().await;
    Ok(())
}
