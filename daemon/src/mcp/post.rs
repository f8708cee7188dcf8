//! POST: one message from the client.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;

use super::{Context, accepted, call, initialize, list};
use crate::{
    body::{Answer, method_label},
    edge,
    fault::Fault,
    jsonrpc::{Kind, Message, Params, reply},
    receive::{Received, receive},
    relay::json_response,
    session::Session,
};

/// What is read of a body to find the id that a refusal must carry, where its sender is nobody we know.
const STRANGERS_BYTES: u64 = 64 << 10;

/// The id of a request whose sender may not call; none where it has none, or is larger than what is read of strangers.
pub(super) async fn id_for_refusal(context: &Context<'_>, body: Incoming) -> Option<Bytes> {
    let limit = STRANGERS_BYTES.min(context.snapshot.config.limits.request_bytes);
    let received = receive(body, limit, &context.gateway.shared.budget).await.ok()?;
    match Message::parse(received.bytes).ok()?.kind {
        Kind::Request { id, .. } => Some(id),
        Kind::Notification { .. } | Kind::Response { .. } => None,
    }
}

pub(super) async fn post(context: &mut Context<'_>, body: Incoming) -> Result<Response<Answer>, Fault> {
    let accepts = edge::check_accept(&context.head.method, &context.head.headers)?;
    edge::check_content_type(&context.head.headers)?;
    let Received { bytes, share } =
        receive(body, context.snapshot.config.limits.request_bytes, &context.gateway.shared.budget).await?;
    let message = Message::parse(bytes)?;
    match &message.kind {
        Kind::Request { id, method, params } => {
            context.id = Some(id.clone());
            context.account.method = method_label(method.as_str());
            if method.as_str() == "initialize" {
                return initialize::initialize(context, id, params).await;
            }
            let session = context.session().await?;
            match method.as_str() {
                "ping" => Ok(json_response(Answer::whole(reply::result(id, b"{}")))),
                "tools/list" => list::tools(context, &session, id, params).await,
                "tools/call" => call::tool(context, &session, &message, share, accepts).await,
                _ => Err(Fault::MethodNotFound),
            }
        }
        Kind::Notification { method, params } => {
            context.account.method = method_label(method.as_str());
            let session = context.session().await?;
            if method.as_str() == "notifications/cancelled" {
                cancel(context, &session, &message, params);
            }
            Ok(accepted())
        }
        // Nothing is asked of clients yet, so this answers nothing; it is taken as SDK servers take it.
        Kind::Response { .. } => {
            context.session().await?;
            Ok(accepted())
        }
    }
}

/// Ends the request and tells its target, and no other, at once (case 030). The target session belongs to this
/// session alone, so the target knows the request by the client's id and the message passes as it came.
fn cancel(context: &Context<'_>, session: &Arc<Session>, message: &Message, params: &Params) {
    let Some(id) = &params.request_id else { return };
    let Some(target) = session.calls.cancel(id) else { return };
    if let Some(open) = session.open_target(&target) {
        let message = message.bytes.clone();
        context.gateway.sessions.spawn(async move { open.notify(message).await });
    }
}
