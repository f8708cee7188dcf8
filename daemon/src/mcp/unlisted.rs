//! Resources that no target lists and no template makes: asked of the session's open targets, oldest first (DESIGN §2,
//! Names). Each is asked as any request is; where there are several, an answer is looked at whole before it is passed on.

use std::{sync::Arc, time::Duration};

use http::Response;

use super::{
    Context,
    destination::Destination,
    forward::{self, Asked},
};
use crate::{
    body::Answer,
    edge::Accepts,
    fault::{Blame, Fault},
    jsonrpc::Message,
    receive::Share,
    session::Session,
    target::{Target, exchange::error_object},
};

pub(super) async fn resource(
    context: &mut Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    uri: String,
    (share, accepts): (Share, Accepts),
) -> Result<Response<Answer>, Fault> {
    let of = Arc::new(context.on_behalf()?);
    let access = context.access()?;
    let seen = context.snapshot.targets.iter().filter(|target| access.sees_target(target.alias()));
    let open: Vec<Arc<Target>> =
        seen.filter(|target| session.open_target(target).is_some()).map(Arc::clone).collect();
    let asked = |context: &Context<'_>, target: &Arc<Target>, accepts, patience| Asked {
        session,
        message,
        destination: Destination::to(target),
        of: context.on_behalf_at(target, Arc::clone(&of)),
        accepts,
        patience,
    };
    if let [only] = open.as_slice() {
        context.account.target = Some(only.alias().to_owned());
        return forward::carry_out(context, &asked(context, only, accepts, None), share).await;
    }
    // Whoever is asked next holds the message still.
    let _share = share;
    let mut failed = None;
    for (at, target) in open.iter().enumerate() {
        context.account.target = Some(target.alias().to_owned());
        // Of one that is silent the others are not kept waiting.
        let is_last = at + 1 == open.len();
        let patience = (!is_last).then(|| Duration::from_secs(target.config.timeouts.connect_seconds.into()));
        let share = context.gateway.shared.budget.share();
        let asked = asked(context, target, accepts.in_part(), patience);
        match forward::carry_out(context, &asked, share).await {
            Ok(answer) if knows(answer.body()) => return Ok(answer),
            Ok(_) => {}
            Err(fault) if fault.blame() == Blame::Target => failed = failed.or(Some(fault)),
            Err(fault) => return Err(fault),
        }
    }
    // Where one could not be asked, nobody can say that there is no such resource.
    Err(failed.unwrap_or(Fault::ResourceNotFound(uri)))
}

/// Whether a target's answer is about the resource. Servers say in many codes that they do not know it.
fn knows(answer: &Answer) -> bool {
    // Errors are small: what is still coming is none.
    answer.as_whole().is_none_or(|json| error_object(json).is_none())
}
