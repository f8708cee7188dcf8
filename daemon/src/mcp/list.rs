//! `tools/list`: answered from the catalogue, never by asking targets on the client's behalf.

use std::sync::{Arc, atomic::Ordering};

use http::Response;

use super::Context;
use crate::{
    body::Answer,
    fault::Fault,
    jsonrpc::{Params, envelope::text, reply},
    relay::json_response,
    session::Session,
};

pub(super) async fn tools(
    context: &Context<'_>,
    session: &Arc<Session>,
    id: &[u8],
    params: &Params,
) -> Result<Response<Answer>, Fault> {
    let bad = || {
        Fault::InvalidParams("this cursor is of no list, or of one that has changed; list again".to_owned())
    };
    let cursor = match params.cursor.as_deref() {
        None | Some(b"null") => None,
        Some(raw) => Some(text(raw).map_err(|_| bad())?),
    };
    let view = context.gateway.view(session.version);
    view.settled().await;
    // The generation is read before the list: a change between the two is told once too often, never too seldom.
    let generation = view.generation();
    let merged = view.merged();
    let access = context.access()?;
    let page = if access.is_unlimited() {
        merged.page(cursor.as_deref(), generation)
    } else {
        // The same list without what this caller may not see, made for it alone.
        merged.visible(&context.snapshot.router, &access).page(cursor.as_deref(), generation)
    };
    let page = page.ok_or_else(bad)?;
    session.seen.fetch_max(generation, Ordering::Relaxed);
    Ok(json_response(Answer::whole(reply::result(id, &page))))
}
