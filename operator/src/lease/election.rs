//! Reads the Lease, does what `lease::decide` says, and tells the process when it leads and when no longer.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client};
use mooring_runtime::Clock;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Read, Step, Terms, decide};
use crate::apply::Writer;

/// The Lease's name, in the operator's own namespace.
pub const NAME: &str = "mooring-operator";

/// One replica's part in the election.
pub struct Election {
    client: Client,
    writer: Writer,
    clock: Clock,
    terms: Terms,
    namespace: String,
    me: String,
    /// The last version seen, and since when.
    seen: Option<(String, Instant)>,
    /// When we last wrote the Lease as ours.
    renewed: Option<Instant>,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election")
            .field("me", &self.me)
            .field("renewed", &self.renewed)
            .finish_non_exhaustive()
    }
}

/// How a wait for the Lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// We lead now.
    Elected,
    /// We led, and no longer do.
    Lost,
    /// The process is to end.
    Drained,
}

impl Election {
    /// The election in `namespace`, as `me`.
    pub fn new(client: Client, writer: Writer, clock: Clock, namespace: &str, me: &str) -> Self {
        Self {
            client,
            writer,
            clock,
            terms: Terms::KUBERNETES,
            namespace: namespace.to_owned(),
            me: me.to_owned(),
            seen: None,
            renewed: None,
        }
    }

    /// Takes part until this replica leads.
    pub async fn stand(&mut self, drain: &CancellationToken) -> Ended {
        self.until(drain, |step, leads| (leads && step != Step::Lost).then_some(Ended::Elected)).await
    }

    /// Renews until the Lease is lost.
    pub async fn hold(&mut self, drain: &CancellationToken) -> Ended {
        self.until(drain, |step, _| (step == Step::Lost).then_some(Ended::Lost)).await
    }

    /// Gives the Lease back, so that a standby need not wait for it to run out.
    pub async fn release(&mut self) {
        if self.renewed.take().is_none() {
            return;
        }
        let (read, lease) = self.read().await;
        if matches!(read, Read::Found { holder, .. } if holder == self.me) {
            self.write(lease.as_ref(), "").await;
        }
    }

    async fn until(
        &mut self,
        drain: &CancellationToken,
        ended: impl Fn(Step, bool) -> Option<Ended>,
    ) -> Ended {
        loop {
            // A leader's deadline holds even while a request of its own hangs: a standby may lead soon after it.
            let deadline = self.renewed.map(|renewed| renewed + self.terms.renew_within);
            let step = match deadline {
                None => self.step().await,
                Some(deadline) => timeout_at(deadline, self.step()).await.unwrap_or(Step::Lost),
            };
            if step == Step::Lost {
                self.renewed = None;
            }
            if let Some(ended) = ended(step, self.renewed.is_some()) {
                return ended;
            }
            if timeout(self.terms.every, drain.cancelled()).await.is_ok() {
                return Ended::Drained;
            }
        }
    }

    async fn step(&mut self) -> Step {
        let (read, lease) = self.read().await;
        let since = self.renewed.map(|renewed| renewed.elapsed());
        let step = decide(&self.me, since, &read, &self.terms);
        match step {
            Step::Create | Step::Take | Step::Renew => {
                // The moment before the request: a slow answer must not lengthen the term.
                let asked = Instant::now();
                let me = self.me.clone();
                if self.write(lease.as_ref(), &me).await {
                    self.renewed = Some(asked);
                }
            }
            Step::Wait | Step::Lost => {}
        }
        step
    }

    async fn read(&mut self) -> (Read, Option<Lease>) {
        let api = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let lease = match timeout(self.patience(), api.get_opt(NAME)).await {
            Ok(Ok(Some(lease))) => lease,
            Ok(Ok(None)) => return (Read::Absent, None),
            Ok(Err(error)) => {
                tracing::warn!(%error, namespace = self.namespace, "the Lease {NAME} could not be read");
                return (Read::Failed, None);
            }
            Err(_) => {
                tracing::warn!(namespace = self.namespace, "the Lease {NAME} could not be read in time");
                return (Read::Failed, None);
            }
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            _ => Instant::now(),
        };
        self.seen = Some((version, since));
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let read = Read::Found {
            holder: spec.holder_identity.unwrap_or_default(),
            unchanged: since.elapsed(),
            lease: seconds.map_or(self.terms.lease, Duration::from_secs),
        };
        (read, Some(lease))
    }

    /// Writes `holder` into the Lease, on condition that it is still as read. True where that went well.
    async fn write(&self, old: Option<&Lease>, holder: &str) -> bool {
        let lease = self.lease(old, holder);
        match timeout(self.patience(), self.writer.lease(&lease)).await {
            Ok(Ok(())) => true,
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                tracing::debug!("another replica wrote the Lease {NAME} first");
                false
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, namespace = self.namespace, "the Lease {NAME} could not be written");
                false
            }
            Err(_) => {
                tracing::warn!(namespace = self.namespace, "the Lease {NAME} could not be written in time");
                false
            }
        }
    }

    fn lease(&self, old: Option<&Lease>, holder: &str) -> Lease {
        let milliseconds = self.clock.now().0;
        let now = jiff::Timestamp::from_millisecond(milliseconds).ok().map(MicroTime);
        let spec = old.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = spec.holder_identity.as_deref() == Some(holder);
        let transitions = spec.lease_transitions.unwrap_or(0);
        let metadata = ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(self.namespace.clone()),
            resource_version: old.and_then(|lease| lease.metadata.resource_version.clone()),
            ..ObjectMeta::default()
        };
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: i32::try_from(self.terms.lease.as_secs()).ok(),
            acquire_time: if ours { spec.acquire_time } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(if ours { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        };
        Lease { metadata, spec: Some(spec) }
    }

    /// What one request may take: so little that several fit into a renewal's time.
    fn patience(&self) -> Duration {
        self.terms.renew_within / 3
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
