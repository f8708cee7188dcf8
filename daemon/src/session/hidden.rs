//! Parts from targets that a session's caller may see no longer (`spec.access`): what is hidden is neither asked nor
//! heard. Judges no request.

use std::sync::Arc;

use super::{Session, table::Sessions};
use crate::access::Access;

impl Sessions {
    /// Ends what the session has open at targets that `access`, its caller's of now, does not show. Nothing of theirs is
    /// heard from here on, and what they asked is answered in the client's place; where the caller sees one of them
    /// again, its next use begins anew.
    pub fn part_from_hidden(self: &Arc<Self>, session: &Arc<Session>, access: &Access<'_>) {
        if access.is_unlimited() {
            return;
        }
        let open = session.open_targets().into_iter();
        for hidden in open.filter(|open| !access.sees_target(open.target.alias())) {
            session.forget(&hidden);
            let (sessions, session) = (Arc::clone(self), Arc::clone(session));
            self.tasks.spawn(async move {
                sessions.untie(&session, &hidden).await;
                hidden.target.delete(&hidden.newest_wire()).await;
            });
        }
    }
}
