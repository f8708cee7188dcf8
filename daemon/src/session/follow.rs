//! What a new configuration means to target sessions in use: one whose target is as it was stays, one whose target was
//! configured anew goes on there, and one whose target is gone is parted from. Begins no session.

use std::sync::Arc;

use super::{Session, slots::Slot, table::Sessions, targets::TargetSession};
use crate::target::Target;

/// What becomes of a target session whose target is not as it was.
#[derive(Debug)]
enum Moved {
    /// It goes on at the target as it is now.
    On(Arc<TargetSession>),
    /// It ends: there is no such target any more, or it is elsewhere now and does not know it there.
    Over,
}

impl Sessions {
    /// Has a session that is held here follow the targets of the current configuration.
    pub(super) fn follow_targets(self: &Arc<Self>, session: &Arc<Session>) {
        for (old, moved) in session.move_targets(&self.targets.load()) {
            session.lists.forget_target(&old.target.config.uid);
            match moved {
                Moved::On(open) => {
                    // Requests of its that wait for the client are in its session still.
                    old.unheard.cancel();
                    self.listen(session, &open);
                }
                Moved::Over => {
                    old.gone.cancel();
                    old.target.delete_later(old.newest_wire(), &self.tasks);
                }
            }
        }
    }
}

impl Session {
    /// Replaces or takes out what is open at targets that are not among `current`.
    fn move_targets(&self, current: &[Arc<Target>]) -> Vec<(Arc<TargetSession>, Moved)> {
        let mut ties = self.ties.lock();
        let record = Arc::clone(&ties.record);
        let mut moved = Vec::new();
        ties.slots.retain(|uid, slot| {
            let Slot::Open(open) = slot else { return true };
            if current.iter().any(|target| Arc::ptr_eq(target, &open.target)) {
                return true;
            }
            let old = Arc::clone(open);
            let target = current.iter().find(|target| *target.config.uid == **uid);
            let Some(target) = target else {
                moved.push((old, Moved::Over));
                return false;
            };
            let next = record.targets.get(uid).and_then(|binding| old.moved(binding, target).ok());
            let goes_on = next.is_some();
            moved.push((
                old,
                next.map_or(Moved::Over, |next| {
                    *open = Arc::new(next);
                    Moved::On(Arc::clone(open))
                }),
            ));
            goes_on
        });
        moved
    }
}
