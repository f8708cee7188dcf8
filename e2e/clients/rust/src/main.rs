//! URL TOOL ARGUMENTS: lists the tools and calls one with the Rust SDK, in the mode that $MODE names.

use std::{env, error::Error};

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().ok_or("three arguments are needed");
    let (url, tool, arguments) = (next()?, next()?, next()?);
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = if env::var("MODE")? == "auto" {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        ().serve_with_lifecycle(transport, lifecycle).await?
    } else {
        ().serve(transport).await?
    };
    let tools = client.list_all_tools().await?;
    let mut call = CallToolRequestParams::new(tool);
    call.arguments = serde_json::from_str(&arguments)?;
    let result = serde_json::to_value(client.call_tool(call).await?)?;
    let protocol = client.peer_info().map(|info| serde_json::to_value(&info.protocol_version)).transpose()?;
    println!(
        "{}",
        json!({
            "protocol": protocol,
            "tools": tools.iter().map(|listed| listed.name.as_ref()).collect::<Vec<&str>>(),
            "text": result.pointer("/content/0/text").unwrap_or(&Value::Null),
        })
    );
    client.cancel().await?;
    Ok(())
}
