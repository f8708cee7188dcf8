//! The lists of every kind: answered from the catalogue, but for targets that list for each session.

use std::sync::Arc;

use http::Response;

use super::Context;
use crate::{
    access::sees,
    body::Answer,
    catalog::{kind::Kind, pages::Filter, per_session::Asking},
    fault::Fault,
    jsonrpc::{Params, envelope::text, reply},
    relay::json_response,
    session::Session,
    target::Target,
};

pub(super) async fn list(
    context: &Context<'_>,
    session: &Arc<Session>,
    kind: Kind,
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
    let view = context.gateway.view_of(session, context.account.started);
    let caller = Arc::new(context.on_behalf()?);
    let of = |target: &Target| context.on_behalf_at(target, Arc::clone(&caller));
    let access = context.access()?;
    let asking =
        Asking { sessions: &context.gateway.sessions, session, view: &view, of: &of, access: &access };
    let (catalogue, list) = asking.list(kind).await;
    let visible = (!access.is_unlimited()).then(|| sees(access));
    let filter: Filter<'_> = visible.as_ref().map(|visible| visible as _);
    let page = list.page(cursor.as_deref(), filter).ok_or_else(bad)?;
    session.seen.note(kind, catalogue.list(kind).mark(filter));
    Ok(json_response(Answer::whole(reply::result(id, &page))))
}
