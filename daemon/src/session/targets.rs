//! A session's ties to targets: a target session begins at the first use, once, however many calls race, and is kept
//! in the record (DESIGN §3.4).

use std::{collections::HashMap, sync::Arc};

use mooring_crds::config::OnSessionLoss;
use tokio::{sync::watch, time::timeout};

pub use super::target_session::TargetSession;
use super::{Session, Ties, listen::LISTENED, record::Binding, table::Sessions};
use crate::{
    capabilities::ServerCapabilities,
    fault::{EndReason, Fault},
    target::{
        OnBehalf, Target, exchange,
        handshake::{Introduction, handshake},
    },
};

/// By the target's uid.
pub(super) type Slots = HashMap<Box<str>, Slot>;

/// What is known of one target session.
#[derive(Debug)]
pub(super) enum Slot {
    /// A handshake runs; everybody waits for the same one.
    Opening(Opening),
    /// It is there.
    Open(Arc<TargetSession>),
}

/// A handshake that runs.
#[derive(Debug)]
pub(super) struct Opening {
    /// With whom.
    pub(super) target: Arc<Target>,
    outcome: watch::Receiver<Option<Outcome>>,
    /// Whether the caller may see the target no longer: then it is parted from once it is there.
    pub(super) is_hidden: bool,
}

/// Takes out what is open at targets that the record knows no session at: another replica has parted from it.
pub(super) fn drop_untied(ties: &mut Ties) {
    let Ties { record, slots, .. } = ties;
    slots.retain(|uid, slot| match slot {
        Slot::Open(open) if !record.targets.contains_key(uid) => {
            open.gone.cancel();
            false
        }
        Slot::Open(_) | Slot::Opening(_) => true,
    });
}

type Outcome = Result<Arc<TargetSession>, Fault>;

enum Found {
    Outcome(Outcome),
    Opening(watch::Receiver<Option<Outcome>>),
    Begin(Arc<Target>, watch::Sender<Option<Outcome>>, watch::Receiver<Option<Outcome>>),
    /// It is lost, and by the target's policy a new one takes its place.
    Renew(Binding),
}

/// What comes of a handshake that runs. It is bounded, and so is this wait.
async fn opened(mut opening: watch::Receiver<Option<Outcome>>) -> Outcome {
    match opening.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => outcome.clone(),
        // A sender that is gone was dropped by the shutdown.
        Ok(None) | Err(_) => Err(Fault::ShuttingDown),
    }
}

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
        // The configuration may have changed since the request looked at it.
        let same = |current: &&Arc<Target>| current.config.uid == target.config.uid;
        let look_up = || {
            let targets = self.targets.load();
            session.look_up(targets.iter().find(same).unwrap_or(target))
        };
        let mut found = look_up();
        if let Found::Renew(lost) = &found {
            self.untie(session, &target.config.uid, lost).await;
            found = look_up();
        }
        let outcome = match found {
            Found::Outcome(outcome) => outcome,
            Found::Opening(opening) => opened(opening).await,
            Found::Begin(target, tell, opening) => {
                self.begin_beside(session, target, of, tell);
                opened(opening).await
            }
            // Lost anew in this very moment.
            Found::Renew(_) => {
                Err(Fault::TargetSessionLost { target: target.alias().to_owned(), ran: false })
            }
        };
        if let Ok(open) = &outcome {
            open.used_by(of);
            // It may change at any time, and looks for what is open behind its entry.
            if self.targets.load().iter().any(|current| Arc::ptr_eq(current, &open.target)) {
                self.listen(session, open);
            } else {
                self.follow_targets(session);
            }
        }
        outcome
    }

    /// Begins a target session in a task of its own: a caller that leaves must not take the others' handshake with it.
    fn begin_beside(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: Arc<Target>,
        of: &Arc<OnBehalf>,
        tell: watch::Sender<Option<Outcome>>,
    ) {
        let (sessions, session, of) = (Arc::clone(self), Arc::clone(session), Arc::clone(of));
        self.tasks.spawn(async move {
            let outcome = sessions.begin(&session, &target, &of).await;
            let is_hidden = session.settle(&target, &outcome);
            // Looked at behind the entry: an end takes the entries first and finds this one, or came before and is seen
            // here. One of a single request ends without a reason.
            let over = session.ended.is_cancelled().then_some(EndReason::Deleted);
            let outcome = match session.end_reason().or(over) {
                None => outcome,
                Some(reason) => {
                    if let Some(open) = session.take_target(&target) {
                        target.delete_later(open.newest_wire(), &sessions.tasks);
                    }
                    Err(Fault::SessionEnded(reason))
                }
            };
            let open = outcome.as_ref().ok().map(Arc::clone);
            tell.send_replace(Some(outcome));
            // What changed during the handshake passed it over; whoever waited for it may have gone.
            if let Some(open) = open.filter(|_| is_hidden) {
                sessions.part_from(&session, open);
            }
            if !sessions.targets.load().iter().any(|current| Arc::ptr_eq(current, &target)) {
                sessions.follow_targets(&session);
            }
        });
    }

    async fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: &Arc<Target>,
        of: &Arc<OnBehalf>,
    ) -> Outcome {
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
        let ours = TargetSession::new(target, established.wire);
        let kept = self.keep(session, &ours).await;
        match kept {
            Ok(true) => {
                let ours = Arc::new(ours);
                self.prepare(session, &ours, &established.capabilities).await;
                Ok(ours)
            }
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

    /// What a target session that has just begun still needs before the call that it was begun for.
    async fn prepare(
        self: &Arc<Self>,
        session: &Arc<Session>,
        open: &Arc<TargetSession>,
        announced: &ServerCapabilities,
    ) {
        self.listen(session, open);
        if session.hears(open) {
            let listened = timeout(LISTENED, open.listened.cancelled()).await;
            tracing::trace!(in_time = listened.is_ok(), target = open.target.alias(), "listening");
        }
        let level = session.stored().record.log_level.clone().filter(|_| announced.has("logging"));
        let subscribed =
            session.known_channel().map(|channel| channel.subscribed.at(&open.target.config.uid));
        let subscribed = subscribed.unwrap_or_default();
        if level.is_some() || !subscribed.is_empty() {
            let (session, open) = (Arc::clone(session), Arc::clone(open));
            self.spawn(async move { catch_up(&session, &open, level.as_deref(), &subscribed).await });
        }
    }

    /// Listens to every target that the session has used.
    pub fn listen_to_all(self: &Arc<Self>, session: &Arc<Session>, targets: &[Arc<Target>]) {
        for target in targets {
            if let Some(Ok(open)) = session.known(target) {
                self.listen(session, &open);
            }
        }
    }
}

/// Tells a target session what its client has told others of it.
async fn catch_up(session: &Session, open: &TargetSession, level: Option<&str>, subscribed: &[Box<str>]) {
    if let Some(level) = level {
        open.set_log_level(level).await;
    }
    for uri in subscribed {
        // It may have been taken back meanwhile.
        let still = session.channel().subscribed.holds(&open.target.config.uid, uri);
        if still && !open.subscribe(uri).await {
            return;
        }
    }
}

impl Session {
    fn look_up(&self, target: &Arc<Target>) -> Found {
        let mut ties = self.ties.lock();
        match ties.slots.get(target.config.uid.as_str()) {
            Some(Slot::Opening(opening)) => return Found::Opening(opening.outcome.clone()),
            Some(Slot::Open(open)) if Arc::ptr_eq(&open.target, target) => {
                return Found::Outcome(Ok(Arc::clone(open)));
            }
            // None, or one made with an older configuration of the target: the record decides.
            Some(Slot::Open(_)) | None => {}
        }
        let uid: Box<str> = target.config.uid.as_str().into();
        let binding = ties.record.targets.get(&uid);
        match binding.map(|binding| (TargetSession::bound(binding, target), binding)) {
            Some((Ok(session), _)) => {
                let session = Arc::new(session);
                if let Some(Slot::Open(older)) = ties.slots.insert(uid, Slot::Open(Arc::clone(&session))) {
                    older.unheard.cancel();
                }
                Found::Outcome(Ok(session))
            }
            Some((Err(lost), binding)) => match target.config.on_session_loss {
                OnSessionLoss::Fail => Found::Outcome(Err(lost)),
                OnSessionLoss::Reinitialize => Found::Renew(binding.clone()),
            },
            None => {
                let (tell, opening) = watch::channel(None);
                let outcome = opening.clone();
                let slot = Opening { target: Arc::clone(target), outcome, is_hidden: false };
                ties.slots.insert(uid, Slot::Opening(slot));
                Found::Begin(Arc::clone(target), tell, opening)
            }
        }
    }

    /// What the record says of `target` now.
    fn bound(&self, target: &Arc<Target>) -> Option<Outcome> {
        let ties = self.ties.lock();
        let binding = ties.record.targets.get(target.config.uid.as_str())?;
        Some(TargetSession::bound(binding, target).map(Arc::new))
    }

    /// Enters what came of a handshake; whether its target was hidden meanwhile.
    fn settle(&self, target: &Target, outcome: &Outcome) -> bool {
        let mut ties = self.ties.lock();
        let uid = target.config.uid.as_str();
        let opening = match outcome {
            Ok(open) => ties.slots.insert(uid.into(), Slot::Open(Arc::clone(open))),
            Err(_) => ties.slots.remove(uid),
        };
        matches!(opening, Some(Slot::Opening(Opening { is_hidden: true, .. })))
    }

    pub(super) fn forget(&self, gone: &TargetSession) {
        let mut ties = self.ties.lock();
        let uid = gone.target.config.uid.as_str();
        let same =
            matches!(ties.slots.get(uid), Some(Slot::Open(open)) if open.wire.same_session(&gone.wire));
        if same {
            ties.slots.remove(uid);
        }
        drop(ties);
        self.lists.forget_target(uid);
        gone.gone.cancel();
    }

    /// The target session, where one is open here or the record tells of one.
    fn known(&self, target: &Arc<Target>) -> Option<Outcome> {
        let mut ties = self.ties.lock();
        if let Some(Slot::Open(open)) = ties.slots.get(target.config.uid.as_str())
            && Arc::ptr_eq(&open.target, target)
        {
            return Some(Ok(Arc::clone(open)));
        }
        let uid: Box<str> = target.config.uid.as_str().into();
        if ties.slots.contains_key(&uid) {
            return None;
        }
        let bound = ties.record.targets.get(&uid).map(|binding| TargetSession::bound(binding, target))?;
        let session = bound.map(Arc::new);
        if let Ok(session) = &session {
            ties.slots.insert(uid, Slot::Open(Arc::clone(session)));
        }
        Some(session)
    }

    /// All target sessions that are open here.
    pub fn open_targets(&self) -> Vec<Arc<TargetSession>> {
        let open = |slot: &Slot| match slot {
            Slot::Open(open) => Some(Arc::clone(open)),
            Slot::Opening(_) => None,
        };
        self.ties.lock().slots.values().filter_map(open).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session::record::Record,
        store::{Revision, Stored},
        testing,
    };

    #[test]
    fn what_another_replica_has_parted_from_is_dropped_here_and_what_has_just_begun_stays() {
        let session = testing::session();
        let (parted, kept, begun) =
            (testing::target_session("a"), testing::target_session("b"), testing::target("c"));
        let read = |record: &Record, revision| {
            let stored = Stored { record: Arc::new(record.clone()), revision: Revision(revision) };
            session.adopt(stored);
        };
        let of_kept = testing::record().bound("uid-b", kept.binding()).unwrap();
        let of_both = of_kept.bound("uid-a", parted.binding()).unwrap();
        read(&of_both, 2);
        for open in [&parted, &kept] {
            session.settle(&open.target, &Ok(Arc::clone(open)));
        }
        // Its tie is stored once its handshake is over.
        let Found::Begin(_, _tell, _opening) = session.look_up(&begun) else { panic!("it is no new one") };
        read(&of_both, 3);
        assert_eq!(session.open_targets().len(), 2);
        assert!(!parted.gone.is_cancelled());
        read(&of_kept, 4);
        assert!(parted.gone.is_cancelled() && !kept.gone.is_cancelled());
        assert!(session.open_target(&parted.target).is_none());
        assert!(Arc::ptr_eq(&session.open_target(&kept.target).unwrap(), &kept));
        assert!(matches!(session.look_up(&begun), Found::Opening(_)), "nobody waits for a second handshake");
    }
}
