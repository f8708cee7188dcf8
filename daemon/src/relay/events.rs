//! Relays an event stream: messages as they come, those that are ready together in one write. What a target asks on the
//! stream is asked of the client there; its event ids stay on its side.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    Forward, SILENCE,
    client_stream::ClientStream,
    fault_json,
    judge::{Verdict, judge},
    pause::Clock,
    source::{More, Resume, Source},
    turn::turn,
};
use crate::{
    body::Late,
    fault::Fault,
    jsonrpc::sse::{Event, KEEP_ALIVE, Splitter},
    session::{calls::Handling, posts::Parted, task_ids},
};

/// The largest event that is relayed.
const EVENT_BYTES: usize = 16 << 20;
/// Events that are ready together leave in one write, up to this size.
const WRITE_BYTES: usize = 64 << 10;

/// A stream under way.
pub(super) struct Events {
    pub(super) forward: Box<Forward>,
    pub(super) client: ClientStream,
    /// What goes wrong once the answer's head has left.
    pub(super) late: Late,
    pub(super) source: Source,
    pub(super) splitter: Splitter,
    pub(super) resume: Resume,
    /// When the target last showed progress.
    pub(super) progress: Instant,
    /// When the client was last sent anything. Frames of the target that are not relayed do not count.
    written: Instant,
    begun: bool,
    /// Whether the client was written its answer, or an error in its place.
    answered: bool,
    /// What other streams of the target hand to this call.
    deliveries: Option<watch::Receiver<u64>>,
}

/// What comes next for the client.
pub(super) enum Next {
    /// This is written.
    Write(Bytes),
    /// This is written, and then the client is to come back for the rest.
    Rest(Bytes),
    /// Another connection has the stream now.
    Taken,
    /// The stream has ended with its answer.
    End,
}

/// What comes behind a write.
enum After {
    /// More.
    More,
    /// The rest, once the client has come back for it.
    Rest,
    /// Nothing here: another connection has the stream now.
    Taken,
}

pub(super) enum Step {
    Data(Bytes),
    /// A whole message that did not come as an event.
    Message(Bytes),
    /// Nothing for the client yet.
    Nothing,
    Delivered,
    Silence,
    Taken,
    End,
}

impl Events {
    pub(super) fn new(forward: Box<Forward>, client: ClientStream, source: Source) -> Self {
        let now = Instant::now();
        // Of a target whose answer has not begun, nothing was heard since it was asked.
        let heard = if matches!(source, Source::Head(_)) { forward.sent } else { now };
        let deliveries = forward.call.deliveries();
        Self {
            forward,
            client,
            late: Late::default(),
            source,
            splitter: Splitter::new(EVENT_BYTES),
            resume: Resume::default(),
            progress: heard,
            written: now,
            begun: false,
            answered: false,
            deliveries: Some(deliveries),
        }
    }

    /// Whether the answer has been given.
    pub(super) fn ended(&self) -> bool {
        self.source.ended() && self.answered
    }

    /// The session that it belongs to.
    pub(super) fn session(&self) -> Arc<crate::session::Session> {
        Arc::clone(self.forward.call.session())
    }

    /// What comes next.
    pub(super) async fn next(&mut self) -> Next {
        if self.ended() {
            return Next::End;
        }
        let mut write = Vec::new();
        let after = if self.source.ended() {
            // Dropped while it was noted that the target forgot the session: nothing else is waited for behind an answer.
            let target = self.forward.open.target.alias().to_owned();
            Err(Fault::TargetSessionLost { target, ran: true })
        } else {
            self.next_write(&mut write).await
        };
        match after {
            Ok(after) => {
                self.written = Instant::now();
                match after {
                    After::More => Next::Write(Bytes::from(write)),
                    After::Rest => Next::Rest(Bytes::from(write)),
                    After::Taken => Next::Taken,
                }
            }
            Err(fault) => {
                let ended = self.source.ended();
                (self.source, self.answered) = (Source::Ended, true);
                if !ended {
                    self.forward.gave_up(&fault);
                }
                self.forward.call.answered();
                self.client.say(&mut write, &fault_json(self.forward.call.id(), &fault));
                self.late.get_or_init(|| fault);
                Next::Write(Bytes::from(write))
            }
        }
    }

    /// What comes next, but for what is written: that is in `write`, also where it is a fault.
    async fn next_write(&mut self, write: &mut Vec<u8>) -> Result<After, Fault> {
        let mut first = None;
        if !self.begun {
            self.begun = true;
            self.client.primer(write);
            // What is ready leaves with the priming event and the head, which wait for nothing else.
            turn().await;
            first = self.step().now_or_never().transpose()?;
            if first.is_none() {
                return Ok(After::More);
            }
        }
        // The head goes with the first, though that may be nothing for the client.
        let opens = first.is_some();
        loop {
            let step = match first.take() {
                Some(step) => step,
                None => self.step().await?,
            };
            match step {
                Step::Data(data) => {
                    self.take(&data)?;
                    self.gather(write).await?;
                }
                Step::Message(json) => {
                    self.source = Source::Ended;
                    let json = self.forward.settle(json).await?;
                    let json = self.forward.exposed(&json);
                    self.forward.held.release();
                    self.write_waiting(write);
                    self.client.write(write, &json, None, self.forward.held.of())?;
                    self.forward.call.answered();
                    self.answered = true;
                }
                Step::Nothing => {}
                Step::Delivered => self.write_waiting(write),
                Step::Silence => write.extend_from_slice(&KEEP_ALIVE),
                Step::Taken => return Ok(After::Taken),
                Step::End => {
                    let ends = || self.forward.failed("an event stream that ends without an answer");
                    let wait = self.resume.wait().ok_or_else(ends)?;
                    let wire = self.forward.open.wire.by(&self.forward.of);
                    self.source = self.resume.again(&self.forward.open, wire);
                    // As the target does it: nobody holds a connection while nothing is said.
                    if self.client.polls() {
                        ClientStream::ask_back(write, wait);
                        return Ok(After::Rest);
                    }
                }
            }
            if opens || !write.is_empty() {
                return Ok(After::More);
            }
        }
    }

    /// Waits for more of the stream, for silence, for the end of the call, or for its bound. Cancel-safe.
    pub(super) async fn step(&mut self) -> Result<Step, Fault> {
        // Looked at first: a target that never falls silent is not waited for below.
        if let Some(parted) = self.client.has_parted() {
            return self.parted(parted);
        }
        let more = loop {
            // Before the clock is looked at, so that none of its changes is missed.
            let resumes = self.forward.pause.resumes();
            let stands = self.forward.pause.clock() == Clock::Stands;
            let wake = self.forward.deadline(self.progress).min(self.written + SILENCE);
            tokio::select! {
                biased;
                ended = &mut self.forward.call.ended => return Err(ended.unwrap_or(Fault::ShuttingDown)),
                () = next_delivery(&mut self.deliveries) => return Ok(Step::Delivered),
                more = timeout_at(wake, self.source.more()) => break more,
                parted = self.client.parted() => return self.parted(parted),
                () = resumes, if stands => {}
            }
        };
        match more {
            // Looked at anew: a request to the client may have stopped the clock meanwhile.
            Err(_) if Instant::now() < self.forward.deadline(self.progress) => {
                // Whether a comment is written or not: the next silence begins here, not in the past.
                self.written = Instant::now();
                Ok(Step::Silence)
            }
            Err(_) => Err(self.forward.too_late()),
            Ok(More::Data(data)) => Ok(Step::Data(data)),
            Ok(More::Head(Ok(answer))) => {
                self.source = if answer.events {
                    // What was cut in mid-event by the break comes anew.
                    self.splitter = Splitter::new(EVENT_BYTES);
                    Source::Body(answer.body)
                } else {
                    Source::Json(answer.body, bytes::BytesMut::new())
                };
                Ok(Step::Data(Bytes::new()))
            }
            Ok(More::Part(bytes)) => self.forward.held.hold(bytes as u64).map(|()| Step::Nothing),
            Ok(More::Whole(answer)) => Ok(Step::Message(answer)),
            Ok(More::Broken) => Err(self.forward.failed("an answer that breaks off or is too large")),
            Ok(More::Head(Err(none))) => {
                self.source = Source::Ended;
                self.forward.refusal(none).await.map(Step::Message)
            }
            Ok(More::End) if self.splitter.finish() => Ok(Step::Data(Bytes::new())),
            Ok(More::End) => Ok(Step::End),
        }
    }

    fn parted(&self, parted: Parted) -> Result<Step, Fault> {
        match parted {
            Parted::Taken => Ok(Step::Taken),
            Parted::GivenUp => Err(self.forward.abandoned()),
        }
    }

    pub(super) fn take(&mut self, data: &Bytes) -> Result<(), Fault> {
        self.splitter.push(data).map_err(|_| self.forward.failed("an event that is too large"))?;
        self.count()
    }

    /// What is held of a large event counts against what all bodies may take.
    fn count(&mut self) -> Result<(), Fault> {
        let held = self.splitter.held();
        if held > WRITE_BYTES {
            return self.forward.held.hold(held as u64);
        }
        self.forward.held.release();
        Ok(())
    }

    /// The whole events that were taken, and those that are ready beside them, as one write.
    async fn gather(&mut self, write: &mut Vec<u8>) -> Result<(), Fault> {
        let mut taken = 0;
        loop {
            while let Some(event) = self.splitter.next_event() {
                // From here on it counts where it is kept.
                self.count()?;
                self.relay(&event, write).await?;
                if self.source.ended() {
                    return Ok(());
                }
            }
            // Counted as taken, relayed or not: a target that floods must not keep us from looking at the clock.
            if taken >= WRITE_BYTES {
                return Ok(());
            }
            let Some(data) = self.source.ready().await else { return Ok(()) };
            taken += data.len().max(1);
            self.take(&data)?;
        }
    }

    /// What an event becomes for the client.
    async fn relay(&mut self, event: &Event, write: &mut Vec<u8>) -> Result<(), Fault> {
        self.resume.note(event.id.as_ref(), event.retry, !event.data.is_empty());
        let token = self.forward.token.as_deref();
        match judge(&event.data, self.forward.call.id(), token) {
            Verdict::Ask(message) => {
                let Forward { sessions, call, open, .. } = &*self.forward;
                let way = self.forward.way();
                if let Some(json) = sessions.ask(call.session(), open, &message, way).await {
                    self.client.write(write, &json, None, self.forward.held.of())?;
                }
            }
            Verdict::Withdraw(id) => {
                let Forward { sessions, call, open, .. } = &*self.forward;
                sessions.withdrawn(call.session(), open, id.as_ref());
            }
            Verdict::Changed(method) => {
                let Forward { sessions, call, open, .. } = &*self.forward;
                sessions.hint(call.session(), open, &method);
            }
            Verdict::Drop => {}
            Verdict::Progress => {
                self.progress = Instant::now();
                self.write(write, event, &task_ids::expose(&event.data, self.forward.open.target.alias()))?;
            }
            Verdict::Relay => {
                self.write(write, event, &task_ids::expose(&event.data, self.forward.open.target.alias()))?;
            }
            Verdict::Answer => {
                self.write_waiting(write);
                // Behind the answer nothing may come (case 028).
                self.source = Source::Ended;
                let settled = self.forward.settle(event.data.clone()).await;
                match settled {
                    Ok(_) => self.write(write, event, &self.forward.exposed(&event.data))?,
                    Err(fault) => self.client.say(write, &fault_json(self.forward.call.id(), &fault)),
                }
                self.forward.call.answered();
                self.answered = true;
            }
        }
        Ok(())
    }

    /// What other streams of the target's have handed to this call.
    fn write_waiting(&self, write: &mut Vec<u8>) {
        for waiting in self.forward.call.take_waiting() {
            match self.client.write(write, &waiting.json, None, self.forward.held.of()) {
                Ok(()) => waiting.tell(Handling::Written),
                // It is no message of this call's, which goes on.
                Err(_) => waiting.tell(Handling::NoRoom),
            }
        }
    }

    /// What came in `event`, as the client is to read it.
    fn write(&self, write: &mut Vec<u8>, event: &Event, json: &Bytes) -> Result<(), Fault> {
        let as_it_came = *json == event.data;
        self.client.write(write, json, as_it_came.then_some(event), self.forward.held.of())
    }
}

/// Returns once something is delivered to the session's calls; never, where that cannot be.
pub(super) async fn delivered(mut deliveries: Option<watch::Receiver<u64>>) {
    next_delivery(&mut deliveries).await;
}

async fn next_delivery(deliveries: &mut Option<watch::Receiver<u64>>) {
    match deliveries {
        // Its sender lives as long as the session.
        Some(deliveries) => drop(deliveries.changed().await),
        None => std::future::pending().await,
    }
}

/// As a body's chunk.
pub(super) type Chunk = io::Result<Bytes>;

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("id", &self.forward.call.id()).finish_non_exhaustive()
    }
}
