//! `initialize` and `notifications/initialized` towards a target: how every target session begins.

use std::sync::Arc;

use mooring_runtime::Tasks;
use serde::Deserialize;
use tokio::time::timeout;

use super::{OnBehalf, Target, Wire, body::Outgoing, drain, own_header, unary};
use crate::{
    capabilities::ServerCapabilities, fault::TargetFailure, jsonrpc::reply, metrics::SessionKind,
    target::SESSION_ID, version::Version,
};

/// How we introduce ourselves to a target.
#[derive(Debug, Clone, Copy)]
pub struct Introduction<'a> {
    /// On whose behalf.
    pub of: &'a Arc<OnBehalf>,
    /// The version that is offered.
    pub version: Version,
    /// In whose name, raw JSON.
    pub client_info: &'a str,
    /// The client capabilities that are offered, raw JSON.
    pub capabilities: &'a str,
}

/// What a target answered to `initialize`.
#[derive(Debug, Clone)]
pub struct Established {
    /// The session, as it stands in headers from now on.
    pub wire: Wire,
    /// The version that it negotiated.
    pub version: Version,
    /// What it announces.
    pub capabilities: ServerCapabilities,
    /// Its `instructions`, where it gives any.
    pub instructions: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    #[serde(default)]
    capabilities: serde_json::Value,
    #[serde(default)]
    instructions: Option<Box<str>>,
}

/// Begins a client's session at `target`.
///
/// Bounded by the target's `connectSeconds`. Whatever fails, and be it the time, leaves no session at the target that
/// we know of: one that was issued is deleted by one of `tasks`.
///
/// # Errors
/// [`TargetFailure`].
pub async fn handshake(
    tasks: &Tasks,
    target: &Arc<Target>,
    introduction: Introduction<'_>,
) -> Result<Established, TargetFailure> {
    begin(SessionKind::Client, tasks, target, introduction).await
}

/// Begins a session of the gateway's own at `target`, as [`handshake`] does, and counts it apart (DESIGN §3.4).
///
/// # Errors
/// [`TargetFailure`].
pub async fn of_the_catalogue(
    tasks: &Tasks,
    target: &Arc<Target>,
    introduction: Introduction<'_>,
) -> Result<Established, TargetFailure> {
    begin(SessionKind::Catalogue, tasks, target, introduction).await
}

async fn begin(
    kind: SessionKind,
    tasks: &Tasks,
    target: &Arc<Target>,
    introduction: Introduction<'_>,
) -> Result<Established, TargetFailure> {
    let bound = target.connect_bound();
    let mut issued = None;
    let result = timeout(bound, initialize(target, introduction, &mut issued)).await;
    let outcome = result.unwrap_or(Err(TargetFailure::Timeout(target.config.timeouts.connect_seconds)));
    target.metrics.handshake(kind, outcome.as_ref().err());
    if let (Err(_), Some(wire)) = (&outcome, issued) {
        target.delete_later(wire, tasks);
    }
    outcome
}

/// What the target issued is in `issued` as soon as it is known, whatever comes of the rest.
async fn initialize(
    target: &Target,
    introduction: Introduction<'_>,
    issued: &mut Option<Wire>,
) -> Result<Established, TargetFailure> {
    let Introduction { of, version, client_info, capabilities } = introduction;
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{capabilities},"clientInfo":{client_info}}}"#,
        version.as_str()
    );
    let mut first = Wire::first(of);
    first.endpoint = target.pick_endpoint();
    let mut answer = unary::ask(target, &first, "initialize", &params).await;
    if first.endpoint.is_some() && answer.as_ref().is_err_and(|none| target.may_be_old(none)) {
        // The bridge, if it takes one, has no address: from here on the Service decides.
        first.endpoint = None;
        answer = unary::ask(target, &first, "initialize", &params).await;
    }
    let answer = answer.map_err(super::exchange::NoAnswer::failure)?;
    let id = answer.headers.get(SESSION_ID).and_then(own_header);
    // Where it took no connection, another one behind the Service has answered.
    let endpoint = first.endpoint.filter(|address| target.has_endpoint(*address));
    *issued = Some(Wire { id: id.clone(), version: Some(version), endpoint, of: Arc::clone(of) });
    let result: InitializeResult = serde_json::from_str(answer.result.get())
        .map_err(|_| TargetFailure::Protocol("an initialize result without what it must have"))?;
    let Some(negotiated) = Version::parse(&result.protocol_version) else {
        // It is disconnected (2025-11-25, lifecycle, version negotiation), and so is the session it may have made.
        return Err(TargetFailure::UnsupportedVersion(result.protocol_version.chars().take(32).collect()));
    };
    let wire = Wire { id, version: Some(negotiated), endpoint, of: Arc::clone(of) };
    *issued = Some(wire.clone());
    announce(target, &wire).await?;
    Ok(Established {
        wire,
        version: negotiated,
        capabilities: ServerCapabilities::new(result.capabilities),
        instructions: result.instructions,
    })
}

/// Sends `notifications/initialized`. Any success will do: servers answer 202, 204, or 200 with nothing or `null`
/// (case 017).
async fn announce(target: &Target, wire: &Wire) -> Result<(), TargetFailure> {
    let body = Outgoing::from(reply::notification("notifications/initialized"));
    let response = target.post(wire, body).await?;
    if !response.status().is_success() {
        return Err(TargetFailure::Status(response.status().as_u16()));
    }
    drain(response.into_body()).await;
    Ok(())
}
