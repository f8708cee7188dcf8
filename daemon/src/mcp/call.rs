//! `tools/call`: to the target that the tool's name leads to.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use http::Response;
use tokio::time::Instant;

use super::Context;
use crate::{
    body::{Answer, Late},
    edge::Accepts,
    fault::Fault,
    jsonrpc::{Kind, Message, envelope::text},
    receive::Share,
    relay::{Forward, Request, progress, relay},
    route::Route,
    session::{Session, calls::Call},
    target::{OnBehalf, Target, body::Outgoing},
};

pub(super) async fn tool(
    context: &mut Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    share: Share,
    accepts: Accepts,
) -> Result<Response<Answer>, Fault> {
    let Kind::Request { id, params, .. } = &message.kind else { return Err(Fault::MethodNotFound) };
    let nameless = || Fault::InvalidParams("tools/call needs the name of a tool".to_owned());
    let raw = params.name.as_ref().ok_or_else(nameless)?;
    let exposed = text(raw).map_err(|_| nameless())?;
    let (target, own) = route(context, session, &exposed).await?;
    context.account.target = Some(target.alias().to_owned());

    let (headers, query) = (&context.head.headers, context.head.uri.query());
    let of = Arc::new(OnBehalf::from_request(headers, query, &target.config, None));
    let mut call = Call::begin(session, id, &target)?;
    let sessions = Arc::clone(&context.gateway.sessions);
    let open = tokio::select! {
        biased;
        ended = &mut call.ended => return Err(ended.unwrap_or(Fault::ShuttingDown)),
        open = sessions.target_session(session, &target, &of) => open?,
    };
    let body = if own == exposed {
        Outgoing::from(message.bytes.clone())
    } else {
        let own = serde_json::Value::from(own.as_ref()).to_string();
        Outgoing::from(message.replace(raw, Bytes::from(own)))
    };
    let token = params.meta.as_deref().and_then(progress::given);
    let forward = Forward {
        call,
        open,
        of,
        sessions,
        started: context.account.started,
        sent: Instant::now(),
        token,
        late: Late::default(),
        held: context.gateway.shared.budget.share(),
    };
    relay(forward, Request { body, share }, accepts).await
}

/// The target of an exposed name, and the tool's own name there.
async fn route<'n>(
    context: &Context<'_>,
    session: &Session,
    exposed: &'n str,
) -> Result<(Arc<Target>, Cow<'n, str>), Fault> {
    let unknown = || Fault::InvalidParams(format!("Unknown tool: {exposed}"));
    match context.snapshot.router.route(exposed) {
        Route::Target(at, own) => {
            let target = context.snapshot.targets.get(at).ok_or_else(unknown)?;
            Ok((Arc::clone(target), Cow::Borrowed(own)))
        }
        Route::Catalog(own) => {
            let view = context.gateway.view(session.version);
            let mut merged = view.merged();
            if merged.target_of(own).is_none() {
                // It may be of a target that was not heard of yet.
                merged = view.settled().await;
            }
            let listing = merged.target_of(own).and_then(|at| merged.listings.get(at)).ok_or_else(unknown)?;
            Ok((Arc::clone(listing.target()), Cow::Borrowed(own)))
        }
        Route::None => Err(unknown()),
    }
}
