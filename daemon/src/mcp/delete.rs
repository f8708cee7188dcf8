//! DELETE: the client ends its session (2025-11-25, transports, session management 5).

use http::{Response, StatusCode};

use super::Context;
use crate::{
    body::Answer,
    fault::{EndReason, Fault},
};

pub(super) async fn delete(context: &mut Context<'_>) -> Result<Response<Answer>, Fault> {
    let session = context.session().await?;
    context.gateway.sessions.end(&session, EndReason::Deleted).await?;
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
