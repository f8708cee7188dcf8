//! POST: one message from the client, or, in sessions of 2025-03-26, a batch of them.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;

use super::{Context, accepted, batch, forward, initialize, list, logging, notify, tasks};
use crate::{
    body::{Answer, method_label},
    catalog,
    edge::{self, Accepts},
    fault::Fault,
    jsonrpc::{Invalid, Kind, Message, reply},
    receive::{Received, Share, receive},
    relay::json_response,
    session::Session,
};

/// What is read of a body to find the id that a refusal must carry, where its sender is nobody we know.
const STRANGERS_BYTES: u64 = 64 << 10;

/// The id of a request whose sender may not call; none where it has none, or is larger than what is read of strangers.
pub(super) async fn id_for_refusal(context: &Context<'_>, body: Incoming) -> Option<Bytes> {
    let limit = STRANGERS_BYTES.min(context.snapshot.config.limits.request_bytes);
    let received = receive(body, limit, &context.gateway.shared.strangers).await.ok()?;
    match Message::parse(received.bytes).ok()?.kind {
        Kind::Request { id, .. } => Some(id),
        Kind::Notification { .. } | Kind::Response { .. } => None,
    }
}

pub(super) async fn post(context: &mut Context<'_>, body: Incoming) -> Result<Response<Answer>, Fault> {
    let accepts = edge::check_accept(&context.head.method, &context.head.headers)?;
    let accepts = context.snapshot.streaming(accepts);
    edge::check_content_type(&context.head.headers)?;
    let Received { bytes, share } =
        receive(body, context.snapshot.config.limits.request_bytes, &context.gateway.shared.budget).await?;
    let message = match Message::parse(bytes.clone()) {
        Err(Invalid::Batch) => return Box::pin(batch::batch(context, &bytes, share, accepts)).await,
        parsed => parsed?,
    };
    note(context, &message);
    match &message.kind {
        Kind::Request { id, method, params } if method.as_str() == "initialize" => {
            context.admit()?;
            Box::pin(initialize::initialize(context, id, params)).await
        }
        Kind::Request { .. } => {
            context.admit()?;
            let session = context.session().await?;
            context.admit_to(&session)?;
            message_in(context, &session, &message, share, accepts).await
        }
        Kind::Notification { .. } | Kind::Response { .. } => {
            let session = context.session().await?;
            message_in(context, &session, &message, share, accepts).await
        }
    }
}

/// Notes what a refusal and the account need of a message.
pub(super) fn note(context: &mut Context<'_>, message: &Message) {
    match &message.kind {
        Kind::Request { id, method, .. } => {
            context.id = Some(id.clone());
            context.account.method = method_label(method.as_str());
        }
        Kind::Notification { method, .. } => context.account.method = method_label(method.as_str()),
        Kind::Response { .. } => {}
    }
}

/// Answers one message of a session.
pub(super) async fn message_in(
    context: &mut Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    share: Share,
    accepts: Accepts,
) -> Result<Response<Answer>, Fault> {
    match &message.kind {
        Kind::Request { id, method, params } => match method.as_str() {
            "ping" => Ok(json_response(Answer::whole(reply::result(id, b"{}")))),
            "tasks/list" => Box::pin(tasks::list(context, session, id)).await,
            "logging/setLevel" => Box::pin(logging::set_level(context, session, id, &message.bytes)).await,
            method => match catalog::kind::Kind::of_method(method) {
                Some(kind) => Box::pin(list::list(context, session, kind, id, params)).await,
                None => forward::request(context, session, message, share, accepts).await,
            },
        },
        Kind::Notification { .. } => {
            notify::notification(context, session, message, share);
            Ok(accepted())
        }
        Kind::Response { .. } => {
            context.gateway.sessions.answered(session, message, share)?;
            Ok(accepted())
        }
    }
}
