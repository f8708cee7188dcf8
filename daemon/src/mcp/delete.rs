//! DELETE: the client ends its session (2025-11-25, transports, session management 5).

use http::{Response, StatusCode};

use mooring_crds::config::SessionMode;

use super::{Context, method_not_allowed};
use crate::{
    body::Answer,
    fault::{EndReason, Fault},
};

pub(super) async fn delete(context: &mut Context<'_>) -> Result<Response<Answer>, Fault> {
    if context.snapshot.config.session.mode == SessionMode::Stateless {
        return Ok(method_not_allowed(context));
    }
    let session = context.session().await?;
    context.gateway.sessions.end(&session, EndReason::Deleted).await?;
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
