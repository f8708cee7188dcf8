//! Pure: what the catalogue knows of one target at one time.

use std::sync::Arc;

use mooring_crds::config::TargetState;

use super::tools::Tool;
use crate::{fault::TargetFailure, target::Target, version::Version};

/// What is known of one target.
#[derive(Debug)]
pub struct Listing {
    target: Arc<Target>,
    state: State,
    /// The last list that it gave. Kept while it is away: its tools then fail when called, rather than come and go.
    tools: Option<Arc<[Tool]>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Pending,
    Ready(Version),
    Failed(TargetFailure),
}

impl Listing {
    /// Not heard of yet.
    pub fn pending(target: &Arc<Target>, tools: Option<Arc<[Tool]>>) -> Self {
        Self { target: Arc::clone(target), state: State::Pending, tools }
    }

    /// It listed these.
    pub fn ready(target: &Arc<Target>, version: Version, tools: Arc<[Tool]>) -> Self {
        Self { target: Arc::clone(target), state: State::Ready(version), tools: Some(tools) }
    }

    /// It failed; these are the tools that it last listed.
    pub fn failed(target: &Arc<Target>, failure: TargetFailure, tools: Option<Arc<[Tool]>>) -> Self {
        Self { target: Arc::clone(target), state: State::Failed(failure), tools }
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

    /// Whether both are of one target, configured alike.
    pub fn is_of_same_target(&self, other: &Self) -> bool {
        self.is_of(&other.target)
    }

    /// Seconds to wait for it, where it was not heard of yet.
    pub fn pending_seconds(&self) -> Option<u32> {
        (self.state == State::Pending && self.tools.is_none())
            .then_some(self.target.config.timeouts.connect_seconds)
    }

    /// The tools that it last listed.
    pub fn tools(&self) -> Option<Arc<[Tool]>> {
        self.tools.clone()
    }

    /// As it stands in a report.
    pub fn state(&self) -> TargetState {
        match &self.state {
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

    /// What went wrong, in a sentence that does not change from try to try.
    pub fn message(&self) -> String {
        match &self.state {
            State::Pending | State::Ready(_) => String::new(),
            State::Failed(failure) => format!("target {} {failure}", self.alias()),
        }
    }
}
