//! observe -> plan -> apply -> judge -> status, for every kind. The only order of steps there is.

use std::{sync::Arc, time::Duration};

use kube::{Resource, ResourceExt, core::ApiResource, runtime::controller::Action};
use mooring_crds::condition::{self as conditions, reason};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    backoff,
    condition::{Verdict, merge, transitions},
    context::Context,
    error::Error,
    key::Key,
    kind::{Kind, NoPlan, Outcome},
    status_json::status_json,
    stores::Guarded,
};

/// How often an object is looked at although nothing is known to have changed: watches can miss.
const RESYNC: Duration = Duration::from_mins(10);

/// Brings one object about. An invalid spec gets its status too, and keeps its last good children.
pub async fn reconcile<K: Kind>(object: &K, ctx: &Context) -> Result<Action, Error> {
    if object.meta().deletion_timestamp.is_some() {
        // The garbage collector takes the children; nothing of ours waits for us.
        return Ok(Action::await_change());
    }
    let world = object.observe(&ctx.stores, &ctx.settings);
    let (outcome, failure) = match object.plan(&world, &ctx.settings) {
        Ok(plan) => match ctx.writer.children(object, &plan, &ctx.stores).await {
            Ok(applied) => (Outcome::Applied(applied), None),
            Err(error) => (Outcome::Failed(error.refusal()), Some(error)),
        },
        Err(NoPlan::Refused(refusal)) => (Outcome::Refused(refusal), None),
        Err(NoPlan::Json(error)) => {
            let error = Error::Json(error);
            (Outcome::Failed(error.refusal()), Some(error))
        }
    };
    let known = known_status(object, ctx)?;
    let status = object.judge(&world, &outcome, known.as_ref(), &ctx.now());
    if !settled(object, ctx, known.as_ref(), &status)? {
        ctx.writer.status(object, &status).await?;
        let old = known.as_ref().map_or(&[][..], |status| K::conditions(status));
        ctx.events.transitions(object, &transitions(old, K::conditions(&status))).await;
    }
    failure.map_or_else(|| Ok(Action::requeue(RESYNC)), Err)
}

/// The object's status; where the store still shows the version before our last write, what we wrote.
fn known_status<K: Kind>(object: &K, ctx: &Context) -> Result<Option<K::Status>, Error> {
    let written = ctx.ledger.status((K::KIND, &Key::of(object)));
    match written {
        Some(written) if written.before.is_some() && written.before == object.resource_version() => {
            Ok(Some(serde_json::from_value(written.status)?))
        }
        _ => Ok(object.status().cloned()),
    }
}

/// Whether the status is already so, or is what we last wrote and the API server kept of it what it would.
fn settled<K: Kind>(
    object: &K,
    ctx: &Context,
    known: Option<&K::Status>,
    status: &K::Status,
) -> Result<bool, Error> {
    if known == Some(status) {
        return Ok(true);
    }
    let written = ctx.ledger.status((K::KIND, &Key::of(object)));
    let Some(written) = written else { return Ok(false) };
    Ok(written.after.is_some()
        && written.after == object.resource_version()
        && written.status == status_json(status)?)
}

/// Reconciles, or, where the object cannot be decoded, says so once in the log and in its status.
pub async fn guarded<K: Kind>(object: Arc<Guarded<K>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let began = Instant::now();
    let key = Key::of(&*object);
    let result = match &object.0 {
        Ok(object) => reconcile(object, &ctx).await,
        Err(invalid) => undecodable::<K>(&key, &object.meta().clone(), &invalid.error, &ctx).await,
    };
    let outcome = match &result {
        Ok(_) => "ok",
        Err(error) => error.label(),
    };
    if result.is_ok() && object.0.is_ok() {
        ctx.ledger.succeeded((K::KIND, &key));
    }
    ctx.metrics.reconciled(K::KIND, outcome, began.elapsed());
    result
}

async fn undecodable<K: Kind>(
    key: &Key,
    meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    error: &str,
    ctx: &Context,
) -> Result<Action, Error> {
    let what = format!("{:?} {:?} {error}", meta.uid, meta.generation);
    if ctx.ledger.undecodable((K::KIND, key), &what) {
        ctx.metrics.undecodable(K::KIND);
        tracing::warn!(kind = K::KIND, object = %key, error, "the object cannot be decoded and is left alone");
        let message = format!("the object cannot be read: {error}; correct it, or delete it");
        let verdicts = vec![
            Verdict::no(conditions::ACCEPTED, reason::UNDECODABLE, message.clone()),
            Verdict::no(conditions::READY, reason::UNDECODABLE, message),
        ];
        let status = json!({ "conditions": merge(&[], verdicts, meta.generation, &ctx.now()) });
        if let Err(error) = ctx.writer.mark(&ApiResource::erase::<K>(&()), key, &status).await {
            // A status that cannot be decoded may not be writable either; the log has told.
            tracing::info!(kind = K::KIND, object = %key, %error, "the undecodable object could not be marked");
        }
    }
    Ok(Action::await_change())
}

/// What follows a failure: a wait that grows with each in a row.
pub fn failed<K: Kind>(object: &Guarded<K>, error: &Error, ctx: &Context) -> Action {
    let key = Key::of(object);
    let failures = ctx.ledger.failed((K::KIND, &key));
    let delay = backoff::delay(failures, &key);
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(kind = K::KIND, object = %key, %error, cause, failures, "a reconcile failed and is tried again");
    Action::requeue(delay)
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
