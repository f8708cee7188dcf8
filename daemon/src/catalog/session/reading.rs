//! What a catalogue session reads of its target, and how it is shown. Decides nothing of when to read.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::{
    super::{
        kind::{self, ByKind, Kind},
        listing::Hello,
        lists::{self, Unread},
    },
    Begin, FIRST_PAUSE, Kept, Over,
};
use crate::{fault::TargetFailure, target::handshake::Established};

/// Shows at once what the target announces; whether it is well, its lists will say. None where nobody looks any more.
pub(super) fn introduce(
    begin: &Begin,
    established: &Established,
    kept: &mut Kept,
    announced: ByKind<bool>,
) -> Option<()> {
    let known = kept.listing.known_mut();
    known.hello = Some(Arc::new(Hello {
        capabilities: established.capabilities.clone(),
        instructions: established.instructions.clone(),
    }));
    for kind in kind::ALL.into_iter().filter(|kind| !announced.get(*kind)) {
        known.lists.set(kind, Some(Arc::new([])));
        known.unread.set(kind, None);
    }
    let view = begin.view.upgrade()?;
    view.publish(kept.listing.clone()).then_some(())
}

/// Reads the lists of these kinds beside each other, and shows each as it comes: one that is slow keeps no other waiting.
pub(super) async fn read(
    begin: &Begin,
    established: &Established,
    kept: &mut Kept,
    wanted: ByKind<bool>,
) -> Result<(), Over> {
    let Begin { view, target, stop, .. } = begin;
    let wire = &established.wire;
    let asking = wanted.kinds().map(|kind| async move {
        // An id for each kind: each is asked for once at a time.
        let id = (kind as u8 + 1).to_string();
        (kind, lists::read(target, wire, kind, &id).await)
    });
    let mut asking: FuturesUnordered<_> = asking.collect();
    while let Some((kind, outcome)) = stop.run_until_cancelled(asking.next()).await.ok_or(Over::Stopped)? {
        let known = kept.listing.known_mut();
        match outcome {
            Ok(items) => {
                known.lists.set(kind, Some(items));
                known.unread.set(kind, None);
            }
            Err(Unread::Lost) => return Err(Over::Lost),
            Err(Unread::Failed(failure)) if is_of_the_whole(kind, &failure) => {
                return Err(Over::Failed(failure));
            }
            Err(Unread::Failed(failure)) => {
                tracing::warn!(target = target.alias(), list = kind.method(), %failure, "catalogue: a list cannot be read");
                let last = known.lists.get(kind).clone().unwrap_or_default();
                known.lists.set(kind, Some(last));
                known.unread.set(kind, Some(failure));
            }
        }
        let Some(view) = view.upgrade() else { return Err(Over::Stopped) };
        // Well as soon as its tools were read.
        if kind == Kind::Tools {
            kept.listing.set_ready(established.version);
        }
        if !view.publish(kept.listing.clone()) {
            return Err(Over::Stopped);
        }
    }
    // It may list no tools at all.
    if kept.listing.version() != Some(established.version) {
        let Some(view) = view.upgrade() else { return Err(Over::Stopped) };
        kept.listing.set_ready(established.version);
        if !view.publish(kept.listing.clone()) {
            return Err(Over::Stopped);
        }
    }
    (kept.pause, kept.lost) = (FIRST_PAUSE, false);
    Ok(())
}

/// Whether a list that cannot be read tells of the whole target rather than of that list.
fn is_of_the_whole(kind: Kind, failure: &TargetFailure) -> bool {
    kind == Kind::Tools || matches!(failure, TargetFailure::Unreachable(_) | TargetFailure::Forbidden(_))
}
