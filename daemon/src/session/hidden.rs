//! Parts from targets that a session's caller may see no longer (`spec.access`): what is hidden is neither asked nor
//! heard. Judges no request.

use std::sync::Arc;

use super::{Session, slots::Slot, table::Sessions, targets::TargetSession};
use crate::access::Access;

impl Sessions {
    /// Ends what the session has open at targets that `access`, its caller's of now, does not show. Nothing of theirs is
    /// heard from here on, but on the streams of calls that the target lets run on, and what they asked is answered in the
    /// client's place; where the caller sees one of them again, its next use begins anew.
    pub fn part_from_hidden(self: &Arc<Self>, session: &Arc<Session>, access: &Access<'_>) {
        if access.is_unlimited() {
            return;
        }
        for hidden in session.hide(access) {
            self.part_from(session, hidden);
        }
    }
}

impl Session {
    /// What is open where `access` shows nothing. Handshakes that run there are marked.
    fn hide(&self, access: &Access<'_>) -> Vec<Arc<TargetSession>> {
        let mut hidden = Vec::new();
        for slot in self.ties.lock().slots.values_mut() {
            match slot {
                Slot::Open(open) if !access.sees_target(open.target.alias()) => {
                    hidden.push(Arc::clone(open));
                }
                Slot::Opening(opening) => {
                    opening.is_hidden |= !access.sees_target(opening.target.alias());
                }
                Slot::Open(_) => {}
            }
        }
        hidden
    }
}
