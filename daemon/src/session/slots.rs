//! What is known of a session's target sessions on this replica: which are there, which begin, and which the record says
//! are lost. Knows no IO.

use std::{collections::HashMap, sync::Arc};

use mooring_crds::config::OnSessionLoss;
use tokio::sync::watch;

use super::{Session, Ties, record::Binding, target_session::TargetSession};
use crate::{fault::Fault, target::Target};

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

/// Takes out what is open at targets that the record knows no session at: it was parted from, here or by another replica.
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

/// What a handshake comes to.
pub(super) type Outcome = Result<Arc<TargetSession>, Fault>;

/// What is found of one that is needed.
pub(super) enum Found {
    /// It is there, or cannot be.
    Outcome(Outcome),
    /// It begins.
    Opening(watch::Receiver<Option<Outcome>>),
    /// There is none: whoever finds that begins one, and tells.
    Begin(Arc<Target>, watch::Sender<Option<Outcome>>, watch::Receiver<Option<Outcome>>),
    /// It is lost, and by the target's policy a new one takes its place.
    Renew(Binding),
}

impl Session {
    pub(super) fn look_up(&self, target: &Arc<Target>) -> Found {
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
                if let Some(Slot::Open(older)) = ties.slots.insert(uid, Slot::Opening(slot)) {
                    older.gone.cancel();
                }
                Found::Begin(Arc::clone(target), tell, opening)
            }
        }
    }

    /// What the record says of `target` now.
    pub(super) fn bound(&self, target: &Arc<Target>) -> Option<Outcome> {
        let ties = self.ties.lock();
        let binding = ties.record.targets.get(target.config.uid.as_str())?;
        Some(TargetSession::bound(binding, target).map(Arc::new))
    }

    /// Enters what came of a handshake; whether its target was hidden meanwhile.
    pub(super) fn settle(&self, target: &Target, outcome: &Outcome) -> bool {
        let mut ties = self.ties.lock();
        let uid = target.config.uid.as_str();
        let opening = match outcome {
            Ok(open) if ties.record.targets.contains_key(uid) => {
                ties.slots.insert(uid.into(), Slot::Open(Arc::clone(open)))
            }
            // Another replica has parted from it since it was stored.
            Ok(open) => {
                open.gone.cancel();
                ties.slots.remove(uid)
            }
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
    pub(super) fn known(&self, target: &Arc<Target>) -> Option<Outcome> {
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
    pub(super) fn take_target(&self, target: &Target) -> Option<Arc<TargetSession>> {
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
        let late = testing::target_session("a");
        session.settle(&late.target, &Ok(Arc::clone(&late)));
        assert!(late.gone.is_cancelled(), "nor does it come in behind that");
        assert!(session.open_target(&parted.target).is_none());
        assert!(Arc::ptr_eq(&session.open_target(&kept.target).unwrap(), &kept));
        assert!(matches!(session.look_up(&begun), Found::Opening(_)), "nobody waits for a second handshake");
    }
}
