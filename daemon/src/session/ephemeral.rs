//! Sessions of one request only (`session.mode: Stateless`): no id, no record, and a target session that ends with the
//! answer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    Session,
    id::SessionId,
    record::{Principal, Record},
    table::Sessions,
};
use crate::{
    capabilities::ClientCapabilities,
    catalog::merge::Marks,
    fault::Fault,
    store::{Revision, Stored},
    version::Version,
};

/// The longest that one can live: no request lives longer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const CLIENT_INFO: &str = concat!(r#"{"name":"mooring","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Parts from the targets of such a session when it is dropped.
#[derive(Debug)]
pub struct Ephemeral {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
}

impl Ephemeral {
    /// The end of `session`.
    pub fn new(sessions: &Arc<Sessions>, session: &Arc<Session>) -> Self {
        Self { sessions: Arc::clone(sessions), session: Arc::clone(session) }
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        // A runtime that is ending parts from nobody any more.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.sessions.part(&self.session);
        }
    }
}

impl Sessions {
    /// A session for one request of `principal`.
    ///
    /// # Errors
    /// [`Fault::StoreAway`], where the system gives no randomness.
    pub fn ephemeral(&self, principal: Principal, version: Version) -> Result<Arc<Session>, Fault> {
        let (key, now) = (SessionId::mint().map_err(|_| Fault::StoreAway)?.key(), self.now());
        let record = Arc::new(Record {
            principal,
            created: now,
            used: now,
            idle: None,
            expires: now.plus(LONGEST),
            version,
            client_info: CLIENT_INFO.into(),
            capabilities: ClientCapabilities::default(),
            log_level: None,
            targets: BTreeMap::new(),
        });
        let stored = Stored { record, revision: Revision(0) };
        let session = Session { ephemeral: true, ..Session::new(key, stored, now, Marks::default()) };
        session.initialized();
        Ok(Arc::new(session))
    }
}
