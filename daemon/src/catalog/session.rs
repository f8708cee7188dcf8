//! One catalogue session: learns a target's list, keeps its GET stream open while it announces changes, and tries
//! again with growing pauses where it fails. Counted apart from clients' sessions.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use mooring_runtime::Tasks;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    View,
    listing::Listing,
    tools::{MOST_TOOLS, Page, Tool},
};
use crate::{
    fault::TargetFailure,
    target::{
        OnBehalf, Target, Wire,
        exchange::NoAnswer,
        handshake::{Established, Introduction, handshake},
        stream::{self, Stream},
        unary,
    },
    version::{LATEST, Version},
};

/// A list is asked for again at this age, whatever was announced.
const FRESH: Duration = Duration::from_secs(300);
/// The same, where the target announces changes but no stream brings them.
const FRESH_UNHEARD: Duration = Duration::from_secs(30);
/// The first pause after a failure; each next one doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A target that pages for ever is cut off here.
const MOST_PAGES: usize = 200;
/// One whose list is larger, too.
const MOST_BYTES: usize = 16 << 20;
/// A list that takes longer, over all its pages, counts as no answer.
const LIST_TIME: Duration = Duration::from_secs(30);
/// Changes that come this close together are one.
const SETTLE: Duration = Duration::from_millis(20);

/// Between the end of a stream and the next one.
const STREAM_PAUSE: Duration = Duration::from_secs(1);

const CLIENT_INFO: &str = concat!(r#"{"name":"mooring","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// What is said of a target that loses its sessions one after the other, unlisted.
const FORGETFUL: &str = "a session that it forgets before its tools are listed";

/// Why a catalogue session is over.
enum Over {
    /// It was told to stop.
    Stopped,
    /// The target failed; nothing is known of it from now on but its last list.
    Failed(TargetFailure),
    /// The target forgot the session; a new one begins soon.
    Lost,
}

/// What one catalogue session leaves to the next.
struct Kept {
    /// The last list.
    tools: Option<Arc<[Tool]>>,
    /// How long the next failure pauses; a list that was read makes it short again.
    pause: Duration,
    /// Whether a session was lost since the last list.
    lost: bool,
}

/// Runs until `stop`, or until the view is gone.
pub(super) async fn run(
    view: Weak<View>,
    target: Arc<Target>,
    version: Version,
    tasks: Tasks,
    stop: CancellationToken,
) {
    let of = Arc::new(OnBehalf::default());
    let mut kept = Kept { tools: None, pause: FIRST_PAUSE, lost: false };
    loop {
        // Not cut off by `stop`, or the session that the target is about to give would be nobody's; it has a bound.
        let begun = handshake(
            &tasks,
            &target,
            Introduction { of: &of, version, client_info: CLIENT_INFO, capabilities: "{}" },
        )
        .await;
        let over = match begun {
            Ok(established) => {
                let wire = established.wire.clone();
                let over = live(&view, &target, &established, &mut kept, &stop).await;
                target.delete(&wire).await;
                over
            }
            Err(failure) => Over::Failed(failure),
        };
        let failure = match over {
            Over::Stopped => return,
            // One session that is lost is a restart of the target; one after the other without a list is a failure.
            Over::Lost if std::mem::replace(&mut kept.lost, true) => Some(TargetFailure::Protocol(FORGETFUL)),
            Over::Lost => None,
            Over::Failed(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            tracing::warn!(target = target.alias(), %failure, "catalogue: the target cannot be listed");
            measure(&target, version, false, kept.tools.as_ref().map_or(0, |tools| tools.len()));
            let Some(view) = view.upgrade() else { return };
            view.publish(Listing::failed(&target, failure, kept.tools.clone()));
        }
        if timeout(kept.pause, stop.cancelled()).await.is_ok() {
            return;
        }
        kept.pause = (kept.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Shows what is known of the target. It is one series for all views, so only the view that the report is made of
/// writes it.
fn measure(target: &Target, version: Version, up: bool, tools: usize) {
    if version == LATEST {
        target.metrics.listed(up, tools);
    }
}

/// From the handshake to the end of the session.
async fn live(
    view: &Weak<View>,
    target: &Arc<Target>,
    established: &Established,
    kept: &mut Kept,
    stop: &CancellationToken,
) -> Over {
    let wire = &established.wire;
    let mut stream = None;
    loop {
        // The stream is open before the list is read, and stays open behind it, so that no change falls between.
        // Many servers allow one stream for a session and refuse a second while the first is not seen to have ended.
        if stream.is_none() {
            stream = match open(target, established, stop).await {
                Ok(stream) => stream,
                Err(over) => return over,
            };
        }
        match list(target, established, stop).await {
            Ok(tools) => {
                *kept = Kept { tools: Some(Arc::clone(&tools)), pause: FIRST_PAUSE, lost: false };
                let Some(view) = view.upgrade() else { return Over::Stopped };
                measure(target, view.version, true, tools.len());
                view.publish(Listing::ready(target, established.version, tools));
            }
            Err(over) => return over,
        }
        // A target that announces changes and has no stream for them now is asked more often.
        let fresh = if established.capabilities.flag("tools", "listChanged") && stream.is_none() {
            FRESH_UNHEARD
        } else {
            FRESH
        };
        match timeout(fresh, stop.run_until_cancelled(changed(target, wire, stream.as_mut()))).await {
            Ok(None) => return Over::Stopped,
            Ok(Some(Changed::Announced)) | Err(_) => {}
            // Not at once: a target that ends every stream would be asked without a pause.
            Ok(Some(Changed::StreamEnded)) => {
                stream = None;
                if timeout(STREAM_PAUSE, stop.cancelled()).await.is_ok() {
                    return Over::Stopped;
                }
            }
        }
    }
}

async fn open(
    target: &Target,
    established: &Established,
    stop: &CancellationToken,
) -> Result<Option<Stream>, Over> {
    if !established.capabilities.flag("tools", "listChanged") {
        return Ok(None);
    }
    let opening = timeout(target.connect_bound(), stream::open(target, &established.wire, None));
    match stop.run_until_cancelled(opening).await {
        None => Err(Over::Stopped),
        // Without a stream the list is only as fresh as its age; that is no reason to do without the target.
        Some(Ok(Ok(stream))) => Ok(stream),
        Some(Err(_)) => Ok(None),
        Some(Ok(Err(failure))) => {
            tracing::debug!(target = target.alias(), %failure, "catalogue: no stream of changes");
            Ok(None)
        }
    }
}

/// Why a list is read again.
enum Changed {
    /// The target said so.
    Announced,
    /// Its stream ended, and with it the word that we relied on.
    StreamEnded,
}

/// Returns when the list may have changed; without a stream, never.
async fn changed(target: &Target, wire: &Wire, stream: Option<&mut Stream>) -> Changed {
    let Some(stream) = stream else { return std::future::pending().await };
    while let Some(message) = stream.next().await {
        if stream::attend(target, wire, &message).await.as_deref() == Some("notifications/tools/list_changed")
        {
            // What comes close behind it is one change with it.
            let settled = Instant::now() + SETTLE;
            while let Ok(Some(message)) = timeout_at(settled, stream.next()).await {
                stream::attend(target, wire, &message).await;
            }
            return Changed::Announced;
        }
    }
    Changed::StreamEnded
}

async fn list(
    target: &Target,
    established: &Established,
    stop: &CancellationToken,
) -> Result<Arc<[Tool]>, Over> {
    if !established.capabilities.has("tools") {
        return Ok(Arc::new([]));
    }
    let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None::<String>);
    let until = Instant::now() + LIST_TIME;
    for _ in 0..MOST_PAGES {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let asking = timeout_at(
            until.min(Instant::now() + target.connect_bound()),
            unary::ask(target, &established.wire, "tools/list", &params),
        );
        let reply = match stop.run_until_cancelled(asking).await {
            None => return Err(Over::Stopped),
            Some(Err(_)) => {
                return Err(Over::Failed(TargetFailure::Timeout(target.config.timeouts.connect_seconds)));
            }
            Some(Ok(Err(NoAnswer::Lost))) => return Err(Over::Lost),
            Some(Ok(Err(other))) => return Err(Over::Failed(other.failure())),
            Some(Ok(Ok(reply))) => reply,
        };
        let page = Page::parse(reply.result.get())
            .map_err(|_| Over::Failed(TargetFailure::Protocol("a tools/list result that is none")))?;
        cursor =
            page.next_cursor.as_ref().map(|cursor| cursor.get().to_owned()).filter(|cursor| cursor != "null");
        tools.extend(page.tools());
        bytes += reply.result.get().len();
        if cursor.is_none() || tools.len() >= MOST_TOOLS || bytes >= MOST_BYTES {
            break;
        }
    }
    if cursor.is_some() || tools.len() > MOST_TOOLS {
        tracing::warn!(
            target = target.alias(),
            "catalogue: the target lists too many tools; the rest is left out"
        );
        tools.truncate(MOST_TOOLS);
    }
    Ok(tools.into())
}
