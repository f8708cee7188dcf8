//! Pure: what the catalogue knows of one target at one time.

use std::sync::Arc;

use mooring_crds::config::{self, CredentialsConfig, TargetState};

use super::{
    item::Item,
    kind::{self, ByKind, Kind},
};
use crate::{capabilities::ServerCapabilities, fault::TargetFailure, target::Target, version::Version};

/// What is known of one target.
#[derive(Debug, Clone)]
pub struct Listing {
    target: Arc<Target>,
    state: State,
    known: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Pending,
    Ready(Version),
    Failed(TargetFailure),
}

/// What a target has said so far. Kept while it is away: what it offers then fails when used, rather than come and go.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// What it said of itself, last.
    pub hello: Option<Arc<Hello>>,
    /// Its last list of each kind; empty where it announces none.
    pub lists: ByKind<Option<Arc<[Item]>>>,
    /// Why a list could not be read, where the target goes on without it.
    pub unread: ByKind<Option<TargetFailure>>,
}

/// What a target said of itself in `initialize`.
#[derive(Debug, Clone, Default)]
pub struct Hello {
    /// What it announces.
    pub capabilities: ServerCapabilities,
    /// Its `instructions`, where it gives any.
    pub instructions: Option<Box<str>>,
}

/// Whether lists of this target come from the client session's own target session (DESIGN §3.4): where it says so, and
/// where only the caller's credentials open it.
pub fn is_per_session(target: &Target) -> bool {
    matches!(target.config.listing, config::Listing::PerSession) || needs_a_caller(target)
}

/// Whether nobody but a caller can ask it anything: the gateway has no credentials of its own for it.
pub fn needs_a_caller(target: &Target) -> bool {
    matches!(target.config.credentials, Some(CredentialsConfig::TokenExchange(_)))
}

impl Listing {
    /// Not heard of yet, but for what is `known` from before.
    pub fn pending(target: &Arc<Target>, known: Known) -> Self {
        Self { target: Arc::clone(target), state: State::Pending, known }
    }

    /// It listed these.
    pub fn ready(target: &Arc<Target>, version: Version, known: Known) -> Self {
        Self { target: Arc::clone(target), state: State::Ready(version), known }
    }

    /// Notes that it is well.
    pub fn set_ready(&mut self, version: Version) {
        self.state = State::Ready(version);
    }

    /// Notes that it failed; what it said before stays.
    pub fn set_failed(&mut self, failure: TargetFailure) {
        self.state = State::Failed(failure);
    }

    /// Its target's alias.
    pub fn alias(&self) -> &str {
        self.target.alias()
    }

    /// Its target's uid.
    pub fn uid(&self) -> &str {
        &self.target.config.uid
    }

    /// Its target.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// Whether it is of exactly this target, configured as it is.
    pub fn is_of(&self, target: &Arc<Target>) -> bool {
        Arc::ptr_eq(&self.target, target)
    }

    /// What the target has said so far.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// What the target announces; none before it was heard of.
    pub fn capabilities(&self) -> Option<&ServerCapabilities> {
        self.known.hello.as_deref().map(|hello| &hello.capabilities)
    }

    /// Its instructions.
    pub fn instructions(&self) -> Option<&str> {
        self.known.hello.as_deref()?.instructions.as_deref()
    }

    /// The same, to add to.
    pub fn known_mut(&mut self) -> &mut Known {
        &mut self.known
    }

    /// Seconds to wait for what it announces, where that may still come.
    pub fn introduction_seconds(&self) -> Option<u32> {
        self.seconds_while(self.known.hello.is_none())
    }

    /// Seconds to wait for its list of a kind, where that may still come.
    pub fn list_seconds(&self, kind: Kind) -> Option<u32> {
        self.seconds_while(self.known.lists.get(kind).is_none() && !is_per_session(&self.target))
    }

    fn seconds_while(&self, unknown: bool) -> Option<u32> {
        let may_come = match self.state {
            State::Pending | State::Ready(_) => !needs_a_caller(&self.target),
            State::Failed(_) => false,
        };
        (unknown && may_come).then_some(self.target.config.timeouts.connect_seconds)
    }

    /// What it last listed of a kind.
    pub fn items(&self, kind: Kind) -> &[Item] {
        self.known.lists.get(kind).as_deref().unwrap_or_default()
    }

    /// Whether it has the very items of a kind that `other`, of a target configured alike, has.
    pub fn has_items_of(&self, other: &Self, kind: Kind) -> bool {
        let same = match (self.known.lists.get(kind), other.known.lists.get(kind)) {
            (Some(items), Some(others)) => Arc::ptr_eq(items, others),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same && self.is_of(&other.target)
    }

    /// The same with another list of one kind.
    #[must_use]
    pub fn with_items(&self, kind: Kind, items: Arc<[Item]>) -> Self {
        let mut other = self.clone();
        other.known.lists.set(kind, Some(items));
        other
    }

    /// As it stands in a report.
    pub fn state(&self) -> TargetState {
        match &self.state {
            // Each caller's own session tells; the gateway cannot ask.
            State::Pending if needs_a_caller(&self.target) => TargetState::Ready,
            State::Pending => TargetState::Pending,
            State::Ready(_) => TargetState::Ready,
            State::Failed(failure) => match failure {
                TargetFailure::Unreachable(_) | TargetFailure::Forbidden(_) | TargetFailure::Timeout(_) => {
                    TargetState::Unreachable
                }
                TargetFailure::UnsupportedVersion(_) => TargetState::UnsupportedVersion,
                TargetFailure::Redirect
                | TargetFailure::Status(_)
                | TargetFailure::Credentials(_)
                | TargetFailure::Protocol(_)
                | TargetFailure::Refused(_) => TargetState::Failed,
            },
        }
    }

    /// The version that it negotiated, where it is ready.
    pub fn version(&self) -> Option<Version> {
        match self.state {
            State::Ready(version) => Some(version),
            State::Pending | State::Failed(_) => None,
        }
    }

    /// Whether it is well; none where that is not known yet.
    pub fn is_up(&self) -> Option<bool> {
        match self.state {
            State::Pending => None,
            State::Ready(_) => Some(true),
            State::Failed(_) => Some(false),
        }
    }

    /// What went wrong, in a sentence that does not change from try to try.
    pub fn message(&self) -> String {
        match &self.state {
            State::Pending => String::new(),
            State::Ready(_) => {
                let unread = kind::ALL.into_iter().filter_map(|kind| {
                    let failure = self.known.unread.get(kind).as_ref()?;
                    Some(format!("target {} {failure}, asked for {}", self.alias(), kind.method()))
                });
                unread.collect::<Vec<_>>().join("; ")
            }
            State::Failed(failure) => format!("target {} {failure}", self.alias()),
        }
    }
}
