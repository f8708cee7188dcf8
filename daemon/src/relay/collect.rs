//! Reads an event stream to its answer, where that goes to the client as JSON: one that takes no stream, or has no place
//! for another. What the target asks meanwhile goes to the client's own stream; what it tells is nobody's.

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    Forward,
    events::{Events, Step},
    judge::{Verdict, judge},
    source::Source,
};
use crate::{edge::Accepts, fault::Fault};

impl Events {
    /// The answer.
    ///
    /// # Errors
    /// [`Fault`]. The target knows of each.
    pub(super) async fn collect(mut self, accepts: Accepts) -> Result<Bytes, Fault> {
        self.forward.call.no_stream();
        let collected = self.collected(accepts).await;
        if let Err(fault) = &collected
            && !self.source.ended()
        {
            self.forward.gave_up(fault);
        }
        collected
    }

    async fn collected(&mut self, accepts: Accepts) -> Result<Bytes, Fault> {
        loop {
            while let Some(event) = self.splitter.next_event() {
                self.resume.note(event.id.as_ref(), event.retry, !event.data.is_empty());
                let Forward { sessions, call, open, token, .. } = &*self.forward;
                let way = || self.forward.way_beside(accepts);
                match judge(&event.data, call.id(), token.as_deref()) {
                    Verdict::Answer => {
                        self.source = Source::Ended;
                        self.forward.call.answered();
                        let answer = self.forward.settle(event.data).await?;
                        return Ok(self.forward.exposed(&answer));
                    }
                    Verdict::Progress => self.progress = Instant::now(),
                    Verdict::Ask(message) => {
                        drop(sessions.ask(call.session(), open, &message, way()).await);
                    }
                    Verdict::Changed(method) => sessions.hint(call.session(), open, &method),
                    // What it asked elsewhere, on its GET stream.
                    Verdict::Withdraw(id) => sessions.withdrawn(call.session(), open, id.as_ref()),
                    Verdict::Relay | Verdict::Drop => {}
                }
            }
            match self.step().await.map_err(begun)? {
                Step::Data(data) => self.take(&data)?,
                Step::Message(answer) => return Ok(self.forward.exposed(&answer)),
                Step::Nothing | Step::Silence | Step::Delivered | Step::Taken => {}
                Step::End => {
                    let ends = || self.forward.failed("an event stream that ends without an answer");
                    self.resume.wait().ok_or_else(ends)?;
                    let wire = self.forward.open.wire.by(&self.forward.of);
                    self.source = self.resume.again(&self.forward.open, wire);
                }
            }
        }
    }
}

/// What a call failed for whose stream had begun: whatever became of its session since, it ran.
fn begun(mut fault: Fault) -> Fault {
    if let Fault::TargetSessionLost { target: _, ran } = &mut fault {
        *ran = true;
    }
    fault
}
