//! How a catalogue session hears that a list may have changed: the target's own GET stream, and what others heard.
//! Answers what the target asks on that stream; asks nothing itself.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::super::{
    kind::{self, ByKind},
    view::Hints,
};
use crate::{
    capabilities::{Answers, ClientCapabilities},
    jsonrpc::{self, Message, reply},
    target::{
        Target, Wire,
        stream::{self, Stream},
    },
};

/// Changes that come this close together are one.
const SETTLE: Duration = Duration::from_millis(20);

/// Why lists are read again.
pub(super) enum Changed {
    /// The target said so, of these kinds.
    Announced(ByKind<bool>),
    /// Somebody else heard it say so.
    Hinted(ByKind<bool>),
    /// Its stream ended, and with it the word that we relied on.
    StreamEnded,
}

/// What is listened to.
pub(super) struct Hears<'s> {
    pub(super) target: &'s Target,
    pub(super) wire: &'s Wire,
    /// What the target was offered.
    pub(super) capabilities: &'s ClientCapabilities,
    /// The kinds that the target announced.
    pub(super) announced: ByKind<bool>,
    /// None where the target's own word is there.
    pub(super) hints: Option<&'s Hints>,
}

/// Opens the GET stream of changes. Without one lists are only as fresh as their age; that is no reason to do without
/// the target.
pub(super) async fn open(target: &Target, wire: &Wire) -> Option<Stream> {
    match timeout(target.connect_bound(), stream::open(target, wire, None)).await {
        Ok(Ok(stream)) => stream,
        Err(_) => None,
        Ok(Err(failure)) => {
            tracing::debug!(target = target.alias(), %failure, "catalogue: no stream of changes");
            None
        }
    }
}

impl Hears<'_> {
    /// Returns when a list may have changed; without a stream and without hints, never.
    pub(super) async fn next(&self, stream: Option<&mut Stream>) -> Changed {
        if let Some(stream) = stream {
            return self.announced(stream).await;
        }
        let Some(hints) = self.hints else { return std::future::pending().await };
        loop {
            let kinds = self.of_announced(hints.next().await);
            if kinds != ByKind::default() {
                return Changed::Hinted(kinds);
            }
        }
    }

    async fn announced(&self, stream: &mut Stream) -> Changed {
        let mut kinds = ByKind::default();
        while kinds == ByKind::default() {
            let Some(message) = stream.next().await else { return Changed::StreamEnded };
            self.attend(&message, &mut kinds).await;
        }
        // What comes close behind it is one change with it.
        let settled = Instant::now() + SETTLE;
        while let Ok(Some(message)) = timeout_at(settled, stream.next()).await {
            self.attend(&message, &mut kinds).await;
        }
        Changed::Announced(kinds)
    }

    /// Answers what wants an answer, and notes which kinds have changed.
    ///
    /// The target was offered what this view's clients can do, so that it lists what they would see. Roots there are
    /// none, which is true of the gateway; sampling and elicitation have nobody to answer them here, and are refused.
    async fn attend(&self, message: &Message, kinds: &mut ByKind<bool>) {
        if let jsonrpc::Kind::Request { id, method, .. } = &message.kind
            && method.as_str() == "roots/list"
            && self.capabilities.answers("roots/list", None) == Answers::Yes
        {
            stream::send_answer(self.target, self.wire, reply::result(id, br#"{"roots":[]}"#)).await;
            return;
        }
        let Some(method) = stream::attend(self.target, self.wire, message).await else { return };
        for kind in kind::ALL.into_iter().filter(|kind| kind.notification() == method) {
            kinds.set(kind, true);
        }
        *kinds = self.of_announced(*kinds);
    }

    fn of_announced(&self, kinds: ByKind<bool>) -> ByKind<bool> {
        ByKind::new(|kind| *kinds.get(kind) && *self.announced.get(kind))
    }
}
