//! Pure: a session that a target gave us, as it stands in headers, and on whose behalf it is used.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderValue};

use crate::version::Version;

/// A session that a target gave us, as it stands in headers, and on whose behalf it is used.
#[derive(Debug, Clone)]
pub struct Wire {
    /// Its id; none where the target keeps no sessions, and before it gave one.
    pub id: Option<HeaderValue>,
    /// The version negotiated with that target, never the client's (case 016); none before it is.
    pub version: Option<Version>,
    /// The address behind the Service that has the session; none where the Service decides.
    pub endpoint: Option<SocketAddr>,
    /// On whose behalf.
    pub of: Arc<OnBehalf>,
}

/// On whose behalf a request goes to a target, and what of the client's request goes with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OnBehalf {
    /// The caller's verified token, for a token exchange; never sent to a target. None for the gateway's own requests.
    pub token: Option<Arc<str>>,
    /// The client's headers that the target's configuration hands on.
    pub headers: HeaderMap,
    /// The client's query parameters that it hands on, encoded.
    pub query: Option<Box<str>>,
}

impl Wire {
    /// Before a session: what `initialize` is sent with.
    pub fn first(of: &Arc<OnBehalf>) -> Self {
        Self { id: None, version: None, endpoint: None, of: Arc::clone(of) }
    }

    /// The same session on behalf of another request.
    pub fn by(&self, of: &Arc<OnBehalf>) -> Self {
        Self { id: self.id.clone(), version: self.version, endpoint: self.endpoint, of: Arc::clone(of) }
    }

    /// Whether both are one session.
    pub fn same_session(&self, other: &Self) -> bool {
        self.id == other.id && self.version == other.version
    }
}
