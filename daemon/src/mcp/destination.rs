//! Which target a request belongs to, by its method and what it names (2025-11-25, server features), and what must stand
//! in it for that target to understand it.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use super::{Context, forward::Edit};
use crate::{
    fault::Fault,
    jsonrpc::{Kind, Message, Params, envelope::text, span},
    route::Route,
    session::{Session, task_ids},
    target::Target,
};

/// Where a request goes.
pub(super) struct Destination {
    /// To this target.
    pub(super) target: Arc<Target>,
    /// With this in place of what names it to the client.
    pub(super) edit: Option<Edit>,
    /// The tool that it calls, by the target's own name.
    pub(super) tool: Option<String>,
    /// Whether its answer speaks of tasks.
    pub(super) tasks: bool,
}

impl Destination {
    /// Finds it.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] where what is named is nowhere, [`Fault::MethodNotFound`] for a method that no one target
    /// can be found for.
    pub(super) async fn find(
        context: &Context<'_>,
        session: &Session,
        message: &Message,
    ) -> Result<Self, Fault> {
        let Kind::Request { method, params, .. } = &message.kind else { return Err(Fault::MethodNotFound) };
        match method.as_str() {
            "tools/call" => tool(context, session, message, params).await,
            "tasks/get" | "tasks/result" | "tasks/cancel" => task(context, message),
            _ => only(context),
        }
    }

    fn to(target: &Arc<Target>) -> Self {
        Self { target: Arc::clone(target), edit: None, tool: None, tasks: false }
    }
}

async fn tool(
    context: &Context<'_>,
    session: &Session,
    message: &Message,
    params: &Params,
) -> Result<Destination, Fault> {
    let nameless = || Fault::InvalidParams("tools/call needs the name of a tool".to_owned());
    let raw = params.name.as_ref().ok_or_else(nameless)?;
    let exposed = text(raw).map_err(|_| nameless())?;
    let (target, own) = tool_named(context, session, &exposed).await?;
    let edit = (own != exposed).then(|| (raw.clone(), json(&own)));
    // Looked for only where the word stands in the message at all.
    let task = memchr::memmem::find(&message.bytes, br#""task""#).is_some()
        && span::find(&message.bytes, &["params", "task"]).is_some();
    Ok(Destination { edit, tool: Some(own.into_owned()), tasks: task, target })
}

/// The target of an exposed name, and the tool's own name there.
async fn tool_named<'n>(
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

/// A task belongs to the target that its id names.
fn task(context: &Context<'_>, message: &Message) -> Result<Destination, Fault> {
    let unknown = || Fault::InvalidParams("no task of this session has this id".to_owned());
    let exposed = task_ids::requested(&message.bytes).ok_or_else(unknown)?;
    let (alias, own) = task_ids::split(&exposed).ok_or_else(unknown)?;
    let raw = span::value(&message.bytes, &["params", "taskId"]).ok_or_else(unknown)?;
    let target = context.snapshot.targets.iter().find(|target| target.alias() == alias);
    let target = target.ok_or_else(unknown)?;
    Ok(Destination { edit: Some((raw, json(own))), tasks: true, ..Destination::to(target) })
}

/// A method that we do not know passes where there is one target that can be meant.
fn only(context: &Context<'_>) -> Result<Destination, Fault> {
    match context.snapshot.targets.as_slice() {
        [target] => Ok(Destination::to(target)),
        [] | [_, _, ..] => Err(Fault::MethodNotFound),
    }
}

/// A text as JSON.
fn json(text: &str) -> Bytes {
    Bytes::from(serde_json::Value::from(text).to_string())
}
