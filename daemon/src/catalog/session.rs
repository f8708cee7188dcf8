//! One catalogue session: learns a target's lists, keeps its GET stream open while it announces changes, and tries
//! again with growing pauses where it fails. Counted apart from clients' sessions.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mooring_runtime::Tasks;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    kind::{self, ByKind, Kind},
    listing::{Known, Listing},
    view::{Hints, View},
};
use crate::{
    capabilities::ClientCapabilities,
    fault::TargetFailure,
    target::{
        OnBehalf, Target,
        handshake::{self, Established, Introduction},
        stream::Stream,
    },
    version::Version,
};

mod changes;
mod reading;

/// Lists are asked for again at this age, whatever was announced.
const FRESH: Duration = Duration::from_secs(300);
/// The same, where the target announces changes but no stream brings them, or a list could not be read.
const FRESH_UNHEARD: Duration = Duration::from_secs(30);
/// The first pause after a failure; each next one doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between the end of a stream and the next one, and before a hint is heeded.
const PAUSE: Duration = Duration::from_secs(1);

const CLIENT_INFO: &str = concat!(r#"{"name":"mooring","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// What is said of a target that loses its sessions one after the other, unlisted.
const FORGETFUL: &str = "a session that it forgets before its lists are read";

/// What a catalogue session is of.
pub(super) struct Begin {
    pub(super) view: Weak<View>,
    pub(super) target: Arc<Target>,
    pub(super) version: Version,
    pub(super) capabilities: ClientCapabilities,
    pub(super) hints: Arc<Hints>,
    pub(super) tasks: Tasks,
    pub(super) stop: CancellationToken,
}

/// Why a catalogue session is over.
enum Over {
    /// It was told to stop.
    Stopped,
    /// The target failed; nothing is known of it from now on but its last lists.
    Failed(TargetFailure),
    /// The target forgot the session; a new one begins soon.
    Lost,
}

/// What one catalogue session leaves to the next.
struct Kept {
    /// What is known of the target, as it was shown last. It stands so until something else is known: a session that
    /// begins anew changes nothing yet.
    listing: Listing,
    /// How long the next failure pauses; lists that were read make it short again.
    pause: Duration,
    /// Whether a session was lost since lists were last read.
    lost: bool,
}

/// Runs until it is told to stop, or until the view is gone.
pub(super) async fn run(begin: Begin, known: Known) {
    let of = Arc::new(OnBehalf::default());
    let Begin { view, target, version, capabilities, hints: _, tasks, stop } = &begin;
    let mut kept = Kept { listing: Listing::pending(target, known), pause: FIRST_PAUSE, lost: false };
    loop {
        // Not cut off by `stop`, or the session that the target is about to give would be nobody's; it has a bound.
        let introduction = Introduction {
            of: &of,
            version: *version,
            client_info: CLIENT_INFO,
            capabilities: capabilities.as_str(),
        };
        let over = match handshake::of_the_catalogue(tasks, target, introduction).await {
            Ok(established) => {
                let over = live(&begin, &established, &mut kept).await;
                target.delete(&established.wire).await;
                over
            }
            Err(failure) => Over::Failed(failure),
        };
        let failure = match over {
            Over::Stopped => return,
            // One session that is lost is a restart of the target; one after the other without lists is a failure.
            Over::Lost if std::mem::replace(&mut kept.lost, true) => Some(TargetFailure::Protocol(FORGETFUL)),
            Over::Lost => None,
            Over::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            let Some(view) = view.upgrade() else { return };
            kept.listing.set_failed(failure.clone());
            // Of a target that was reconfigured meanwhile this says nothing: another session asks it.
            if !view.publish(kept.listing.clone()) {
                return;
            }
            tracing::warn!(target = target.alias(), %failure, "catalogue: the target cannot be listed");
        }
        if timeout(kept.pause, stop.cancelled()).await.is_ok() {
            return;
        }
        kept.pause = (kept.pause * 2).min(LONGEST_PAUSE);
    }
}

/// From the handshake to the end of the session.
async fn live(begin: &Begin, established: &Established, kept: &mut Kept) -> Over {
    let Begin { target, hints, stop, .. } = begin;
    let announced = ByKind::new(|kind: Kind| established.capabilities.has(kind.capability()));
    let announces_changes =
        kind::ALL.iter().any(|kind| established.capabilities.flag(kind.capability(), "listChanged"));
    if reading::introduce(begin, established, kept, announced).is_none() {
        return Over::Stopped;
    }
    let mut stream: Option<Stream> = None;
    let (mut wanted, mut all_at) = (announced, Instant::now());
    loop {
        // The stream is open before lists are read, and stays open behind them, so that no change falls between.
        // Many servers allow one stream for a session and refuse a second while the first is not seen to have ended.
        if announces_changes && stream.is_none() {
            match stop.run_until_cancelled(changes::open(target, &established.wire)).await {
                Some(opened) => stream = opened,
                None => return Over::Stopped,
            }
        }
        if let Err(over) = reading::read(begin, established, kept, wanted).await {
            return over;
        }
        let now = Instant::now();
        if wanted == announced {
            all_at = now;
        }
        let unread = kind::ALL.iter().any(|kind| kept.listing.known().unread.get(*kind).is_some());
        let unheard = announces_changes && stream.is_none();
        let fresh = if unread || unheard { FRESH_UNHEARD } else { FRESH };
        let hears = changes::Hears {
            target,
            wire: &established.wire,
            capabilities: &begin.capabilities,
            announced,
            hints: stream.is_none().then_some(&**hints),
        };
        let next = timeout_at(all_at + fresh, stop.run_until_cancelled(hears.next(stream.as_mut())));
        wanted = match next.await {
            Ok(None) => return Over::Stopped,
            Ok(Some(changes::Changed::Announced(kinds))) => kinds,
            Err(_) => announced,
            // Not at once: a target that ends every stream would be asked without a pause.
            Ok(Some(changes::Changed::StreamEnded)) => {
                stream = None;
                if timeout(PAUSE, stop.cancelled()).await.is_ok() {
                    return Over::Stopped;
                }
                announced
            }
            Ok(Some(changes::Changed::Hinted(kinds))) => {
                if timeout(PAUSE, stop.cancelled()).await.is_ok() {
                    return Over::Stopped;
                }
                kinds
            }
        };
    }
}
