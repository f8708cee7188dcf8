//! `initialize` and `notifications/initialized` towards a target: how every target session begins.

use std::sync::Arc;

use mooring_runtime::Tasks;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Target, Wire, body::Outgoing, drain, own_header, unary};
use crate::{fault::TargetFailure, jsonrpc::reply, target::SESSION_ID, version::Version};

/// What a target answered to `initialize`.
#[derive(Debug, Clone)]
pub struct Established {
    /// The session, as it stands in headers from now on.
    pub wire: Wire,
    /// Whether it announces `tools`.
    pub tools: bool,
    /// Whether it announces `tools.listChanged`.
    pub list_changed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    tools: Option<Tools>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    #[serde(default)]
    list_changed: bool,
}

/// Begins a session at `target`, offering `version` and no capabilities, in the name of `client_info` (raw JSON).
///
/// Bounded by the target's `connectSeconds`. Whatever fails, and be it the time, leaves no session at the target that
/// we know of: one that was issued is deleted by one of `tasks`.
///
/// # Errors
/// [`TargetFailure`].
pub async fn handshake(
    tasks: &Tasks,
    target: &Arc<Target>,
    version: Version,
    client_info: &str,
) -> Result<Established, TargetFailure> {
    let bound = target.connect_bound();
    let mut issued = None;
    let result = timeout(bound, initialize(target, version, client_info, &mut issued)).await;
    let outcome = result.unwrap_or(Err(TargetFailure::Timeout(target.config.connect_seconds)));
    target.metrics.handshake(outcome.as_ref().err());
    if let (Err(_), Some(wire)) = (&outcome, issued) {
        target.delete_later(wire, tasks);
    }
    outcome
}

/// What the target issued is in `issued` as soon as it is known, whatever comes of the rest.
async fn initialize(
    target: &Target,
    version: Version,
    client_info: &str,
    issued: &mut Option<Wire>,
) -> Result<Established, TargetFailure> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{client_info}}}"#,
        version.as_str()
    );
    let answer =
        unary::ask(target, None, "initialize", &params).await.map_err(super::exchange::NoAnswer::failure)?;
    let id = answer.headers.get(SESSION_ID).and_then(own_header);
    *issued = Some(Wire { id: id.clone(), version });
    let result: InitializeResult = serde_json::from_str(answer.result.get())
        .map_err(|_| TargetFailure::Protocol("an initialize result without what it must have"))?;
    let Some(negotiated) = Version::parse(&result.protocol_version) else {
        // It is disconnected (2025-11-25, lifecycle, version negotiation), and so is the session it may have made.
        return Err(TargetFailure::UnsupportedVersion(result.protocol_version.chars().take(32).collect()));
    };
    let wire = Wire { id, version: negotiated };
    *issued = Some(wire.clone());
    announce(target, &wire).await?;
    let tools = result.capabilities.tools;
    Ok(Established {
        wire,
        list_changed: tools.as_ref().is_some_and(|tools| tools.list_changed),
        tools: tools.is_some(),
    })
}

/// Sends `notifications/initialized`. Any success will do: servers answer 202, 204, or 200 with nothing or `null`
/// (case 017).
async fn announce(target: &Target, wire: &Wire) -> Result<(), TargetFailure> {
    let body = Outgoing::from(reply::notification("notifications/initialized"));
    let response = target.post(Some(wire), body).await?;
    if !response.status().is_success() {
        return Err(TargetFailure::Status(response.status().as_u16()));
    }
    drain(response.into_body()).await;
    Ok(())
}
