//! What a new configuration means to target sessions in use: one whose target is as it was stays, one whose target was
//! configured anew goes on there, one whose target has moved is of no more use, and one whose target is gone is parted
//! from. Begins no session.

use std::sync::Arc;

use super::{Session, slots::Slot, table::Sessions, targets::TargetSession};
use crate::target::Target;

/// What becomes of a target session whose target is not as it was.
#[derive(Debug)]
enum Moved {
    /// It goes on at the target as it is now.
    On(Arc<TargetSession>),
    /// The target is elsewhere now, and does not know it there. Calls that run where it was may end there, and it is there
    /// still should the target come back.
    Elsewhere,
    /// There is no such target any more.
    Removed,
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
                Moved::Elsewhere => old.gone.cancel(),
                Moved::Removed => self.part_from(session, old),
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
                moved.push((old, Moved::Removed));
                return false;
            };
            let next = record.targets.get(uid).and_then(|binding| old.moved(binding, target).ok());
            let goes_on = next.is_some();
            moved.push((
                old,
                next.map_or(Moved::Elsewhere, |next| {
                    *open = Arc::new(next);
                    Moved::On(Arc::clone(open))
                }),
            ));
            goes_on
        });
        moved
    }
}
