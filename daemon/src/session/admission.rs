//! What one session may have at once: requests in flight and open streams. A request in flight is a use of its session
//! for as long as it lasts (DESIGN §3.2).

use std::sync::Arc;

use mooring_runtime::Clock;

use super::{Session, places::Place, table::Sessions};
use crate::fault::Fault;

/// A request in flight in a session, until its answer has ended. The session was used until then.
#[derive(Debug)]
pub struct InFlight {
    session: Arc<Session>,
    clock: Clock,
    _slot: Place,
}

impl Sessions {
    /// Takes a request's place in its session.
    ///
    /// # Errors
    /// [`Fault::TooManyInSession`].
    pub fn admit(&self, session: &Arc<Session>) -> Result<InFlight, Fault> {
        let most = self.limits.load().requests_in_flight_per_session;
        let place = session.requests.enter(most).ok_or(Fault::TooManyInSession(most))?;
        Ok(InFlight { session: Arc::clone(session), clock: self.clock, _slot: place })
    }

    /// Takes the place of an event stream in its session.
    ///
    /// # Errors
    /// [`Fault::TooManyStreams`].
    pub fn open_stream(&self, session: &Session) -> Result<Place, Fault> {
        let most = self.limits.load().streams_per_session;
        let place = session.streams.enter(most).ok_or(Fault::TooManyStreams(most))?;
        Ok(place.shown(&self.metrics.limits.streams))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.session.touch(self.clock.now());
    }
}
