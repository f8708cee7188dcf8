//! Resources that no target lists and no template makes: asked of the session's open targets, oldest first (DESIGN §2,
//! Names).

use std::sync::Arc;

use http::Response;
use tokio::time::timeout_at;

use super::Context;
use crate::{
    body::Answer,
    fault::Fault,
    jsonrpc::{Kind, Message, reply, span},
    relay::{json_response, limits::CallLimits},
    session::Session,
    target::{OnBehalf, unary},
};

pub(super) async fn resource(
    context: &Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    of: &Arc<OnBehalf>,
    uri: String,
) -> Result<Response<Answer>, Fault> {
    let Kind::Request { id, method, .. } = &message.kind else { return Err(Fault::MethodNotFound) };
    let params = span::value(&message.bytes, &["params"]).unwrap_or_default();
    let params = String::from_utf8_lossy(&params);
    let access = context.access()?;
    let seen = context.snapshot.targets.iter().filter(|target| access.sees_target(target.alias()));
    for target in seen {
        let Some(open) = session.open_target(target) else { continue };
        let own = context.gateway.sessions.own_id();
        let wire = open.wire.by(of);
        let until = context.account.started + CallLimits::of(&target.config.timeouts).silent;
        let asked = unary::ask_as(target, &wire, &own, method.as_str(), &params);
        // One that does not know it, or does not answer, is not the one.
        if let Ok(Ok(answer)) = timeout_at(until, asked).await {
            return Ok(json_response(Answer::whole(reply::result(id, answer.result.get().as_bytes()))));
        }
    }
    Err(Fault::ResourceNotFound(uri))
}
