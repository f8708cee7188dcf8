//! A session's ties to targets: a target session begins at the first use, once, however many calls race, and is kept
//! in the record (DESIGN §3.4).

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderValue;
use tokio::{sync::watch, time::timeout};

use super::{Session, record::Binding, table::Sessions};
use crate::{
    fault::Fault,
    store::Written,
    target::{
        OnBehalf, Target, Wire,
        body::Outgoing,
        exchange,
        handshake::{Introduction, handshake},
    },
    version::LATEST,
};

/// By the target's uid.
pub(super) type Slots = HashMap<Box<str>, Slot>;

/// What is known of one target session.
#[derive(Debug)]
pub(super) enum Slot {
    /// A handshake runs; everybody waits for the same one.
    Opening(watch::Receiver<Option<Outcome>>),
    /// It is there.
    Open(Arc<TargetSession>),
}

type Outcome = Result<Arc<TargetSession>, Fault>;

/// A target session in use.
#[derive(Debug)]
pub struct TargetSession {
    /// The target.
    pub target: Arc<Target>,
    /// Its session, as it stands in headers.
    pub wire: Wire,
}

enum Found {
    Outcome(Outcome),
    Opening(watch::Receiver<Option<Outcome>>),
    Begin(watch::Sender<Option<Outcome>>, watch::Receiver<Option<Outcome>>),
}

/// How often a compare-and-set is tried again after a conflict, before the store counts as away.
const ATTEMPTS: usize = 8;
/// How long a notification may take to be taken.
const NOTICE: Duration = Duration::from_secs(5);

impl Sessions {
    /// The target session of `session` at `target`, begun now where there is none yet.
    ///
    /// # Errors
    /// [`Fault::TargetSessionLost`], or what the handshake failed for; a failure is told to all who wait and not kept.
    pub async fn target_session(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: &Arc<Target>,
        of: &Arc<OnBehalf>,
    ) -> Outcome {
        let mut opening = match session.look_up(target) {
            Found::Outcome(outcome) => return outcome,
            Found::Opening(opening) => opening,
            Found::Begin(tell, opening) => {
                // A task of its own: a caller that leaves must not take the others' handshake with it.
                let (sessions, session, target) = (Arc::clone(self), Arc::clone(session), Arc::clone(target));
                let of = Arc::clone(of);
                self.tasks.spawn(async move {
                    let outcome = sessions.begin(&session, &target, &of).await;
                    session.settle(&target, &outcome);
                    // Looked at behind the entry: an end takes the entries first and finds this one, or came before
                    // and is seen here.
                    let outcome = match session.end_reason() {
                        None => outcome,
                        Some(reason) => {
                            if let Some(open) = session.take_target(&target) {
                                target.delete_later(open.wire.clone(), &sessions.tasks);
                            }
                            Err(Fault::SessionEnded(reason))
                        }
                    };
                    tell.send_replace(Some(outcome));
                });
                opening
            }
        };
        // The handshake is bounded, and so is this wait; a sender that is gone was dropped by the shutdown.
        match opening.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => Err(Fault::ShuttingDown),
        }
    }

    async fn begin(&self, session: &Arc<Session>, target: &Arc<Target>, of: &Arc<OnBehalf>) -> Outcome {
        let record = session.stored().record;
        let introduction = Introduction {
            of,
            version: session.version,
            client_info: &record.client_info,
            capabilities: record.capabilities.as_str(),
        };
        let established = handshake(&self.tasks, target, introduction)
            .await
            .map_err(|failure| exchange::fault(target, failure))?;
        let ours = TargetSession { target: Arc::clone(target), wire: established.wire };
        let kept = self.keep(session, &ours).await;
        match kept {
            Ok(true) => Ok(Arc::new(ours)),
            // Another replica was faster: its target session is the session's, ours is nobody's.
            Ok(false) => {
                target.delete_later(ours.wire, &self.tasks);
                session.bound(target).unwrap_or(Err(Fault::UnknownSession))
            }
            Err(fault) => {
                target.delete_later(ours.wire, &self.tasks);
                Err(fault)
            }
        }
    }

    /// Writes the binding into the record; `false` where the record has one for this target already.
    async fn keep(&self, session: &Session, ours: &TargetSession) -> Result<bool, Fault> {
        let (uid, binding) = (&ours.target.config.uid, ours.binding());
        for _ in 0..ATTEMPTS {
            let current = session.stored();
            let Some(next) = current.record.bound(uid, binding.clone()) else { return Ok(false) };
            let next = Arc::new(next);
            match self.store.compare_and_set(session.key, Some(current.revision), Arc::clone(&next)).await {
                Ok(Written::Stored(revision)) => {
                    session.adopt(crate::store::Stored { record: next, revision });
                    return Ok(true);
                }
                Ok(Written::Conflict(Some(newer))) => session.adopt(newer),
                Ok(Written::Conflict(None)) => return Err(Fault::UnknownSession),
                // A session in memory goes on without its store; only its survival is at stake.
                Err(error) => {
                    tracing::warn!(session = %session.key, %error, "a target session could not be stored");
                    if session.keep_unstored(&current, next) {
                        return Ok(true);
                    }
                }
            }
        }
        Err(Fault::StoreAway)
    }

    /// Notes that the target forgot `gone`: calls to it in this session are refused from now on.
    pub async fn target_session_lost(&self, session: &Session, gone: &TargetSession) {
        let uid = &gone.target.config.uid;
        for _ in 0..ATTEMPTS {
            let current = session.stored();
            // Noted by another call already.
            let Some(next) = current.record.without(uid, &gone.binding()) else { break };
            let next = Arc::new(next);
            match self.store.compare_and_set(session.key, Some(current.revision), Arc::clone(&next)).await {
                Ok(Written::Stored(revision)) => {
                    session.adopt(crate::store::Stored { record: next, revision });
                    gone.target.metrics.lost();
                    break;
                }
                Ok(Written::Conflict(Some(newer))) => session.adopt(newer),
                Ok(Written::Conflict(None)) => return,
                Err(error) => {
                    tracing::warn!(session = %session.key, %error, "a lost target session could not be stored");
                    if session.keep_unstored(&current, next) {
                        gone.target.metrics.lost();
                        break;
                    }
                }
            }
        }
        session.forget(gone);
        self.rearm(session.key).await;
    }
}

impl Session {
    fn look_up(&self, target: &Arc<Target>) -> Found {
        let mut ties = self.ties.lock();
        match ties.slots.get(target.config.uid.as_str()) {
            Some(Slot::Opening(opening)) => return Found::Opening(opening.clone()),
            Some(Slot::Open(open)) if Arc::ptr_eq(&open.target, target) => {
                return Found::Outcome(Ok(Arc::clone(open)));
            }
            // None, or one made with an older configuration of the target: the record decides.
            Some(Slot::Open(_)) | None => {}
        }
        let uid: Box<str> = target.config.uid.as_str().into();
        match ties.record.targets.get(&uid).map(|binding| TargetSession::bound(binding, target)) {
            Some(Ok(session)) => {
                let session = Arc::new(session);
                ties.slots.insert(uid, Slot::Open(Arc::clone(&session)));
                Found::Outcome(Ok(session))
            }
            Some(Err(lost)) => Found::Outcome(Err(lost)),
            None => {
                let (tell, opening) = watch::channel(None);
                ties.slots.insert(uid, Slot::Opening(opening.clone()));
                Found::Begin(tell, opening)
            }
        }
    }

    /// What the record says of `target` now.
    fn bound(&self, target: &Arc<Target>) -> Option<Outcome> {
        let ties = self.ties.lock();
        let binding = ties.record.targets.get(target.config.uid.as_str())?;
        Some(TargetSession::bound(binding, target).map(Arc::new))
    }

    fn settle(&self, target: &Target, outcome: &Outcome) {
        let mut ties = self.ties.lock();
        match outcome {
            Ok(open) => {
                drop(ties.slots.insert(target.config.uid.as_str().into(), Slot::Open(Arc::clone(open))));
            }
            Err(_) => drop(ties.slots.remove(target.config.uid.as_str())),
        }
    }

    fn forget(&self, gone: &TargetSession) {
        let mut ties = self.ties.lock();
        let uid = gone.target.config.uid.as_str();
        let same =
            matches!(ties.slots.get(uid), Some(Slot::Open(open)) if open.wire.same_session(&gone.wire));
        if same {
            ties.slots.remove(uid);
        }
    }

    /// The target session, where one is open here: what a notification can be sent to.
    pub fn open_target(&self, target: &Target) -> Option<Arc<TargetSession>> {
        match self.ties.lock().slots.get(target.config.uid.as_str()) {
            Some(Slot::Open(open)) => Some(Arc::clone(open)),
            Some(Slot::Opening(_)) | None => None,
        }
    }

    /// Takes one target session away, where it is open here.
    fn take_target(&self, target: &Target) -> Option<Arc<TargetSession>> {
        match self.ties.lock().slots.remove(target.config.uid.as_str()) {
            Some(Slot::Open(open)) => Some(open),
            Some(Slot::Opening(_)) | None => None,
        }
    }

    /// Takes all target sessions away, for the farewell: those in use here, and those that the record ties to one of
    /// the `known` targets.
    pub(super) fn take_targets(&self, known: &[Arc<Target>]) -> Vec<Arc<TargetSession>> {
        let mut ties = self.ties.lock();
        let slots = std::mem::take(&mut ties.slots);
        let record = Arc::clone(&ties.record);
        drop(ties);
        // A handshake that runs finds the session ended, and says farewell itself.
        let mut open: HashMap<Box<str>, Arc<TargetSession>> = slots
            .into_iter()
            .filter_map(|(uid, slot)| match slot {
                Slot::Open(open) => Some((uid, open)),
                Slot::Opening(_) => None,
            })
            .collect();
        for target in known {
            let uid = target.config.uid.as_str();
            let tied = record.targets.get(uid).map(|binding| TargetSession::bound(binding, target));
            if let Some(Ok(tied)) = tied {
                open.entry(uid.into()).or_insert_with(|| Arc::new(tied));
            }
        }
        open.into_values().collect()
    }
}

impl TargetSession {
    /// Sends a notification. Best effort: nobody waits for it, and the target may have gone.
    pub async fn notify(&self, message: Bytes) {
        match timeout(NOTICE, self.target.post(&self.wire, Outgoing::from(message))).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => {
                tracing::debug!(target = self.target.alias(), %failure, "notification not taken");
            }
            Err(_) => tracing::debug!(target = self.target.alias(), "notification not taken in time"),
        }
    }

    fn binding(&self) -> Binding {
        Binding::Open {
            id: self.wire.id.as_ref().and_then(|id| id.to_str().ok()).map(Into::into),
            version: self.wire.version.unwrap_or(LATEST),
            url: self.target.config.url.as_str().into(),
            endpoint: self.wire.endpoint,
        }
    }

    /// The session that a record ties to `target`. One made at another URL is lost: nobody there knows it.
    fn bound(binding: &Binding, target: &Arc<Target>) -> Result<Self, Fault> {
        let lost = || Fault::TargetSessionLost { target: target.alias().to_owned() };
        match binding {
            Binding::Open { id, version, url, endpoint } if **url == *target.config.url => {
                let id = id.as_deref().map(HeaderValue::from_str).transpose().map_err(|_| lost())?;
                Ok(Self {
                    target: Arc::clone(target),
                    wire: Wire { id, version: Some(*version), endpoint: *endpoint, of: Arc::default() },
                })
            }
            Binding::Open { .. } | Binding::Lost => Err(lost()),
        }
    }
}
