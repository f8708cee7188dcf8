//! Notifications of the client, and its answers: each to whom it concerns, and to nobody else.

use std::sync::Arc;

use super::Context;
use crate::{
    jsonrpc::{Kind, Message, Params},
    receive::Share,
    session::Session,
};

/// Takes a notification.
pub(super) fn notification(context: &Context<'_>, session: &Arc<Session>, message: &Message, share: Share) {
    let Kind::Notification { method, params } = &message.kind else { return };
    let sessions = &context.gateway.sessions;
    match method.as_str() {
        "notifications/initialized" => session.initialized(),
        "notifications/cancelled" => cancel(context, session, message, params),
        "notifications/progress" => sessions.progressed(session, message),
        // Roots, and whatever later versions have: every target of the session may want to know.
        _ => {
            let bytes = message.bytes.clone();
            let open = session.open_targets();
            sessions.spawn(async move {
                let all = open.iter().map(|open| open.notify(bytes.clone()));
                futures_util::future::join_all(all).await;
                drop(share);
            });
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
