//! call URL TOOL ARGUMENTS, or tour URL PREFIXES: a session with the Rust SDK, in the mode that $MODE names.

mod tour;

use std::{env, error::Error};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let said = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["call", url, tool, arguments] => call(url, tool, arguments).await?,
        ["tour", url, prefixes] => tour::tour(url, &serde_json::from_str(prefixes)?).await?,
        _ => return Err("call URL TOOL ARGUMENTS, or tour URL PREFIXES".into()),
    };
    println!("{said}");
    Ok(())
}

/// A session that a handler answers the server in.
async fn connect<H: ClientHandler>(
    url: &str,
    handler: H,
) -> Result<RunningService<RoleClient, H>, Box<dyn Error>> {
    let transport = StreamableHttpClientTransport::from_uri(url);
    if env::var("MODE")? == "auto" {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        return Ok(handler.serve_with_lifecycle(transport, lifecycle).await?);
    }
    Ok(handler.serve(transport).await?)
}

async fn call(url: &str, tool: &str, arguments: &str) -> Result<Value, Box<dyn Error>> {
    let client = connect(url, ()).await?;
    let tools = client.list_all_tools().await?;
    let mut call = CallToolRequestParams::new(tool.to_owned());
    call.arguments = serde_json::from_str(arguments)?;
    let result = serde_json::to_value(client.call_tool(call).await?)?;
    let protocol = client.peer_info().map(|info| serde_json::to_value(&info.protocol_version)).transpose()?;
    client.cancel().await?;
    Ok(json!({
        "protocol": protocol,
        "tools": tools.iter().map(|listed| listed.name.as_ref()).collect::<Vec<&str>>(),
        "text": result.pointer("/content/0/text").unwrap_or(&Value::Null),
    }))
}
