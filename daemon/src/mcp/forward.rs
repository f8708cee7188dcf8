//! Requests that go to a target: found, entered among the session's calls, forwarded and relayed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use mooring_crds::config::OnSessionLoss;
use tokio::time::Instant;

use super::{
    Context,
    destination::{Destination, Finder},
    subscription::Subscription,
    unlisted,
};
use crate::{
    body::Answer,
    edge::Accepts,
    fault::Fault,
    jsonrpc::{Kind, Message},
    receive::Share,
    relay::{Forward, Request, limits::CallLimits, pause::Pause, progress, relay},
    session::{
        Session,
        calls::{Beginning, Call},
    },
    target::{OnBehalf, body::Outgoing},
};

/// Forwards `message`, a request, to where it belongs.
pub(super) async fn request(
    context: &mut Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    share: Share,
    accepts: Accepts,
) -> Result<Response<Answer>, Fault> {
    let of = Arc::new(context.on_behalf()?);
    let found = Finder { context, session, of: &of }.find(message).await;
    let destination = match found {
        Err(Fault::ResourceNotFound(uri)) => {
            let way = (share, accepts);
            return Box::pin(unlisted::resource(context, session, message, uri, way)).await;
        }
        found => found?,
    };
    context.account.target = Some(destination.target.alias().to_owned());
    let of = context.on_behalf_at(&destination.target, of);
    carry_out(context, &Asked { session, message, destination, of, accepts, patience: None }, share).await
}

/// Forwards a request whose way is known, and once more where the target forgot the session and may be given a new one.
pub(super) async fn carry_out(
    context: &Context<'_>,
    asked: &Asked<'_>,
    share: Share,
) -> Result<Response<Answer>, Fault> {
    let Asked { session, message, destination: Destination { target, .. }, .. } = asked;
    let again = target.config.on_session_loss == OnSessionLoss::Reinitialize;
    let subscription = Subscription::of(message);
    if let Some(subscription) = &subscription {
        subscription.sent(session, target);
    }
    let outcome = match attempt(context, asked, share).await {
        // Refused before it was executed, and never anything else: so it may be repeated, once (DESIGN §3.6).
        Err(Fault::TargetSessionLost { target: _, ran: false }) if again => {
            let share = context.gateway.shared.budget.share();
            Box::pin(attempt(context, asked, share)).await
        }
        outcome => outcome,
    };
    if let (Some(subscription), Ok(answer)) = (&subscription, &outcome) {
        subscription.answered(session, target, answer.body());
    }
    outcome
}

/// A request whose way is known.
pub(super) struct Asked<'r> {
    pub(super) session: &'r Arc<Session>,
    pub(super) message: &'r Message,
    pub(super) destination: Destination,
    pub(super) of: Arc<OnBehalf>,
    pub(super) accepts: Accepts,
    /// How long the target may be silent, where that is less than its configuration says.
    pub(super) patience: Option<Duration>,
}

async fn attempt(context: &Context<'_>, asked: &Asked<'_>, share: Share) -> Result<Response<Answer>, Fault> {
    let Asked { session, message, destination, of, accepts, patience } = asked;
    let Kind::Request { id, params, .. } = &message.kind else { return Err(Fault::MethodNotFound) };
    let Destination { target, edit, tool, tasks } = destination;
    let token = params.meta.as_deref().and_then(progress::given);
    let pause = Arc::new(Pause::default());
    let streams = match accepts {
        Accepts::JsonOrStream => true,
        Accepts::Json | Accepts::Part => false,
    };
    let beginning = Beginning { id, target, clock: &pause, streams, token: token.clone() };
    let mut call = Call::begin(session, beginning)?;
    let sessions = Arc::clone(&context.gateway.sessions);
    let opened = tokio::select! {
        biased;
        ended = &mut call.ended => Err(ended.unwrap_or(Fault::ShuttingDown)),
        open = sessions.target_session(session, target, of) => open,
    };
    // A refusal is an answer: nothing runs at the target that could be cancelled.
    let open = opened.inspect_err(|_| call.answered())?;
    let body = match edit {
        Some((part, with)) => Outgoing::from(message.replace(part, with.clone())),
        None => Outgoing::from(message.bytes.clone()),
    };
    let timeouts = &target.config.timeouts;
    let limits =
        tool.as_deref().map_or_else(|| CallLimits::of(timeouts), |tool| CallLimits::of_tool(timeouts, tool));
    let limits = patience.map_or(limits, |patience| limits.within(patience));
    let forward = Box::new(Forward {
        call,
        open,
        of: Arc::clone(of),
        sessions,
        started: context.account.started,
        sent: Instant::now(),
        token,
        stream: None,
        held: context.gateway.shared.budget.share(),
        limits,
        pause,
        over: std::sync::OnceLock::new(),
        tasks: *tasks,
    });
    relay(forward, Request { body, share }, *accepts).await
}

/// A part of a message, and what stands in its place for the target.
pub(super) type Edit = (Bytes, Bytes);
