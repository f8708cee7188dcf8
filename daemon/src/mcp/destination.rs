//! Which target a request belongs to, by its method and what it names (2025-11-25, server features), and what must stand
//! in it for that target to understand it.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use super::{Context, forward::Edit};
use crate::{
    catalog::{kind, per_session::Asking, view::View},
    fault::Fault,
    jsonrpc::{Kind, Message, envelope::text, span},
    route::Route,
    session::{Session, task_ids},
    target::{OnBehalf, Target},
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

/// Who looks for a destination.
pub(super) struct Finder<'r> {
    pub(super) context: &'r Context<'r>,
    pub(super) session: &'r Arc<Session>,
    pub(super) of: &'r Arc<OnBehalf>,
}

impl Destination {
    pub(super) fn to(target: &Arc<Target>) -> Self {
        Self { target: Arc::clone(target), edit: None, tool: None, tasks: false }
    }
}

impl Finder<'_> {
    /// Finds it.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] or [`Fault::ResourceNotFound`] where what is named is nowhere, [`Fault::MethodNotFound`] for
    /// a method that no one target can be found for.
    pub(super) async fn find(&self, message: &Message) -> Result<Destination, Fault> {
        let Kind::Request { method, .. } = &message.kind else { return Err(Fault::MethodNotFound) };
        match method.as_str() {
            "tools/call" => self.tool(message).await,
            "prompts/get" => Box::pin(self.prompt(message, &["params", "name"])).await,
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                Box::pin(self.resource(message, &["params", "uri"], kind::Kind::Resources)).await
            }
            "completion/complete" => Box::pin(self.completion(message)).await,
            "tasks/get" | "tasks/result" | "tasks/cancel" => self.task(message),
            _ => self.only(),
        }
    }

    async fn tool(&self, message: &Message) -> Result<Destination, Fault> {
        let nameless = || Fault::InvalidParams("tools/call needs the name of a tool".to_owned());
        let Kind::Request { params, .. } = &message.kind else { return Err(nameless()) };
        let raw = params.name.as_ref().ok_or_else(nameless)?;
        let exposed = text(raw).map_err(|_| nameless())?;
        let (target, own) = self.tool_named(&exposed).await?;
        let edit = (own != exposed).then(|| (raw.clone(), json(&own)));
        // Looked for only where the word stands in the message at all.
        let task = memchr::memmem::find(&message.bytes, br#""task""#).is_some()
            && span::find(&message.bytes, &["params", "task"]).is_some();
        Ok(Destination { edit, tool: Some(own.into_owned()), tasks: task, target })
    }

    /// The target of an exposed name, and the tool's own name there. A tool that the target's configuration hides is not
    /// there.
    async fn tool_named<'n>(&self, exposed: &'n str) -> Result<(Arc<Target>, Cow<'n, str>), Fault> {
        let unknown = || Fault::InvalidParams(format!("Unknown tool: {exposed}"));
        let snapshot = &self.context.snapshot;
        let (target, own) = match snapshot.router.route(exposed) {
            Route::Target(at, own) => {
                let target = snapshot.targets.get(at).ok_or_else(unknown)?;
                (Arc::clone(target), Cow::Borrowed(own))
            }
            Route::Catalog(own) => {
                let (target, own) = self.listed(kind::Kind::Tools, own).await.ok_or_else(unknown)?;
                (target, Cow::Owned(own))
            }
            Route::None => return Err(unknown()),
        };
        // Exactly what is said of a tool that does not exist.
        let allowed = target.offers_tool(&own) && self.context.access()?.allows_tool(target.alias(), &own);
        if allowed { Ok((target, own)) } else { Err(unknown()) }
    }

    async fn prompt(&self, message: &Message, place: &[&str]) -> Result<Destination, Fault> {
        let nameless = || Fault::InvalidParams("the name of a prompt is missing".to_owned());
        let raw = span::value(&message.bytes, place).ok_or_else(nameless)?;
        let exposed = text(&raw).map_err(|_| nameless())?;
        let found = self.listed(kind::Kind::Prompts, &exposed).await;
        let (target, own) =
            found.ok_or_else(|| Fault::InvalidParams(format!("Unknown prompt: {exposed}")))?;
        let edit = (own != exposed).then(|| (raw.clone(), json(&own)));
        Ok(Destination { edit, ..Destination::to(&target) })
    }

    /// URIs pass unchanged.
    async fn resource(
        &self,
        message: &Message,
        place: &[&str],
        kind: kind::Kind,
    ) -> Result<Destination, Fault> {
        let nameless = || Fault::InvalidParams("the URI of a resource is missing".to_owned());
        let raw = span::value(&message.bytes, place).ok_or_else(nameless)?;
        let uri = text(&raw).map_err(|_| nameless())?;
        let found = self.listed(kind, &uri).await;
        let (target, _) = found.ok_or_else(|| Fault::ResourceNotFound(uri.into_owned()))?;
        Ok(Destination::to(&target))
    }

    /// What is completed is an argument of a prompt, or of a resource's template (2025-11-25, completion).
    async fn completion(&self, message: &Message) -> Result<Destination, Fault> {
        let bad = || Fault::InvalidParams("ref must be of type ref/prompt or ref/resource".to_owned());
        let raw = span::value(&message.bytes, &["params", "ref", "type"]).ok_or_else(bad)?;
        match text(&raw).map_err(|_| bad())?.as_ref() {
            "ref/prompt" => self.prompt(message, &["params", "ref", "name"]).await,
            "ref/resource" => {
                let place = ["params", "ref", "uri"];
                match self.resource(message, &place, kind::Kind::Templates).await {
                    Err(Fault::ResourceNotFound(_)) => {
                        self.resource(message, &place, kind::Kind::Resources).await
                    }
                    found => found,
                }
            }
            _ => Err(bad()),
        }
    }

    /// A task belongs to the target that its id names.
    fn task(&self, message: &Message) -> Result<Destination, Fault> {
        let unknown = || Fault::InvalidParams("no task of this session has this id".to_owned());
        let exposed = task_ids::requested(&message.bytes).ok_or_else(unknown)?;
        let (alias, own) = task_ids::split(&exposed).ok_or_else(unknown)?;
        let raw = span::value(&message.bytes, &["params", "taskId"]).ok_or_else(unknown)?;
        let target = self.context.snapshot.targets.iter().find(|target| target.alias() == alias);
        let target = target.filter(|target| self.sees(target)).ok_or_else(unknown)?;
        Ok(Destination { edit: Some((raw, json(own))), tasks: true, ..Destination::to(target) })
    }

    /// A method that we do not know passes where there is one target that can be meant.
    fn only(&self) -> Result<Destination, Fault> {
        match self.context.snapshot.targets.as_slice() {
            [target] if self.sees(target) => Ok(Destination::to(target)),
            [_] | [] | [_, _, ..] => Err(Fault::MethodNotFound),
        }
    }

    async fn listed(&self, kind: kind::Kind, exposed: &str) -> Option<(Arc<Target>, String)> {
        let Self { context, session, of } = self;
        let view: Arc<View> = context.gateway.view_of(session, context.account.started);
        let access = context.access().ok()?;
        let of = |target: &Target| context.on_behalf_at(target, Arc::clone(of));
        let asking =
            Asking { sessions: &context.gateway.sessions, session, view: &view, of: &of, access: &access };
        let found = match asking.find_known(kind, exposed) {
            None => Box::pin(asking.find(kind, exposed)).await,
            known => known,
        };
        found.filter(|(target, _)| access.sees_target(target.alias()))
    }

    /// Whether the caller sees this target at all.
    fn sees(&self, target: &Target) -> bool {
        self.context.access().is_ok_and(|access| access.sees_target(target.alias()))
    }
}

/// A text as JSON.
fn json(text: &str) -> Bytes {
    Bytes::from(serde_json::Value::from(text).to_string())
}
