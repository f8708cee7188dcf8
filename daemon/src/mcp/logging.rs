//! `logging/setLevel`: kept in the record, and told to every target of the session, those of now and those to come.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::Response;
use tokio::time::timeout;

use super::Context;
use crate::{
    body::Answer,
    fault::Fault,
    jsonrpc::{envelope::text, reply, span},
    relay::json_response,
    session::Session,
};

/// How long targets may take to be told.
const TOLD: Duration = Duration::from_secs(5);
/// What a level may be (2025-11-25, logging, log levels).
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(super) async fn set_level(
    context: &Context<'_>,
    session: &Arc<Session>,
    id: &[u8],
    message: &bytes::Bytes,
) -> Result<Response<Answer>, Fault> {
    let bad = || Fault::InvalidParams(format!("level must be one of {}", LEVELS.join(", ")));
    let raw = span::value(message, &["params", "level"]).ok_or_else(bad)?;
    let level = text(&raw).map_err(|_| bad())?;
    let level = LEVELS.into_iter().find(|known| *known == level).ok_or_else(bad)?;
    let sessions = &context.gateway.sessions;
    sessions.set_log_level(session, level).await?;
    let open = session.open_targets();
    // A target that does not listen delays nobody, and is told again in its next session.
    let told = timeout(
        TOLD,
        join_all(open.iter().map(async |open| open.set_log_level(&sessions.own_id(), level).await)),
    )
    .await;
    tracing::debug!(in_time = told.is_ok(), level, "log level");
    Ok(json_response(Answer::whole(reply::result(id, b"{}"))))
}
