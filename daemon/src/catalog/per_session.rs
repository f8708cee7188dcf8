//! Lists as one session sees them. Asks no target that the catalogue may speak for.
//!
//! They are the catalogue's, and for targets that list for each session or by the caller's credentials, what the
//! session's own target session lists (DESIGN §3.4).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{
    item::Item,
    kind::{ByKind, Kind},
    listing::{Listing, is_per_session},
    lists::{self, Unread},
    merge::{Marks, Merged},
    pages::{List, Of},
    template::Template,
    view::View,
};
use crate::{
    access::Access,
    session::{Session, table::Sessions},
    target::{OnBehalf, Target},
};

/// Numbers the reads of lists in clients' target sessions: each has an id of its own, and one that no client gives.
static NEXT_READ: AtomicU64 = AtomicU64::new(0);

/// The marks of the lists that a client has seen.
#[derive(Debug)]
pub struct Seen(ByKind<AtomicU64>);

impl Seen {
    /// As of these.
    pub fn new(marks: Marks) -> Self {
        Self(ByKind::new(|kind| AtomicU64::new(*marks.get(kind))))
    }

    /// The marks.
    pub fn marks(&self) -> Marks {
        ByKind::new(|kind| self.0.get(kind).load(Ordering::Relaxed))
    }

    /// The client was given the list of a kind that has this mark.
    pub fn note(&self, kind: Kind, mark: u64) {
        self.0.get(kind).store(mark, Ordering::Relaxed);
    }
}

/// The lists that a session's own target sessions gave, by the target's uid. As many as the session has such targets.
#[derive(Debug, Default)]
pub struct OwnLists(Mutex<HashMap<Box<str>, Own>>);

#[derive(Debug, Default)]
struct Own {
    lists: ByKind<Option<Arc<[Item]>>>,
    /// Grows when a list is forgotten: one that was being read then is not kept.
    revision: u64,
}

impl OwnLists {
    fn get(&self, uid: &str, kind: Kind) -> Result<Arc<[Item]>, u64> {
        let mut all = self.0.lock();
        let own = all.entry(uid.into()).or_default();
        own.lists.get(kind).clone().ok_or(own.revision)
    }

    fn keep(&self, uid: &str, kind: Kind, revision: u64, items: &Arc<[Item]>) {
        if let Some(own) = self.0.lock().get_mut(uid)
            && own.revision == revision
        {
            own.lists.set(kind, Some(Arc::clone(items)));
        }
    }

    /// The target said in this session that a list of it has changed.
    pub fn forget(&self, uid: &str, kind: Kind) {
        if let Some(own) = self.0.lock().get_mut(uid) {
            own.lists.set(kind, None);
            own.revision += 1;
        }
    }

    /// The session has a new target session, or none.
    pub fn forget_target(&self, uid: &str) {
        if let Some(own) = self.0.lock().get_mut(uid) {
            own.lists = ByKind::default();
            own.revision += 1;
        }
    }
}

/// Who asks for a list.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// Where target sessions begin.
    pub sessions: &'a Arc<Sessions>,
    /// For which session.
    pub session: &'a Arc<Session>,
    /// What the catalogue knows.
    pub view: &'a View,
    /// On whose behalf, at a target: what the request has of headers goes with it where the target takes them.
    pub of: &'a (dyn Fn(&Target) -> Arc<OnBehalf> + Send + Sync),
    /// What the caller sees: a target that it does not see begins no session for it, nor gets a token of it.
    pub access: &'a Access<'a>,
}

impl std::fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("session", &self.session.key).finish_non_exhaustive()
    }
}

impl Asking<'_> {
    /// The list of a kind as the session sees it, and the catalogue's lists that it was made with: their marks are what
    /// the client has seen.
    ///
    /// Waits `connectSeconds` at most for each target, all at once; one that does not list in time is left out.
    pub async fn list(&self, kind: Kind) -> (Arc<Merged>, Arc<List>) {
        let merged = self.view.settled(kind).await;
        if !has_own(&merged) {
            let list = Arc::clone(merged.list(kind));
            return (merged, list);
        }
        let listings = merged.listings.iter().map(|listing| async move {
            if !is_per_session(listing.target()) {
                return Arc::clone(listing);
            }
            let items = self.own(listing, kind).await.unwrap_or_default();
            Arc::new(listing.with_items(kind, items))
        });
        let listings = join_all(listings).await;
        let list = List::merge(kind, &merged.router, &listings, Of::Session).marked_by_content();
        (merged, Arc::new(list))
    }

    /// The target behind an exposed name or a URI, where the catalogue decides that and has it already; see
    /// [`Self::find`].
    pub fn find_known(&self, kind: Kind, exposed: &str) -> Option<(Arc<Target>, String)> {
        self.view.look(|merged| if has_own(merged) { None } else { found_in(merged, kind, exposed) })
    }

    /// The target behind an exposed name or a URI, and what the target calls it; see [`Merged::target_of`].
    pub async fn find(&self, kind: Kind, exposed: &str) -> Option<(Arc<Target>, String)> {
        let mut merged = self.view.merged();
        if has_own(&merged) {
            // The session's own list decides, since it is what the client was shown.
            let found = self.find_own(kind, exposed).await;
            return found.or_else(|| found_in(&merged, kind, exposed));
        }
        if merged.target_of(kind, exposed).is_none() {
            // It may be of a target that was not heard of yet.
            merged = self.view.settled(kind).await;
            if kind == Kind::Resources {
                merged = self.view.settled(Kind::Templates).await;
            }
        }
        found_in(&merged, kind, exposed)
    }

    async fn find_own(&self, kind: Kind, exposed: &str) -> Option<(Arc<Target>, String)> {
        let target = |merged: &Merged, at: usize| Some(Arc::clone(merged.listings.get(at)?.target()));
        let (merged, list) = self.list(kind).await;
        if let Some((at, own)) = list.find(exposed) {
            return Some((target(&merged, at)?, own.to_owned()));
        }
        if kind != Kind::Resources {
            return None;
        }
        let (merged, templates) = self.list(Kind::Templates).await;
        let makes = |text: &str| Template::parse(text).is_some_and(|template| template.matches(exposed));
        let (at, _) = templates.iter().find(|(_, text)| makes(text))?;
        Some((target(&merged, at)?, exposed.to_owned()))
    }

    /// What the session's own target session lists.
    async fn own(&self, listing: &Listing, kind: Kind) -> Option<Arc<[Item]>> {
        let (target, lists) = (listing.target(), &self.session.lists);
        if !self.access.sees_target(target.alias()) {
            return None;
        }
        if listing.capabilities().is_some_and(|announced| !announced.has(kind.capability())) {
            return None;
        }
        let of = (self.of)(target);
        let reading = async {
            // Once more where the target forgot the session: its policy may be that a new one begins.
            for _ in 0..2 {
                let revision = match lists.get(listing.uid(), kind) {
                    Ok(items) => return Some(items),
                    Err(revision) => revision,
                };
                let open = self.sessions.target_session(self.session, target, &of).await.ok()?;
                let id = format!("\"mooring-list-{}\"", NEXT_READ.fetch_add(1, Ordering::Relaxed));
                match lists::read(target, &open.wire.by(&of), kind, &id).await {
                    Ok(items) => {
                        lists.keep(listing.uid(), kind, revision, &items);
                        return Some(items);
                    }
                    Err(Unread::Lost) => self.sessions.target_session_forgotten(self.session, &open).await,
                    Err(Unread::Failed(failure)) => {
                        tracing::debug!(target = target.alias(), list = kind.method(), %failure, "not listed for a session");
                        return None;
                    }
                }
            }
            None
        };
        let items = timeout(target.connect_bound(), reading).await.ok().flatten();
        if items.is_none() {
            tracing::debug!(target = target.alias(), list = kind.method(), "left out of a session's list");
            target.metrics.unlisted();
        }
        items
    }
}

fn has_own(merged: &Merged) -> bool {
    merged.listings.iter().any(|listing| is_per_session(listing.target()))
}

fn found_in(merged: &Merged, kind: Kind, exposed: &str) -> Option<(Arc<Target>, String)> {
    let (at, own) = merged.target_of(kind, exposed)?;
    Some((Arc::clone(merged.listings.get(at)?.target()), own.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_being_read_while_it_changed_is_not_kept() {
        let lists = OwnLists::default();
        let items: Arc<[Item]> = Arc::new([]);
        let Err(revision) = lists.get("uid", Kind::Tools) else { panic!("nothing was kept yet") };
        lists.forget("uid", Kind::Tools);
        lists.keep("uid", Kind::Tools, revision, &items);
        let Err(revision) = lists.get("uid", Kind::Tools) else { panic!("it was stale") };
        lists.keep("uid", Kind::Tools, revision, &items);
        assert!(lists.get("uid", Kind::Tools).is_ok() && lists.get("uid", Kind::Prompts).is_err());
        lists.forget_target("uid");
        assert!(lists.get("uid", Kind::Tools).is_err());
    }
}
