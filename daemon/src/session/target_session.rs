//! One target session that a client's session uses: what is said to it, and how it stands in the record.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::HeaderValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::record::Binding;
use crate::{
    fault::Fault,
    target::{OnBehalf, Target, Wire, body::Outgoing, unary},
    version::LATEST,
};

/// How long a notification may take to be taken.
const NOTICE: Duration = Duration::from_secs(5);

/// A target session in use.
#[derive(Debug)]
pub struct TargetSession {
    /// The target.
    pub target: Arc<Target>,
    /// Its session, as it stands in headers, on behalf of the request that began it.
    pub wire: Wire,
    /// On whose behalf it was last used: a caller's token lives shorter than the session.
    newest: ArcSwap<OnBehalf>,
    /// Fires when it is of no more use: lost, replaced, or parted from.
    pub gone: CancellationToken,
    /// Fires when what it says outside of calls is heard no more: it is gone, or another one listens in its place.
    pub(super) unheard: CancellationToken,
    /// Whether what it says outside of calls is listened to.
    pub(super) listening: AtomicBool,
    /// Fires when the target has answered whether it can be.
    pub(super) listened: CancellationToken,
}

impl TargetSession {
    /// One that was just begun, or that a record tells of.
    pub fn new(target: &Arc<Target>, wire: Wire) -> Self {
        let gone = CancellationToken::new();
        Self {
            target: Arc::clone(target),
            newest: ArcSwap::new(Arc::clone(&wire.of)),
            wire,
            unheard: gone.child_token(),
            gone,
            listening: AtomicBool::new(false),
            listened: CancellationToken::new(),
        }
    }

    /// Notes that a request uses it on behalf of `of`.
    pub fn used_by(&self, of: &Arc<OnBehalf>) {
        // Nearly always it says the same, and to replace it costs every core more than to look.
        if **self.newest.load() != **of {
            self.newest.store(Arc::clone(of));
        }
    }

    /// Its session, for what belongs to no request: on behalf of whoever used it last.
    pub fn newest_wire(&self) -> Wire {
        self.wire.by(&self.newest.load())
    }

    /// The same session at `target`, its target as it is configured now. One made at another URL is lost.
    pub(super) fn moved(&self, binding: &Binding, target: &Arc<Target>) -> Result<Self, Fault> {
        let next = Self::bound(binding, target)?;
        next.newest.store(self.newest.load_full());
        Ok(next)
    }

    /// Sends a notification. Best effort: nobody waits for it, and the target may have gone.
    pub async fn notify(&self, message: Bytes) {
        match timeout(NOTICE, self.target.post(&self.newest_wire(), Outgoing::from(message))).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => {
                tracing::debug!(target = self.target.alias(), %failure, "notification not taken");
            }
            Err(_) => tracing::debug!(target = self.target.alias(), "notification not taken in time"),
        }
    }

    /// Has the target log from this level on (2025-11-25, logging), by a request of this id, raw JSON. Best effort, as a
    /// notification.
    pub async fn set_log_level(&self, id: &str, level: &str) {
        self.told(id, "logging/setLevel", &serde_json::json!({ "level": level })).await;
    }

    /// Has the target say when the resource of this URI changes (2025-11-25, resources, subscriptions). Best effort, as a
    /// notification; whether it answered in time.
    pub(super) async fn subscribe(&self, id: &str, uri: &str) -> bool {
        self.told(id, "resources/subscribe", &serde_json::json!({ "uri": uri })).await
    }

    /// Has the target do something on our own account; whether it answered in time.
    async fn told(&self, id: &str, method: &str, params: &serde_json::Value) -> bool {
        let (wire, params) = (self.newest_wire(), params.to_string());
        let asked = timeout(NOTICE, unary::ask_as(&self.target, &wire, id, method, &params)).await;
        match &asked {
            Ok(Ok(_)) => {}
            Ok(Err(none)) => tracing::debug!(target = self.target.alias(), method, ?none, "not taken"),
            Err(_) => tracing::debug!(target = self.target.alias(), method, "not taken in time"),
        }
        asked.is_ok()
    }

    pub(super) fn binding(&self) -> Binding {
        Binding::Open {
            id: self.wire.id.as_ref().and_then(|id| id.to_str().ok()).map(Into::into),
            version: self.wire.version.unwrap_or(LATEST),
            url: self.target.config.url.as_str().into(),
            endpoint: self.wire.endpoint,
        }
    }

    /// The session that a record ties to `target`. One made at another URL is lost: nobody there knows it.
    pub(super) fn bound(binding: &Binding, target: &Arc<Target>) -> Result<Self, Fault> {
        let lost = || Fault::TargetSessionLost { target: target.alias().to_owned(), ran: false };
        match binding {
            Binding::Open { id, version, url, endpoint } if **url == *target.config.url => {
                let id = id.as_deref().map(HeaderValue::from_str).transpose().map_err(|_| lost())?;
                Ok(Self::new(
                    target,
                    Wire { id, version: Some(*version), endpoint: *endpoint, of: Arc::default() },
                ))
            }
            Binding::Open { .. } | Binding::Lost => Err(lost()),
        }
    }
}
