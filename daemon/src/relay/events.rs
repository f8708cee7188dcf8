//! Relays an event stream: events as they come, those that are ready together in one write. What a target asks on the
//! stream is answered here; its event ids stay on its side.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, stream};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::{Forward, Pending, SILENCE, event_response, fault_event, json_response, progress, turn::turn};
use crate::{
    body::Answer as Body,
    fault::Fault,
    jsonrpc::{
        Kind, Message,
        envelope::same_id,
        sse::{Event, KEEP_ALIVE, Splitter, message},
    },
    session::{table::Sessions, targets::TargetSession},
    target::{
        exchange::{Answer, NoAnswer},
        stream::answer_request,
    },
};

/// The largest event that is relayed.
const EVENT_BYTES: usize = 16 << 20;
/// The largest JSON answer that is relayed as an event, since its stream was opened before it came.
const LATE_BYTES: usize = 8 << 20;
/// Events that are ready together leave in one write, up to this size.
const WRITE_BYTES: usize = 64 << 10;

/// A stream under way.
struct Events {
    forward: Forward,
    source: Source,
    splitter: Splitter,
    /// When the target last showed progress.
    progress: Instant,
    /// When the client was last sent anything. Frames of the target that are not relayed do not count.
    written: Instant,
}

enum Source {
    /// The head of the answer has not come yet.
    Head(Pending),
    Body(Incoming),
    /// A JSON answer that came after the stream was opened, as far as it was read.
    Json(Incoming, BytesMut),
    Ended,
}

/// What an event means for the relay.
enum Verdict {
    Relay,
    /// Relay it; it shows progress.
    Progress,
    /// Relay it; it is the answer.
    Answer,
    /// Do not relay it: the target asks us.
    Ask {
        id: Bytes,
        method: String,
    },
    /// Do not relay it.
    Drop,
}

enum Step {
    Data(Bytes),
    Silence,
    End,
}

/// Relays a stream whose head has come.
pub(super) fn relay(forward: Forward, answer: Answer) -> Response<Body> {
    stream_of(Events::new(forward, Source::Body(answer.body)))
}

/// Relays what is still to come as a stream.
pub(super) fn relay_pending(forward: Forward, pending: Pending) -> Response<Body> {
    stream_of(Events::new(forward, Source::Head(pending)))
}

/// Reads a stream to its answer, for a client that takes JSON only.
pub(super) async fn collect(forward: Forward, answer: Answer) -> Result<Response<Body>, Fault> {
    let mut events = Events::new(forward, Source::Body(answer.body));
    loop {
        while let Some(event) = events.splitter.next_event() {
            match judge(&event, &events.forward) {
                Verdict::Answer => {
                    return Ok(json_response(Body::whole(events.forward.settle(event.data).await?)));
                }
                Verdict::Progress => events.progress = Instant::now(),
                Verdict::Ask { id, method } => {
                    let (open, sessions) =
                        (Arc::clone(&events.forward.open), Arc::clone(&events.forward.sessions));
                    attend(open, sessions, id, method).await;
                }
                Verdict::Relay | Verdict::Drop => {}
            }
        }
        match events.step().await? {
            Step::Data(data) => events.take(&data)?,
            Step::Silence => {}
            Step::End => return Err(events.forward.failed("an event stream that ends without an answer")),
        }
    }
}

fn stream_of(events: Events) -> Response<Body> {
    let late = Arc::clone(&events.forward.late);
    let chunks = stream::unfold(events, |mut events| async {
        let chunk = events.next().await?;
        Some((Ok::<_, io::Error>(chunk), events))
    });
    event_response(Body::chunks(Box::pin(chunks), None).failing(late))
}

fn judge(event: &Event, Forward { call, token, .. }: &Forward) -> Verdict {
    if event.data.is_empty() {
        return Verdict::Drop;
    }
    let id = call.id();
    match Message::parse(event.data.clone()).map(|message| message.kind) {
        Ok(Kind::Response { id: of }) if same_id(&of, id) => Verdict::Answer,
        // An answer to nothing that was asked on this stream: clients break off at it.
        Ok(Kind::Response { .. }) | Err(_) => Verdict::Drop,
        Ok(Kind::Request { id, method, .. }) => Verdict::Ask { id, method: method.as_str().to_owned() },
        Ok(Kind::Notification { method, params }) if method.as_str() == "notifications/progress" => {
            let of_this = progress::reports_on(params.progress_token.as_deref(), token.as_deref());
            // Clients break off at progress that they did not ask for (case 028).
            if of_this { Verdict::Progress } else { Verdict::Drop }
        }
        Ok(Kind::Notification { .. }) => Verdict::Relay,
    }
}

impl Events {
    fn new(forward: Forward, source: Source) -> Self {
        let now = Instant::now();
        Self { forward, source, splitter: Splitter::new(EVENT_BYTES), progress: now, written: now }
    }

    /// The next write, or `None` behind the answer.
    async fn next(&mut self) -> Option<Bytes> {
        if matches!(self.source, Source::Ended) {
            return None;
        }
        match self.next_write().await {
            Ok(write) => {
                self.written = Instant::now();
                Some(write)
            }
            Err(fault) => {
                self.source = Source::Ended;
                let event = fault_event(self.forward.call.id(), &fault);
                self.forward.late.get_or_init(|| fault);
                Some(event)
            }
        }
    }

    async fn next_write(&mut self) -> Result<Bytes, Fault> {
        loop {
            match self.step().await? {
                Step::Data(data) => {
                    self.take(&data)?;
                    let write = self.gather().await?;
                    if !write.is_empty() {
                        return Ok(write);
                    }
                }
                Step::Silence => return Ok(KEEP_ALIVE),
                Step::End => return Err(self.forward.failed("an event stream that ends without an answer")),
            }
        }
    }

    /// Waits for more of the stream, for silence, for the end of the call, or for its bound.
    async fn step(&mut self) -> Result<Step, Fault> {
        let deadline = self.forward.deadline(self.progress);
        let wake = deadline.min(self.written + SILENCE);
        let more = tokio::select! {
            biased;
            ended = &mut self.forward.call.ended => return Err(ended.unwrap_or(Fault::ShuttingDown)),
            more = timeout_at(wake, self.source.more()) => more,
        };
        match more {
            Err(_) if wake < deadline => {
                // Whether a comment is written or not: the next silence begins here, not in the past.
                self.written = Instant::now();
                Ok(Step::Silence)
            }
            Err(_) => Err(self.forward.too_late()),
            Ok(More::Data(data)) => Ok(Step::Data(data)),
            Ok(More::Head(Ok(answer))) if answer.events => {
                self.source = Source::Body(answer.body);
                Ok(Step::Data(Bytes::new()))
            }
            Ok(More::Head(Ok(answer))) => {
                self.source = Source::Json(answer.body, BytesMut::new());
                Ok(Step::Data(Bytes::new()))
            }
            Ok(More::Whole(answer)) => {
                self.source = Source::Ended;
                Ok(Step::Data(message(&answer)))
            }
            Ok(More::Broken) => Err(self.forward.failed("an answer that breaks off or is too large")),
            Ok(More::Head(Err(none))) => {
                self.source = Source::Ended;
                self.forward.refusal(none).await.map(|error| Step::Data(message(&error)))
            }
            Ok(More::End) => Ok(Step::End),
        }
    }

    fn take(&mut self, data: &Bytes) -> Result<(), Fault> {
        self.splitter.push(data).map_err(|_| self.forward.failed("an event that is too large"))?;
        self.account_for(self.splitter.held())
    }

    /// What is held of a large event, or of a late answer, counts against what all bodies may take.
    fn account_for(&mut self, held: usize) -> Result<(), Fault> {
        if held > WRITE_BYTES {
            return self.forward.held.hold(held as u64);
        }
        self.forward.held.release();
        Ok(())
    }

    /// The whole events that were taken, and those that are ready beside them, as one write.
    async fn gather(&mut self) -> Result<Bytes, Fault> {
        let mut events: Vec<Bytes> = Vec::new();
        let mut taken = 0;
        loop {
            self.relayed(&mut events).await;
            // Counted as taken, relayed or not: a target that floods must not keep us from looking at the clock.
            let more = if taken < WRITE_BYTES { self.took_more().await? } else { 0 };
            if more == 0 {
                return Ok(match events.as_slice() {
                    [one] => one.clone(),
                    many => Bytes::from(many.concat()),
                });
            }
            taken += more;
        }
    }

    /// Takes the next chunk if it is ready; how many bytes it has. The connection hands one over each time that it
    /// runs, so it is let run.
    async fn took_more(&mut self) -> Result<usize, Fault> {
        let Source::Body(body) = &mut self.source else { return Ok(0) };
        turn().await;
        let Some(Some(Ok(frame))) = body.frame().now_or_never() else { return Ok(0) };
        let data = frame.into_data().unwrap_or_default();
        self.take(&data)?;
        Ok(data.len())
    }

    /// What the events that were taken become for the client.
    async fn relayed(&mut self, events: &mut Vec<Bytes>) {
        while let Some(event) = self.splitter.next_event() {
            match judge(&event, &self.forward) {
                Verdict::Ask { id, method } => {
                    let (open, sessions) =
                        (Arc::clone(&self.forward.open), Arc::clone(&self.forward.sessions));
                    attend(open, sessions, id, method).await;
                }
                Verdict::Drop => {}
                Verdict::Progress => {
                    self.progress = Instant::now();
                    events.push(event.relayed());
                }
                Verdict::Relay => events.push(event.relayed()),
                Verdict::Answer => {
                    // Behind the answer nothing may come (case 028).
                    self.source = Source::Ended;
                    let lost = self.forward.settle(event.data.clone()).await.err();
                    events.push(lost.map_or_else(
                        || event.relayed(),
                        |fault| fault_event(self.forward.call.id(), &fault),
                    ));
                    return;
                }
            }
        }
    }
}

/// Answers what the target asks. Beside the relay, so that it waits for nobody; a target that asks more than a few
/// things at once waits for its answers itself.
async fn attend(open: Arc<TargetSession>, sessions: Arc<Sessions>, id: Bytes, method: String) {
    match open.target.answers() {
        Some(permit) => sessions.spawn(async move {
            answer_request(&open.target, &open.wire, &id, &method).await;
            drop(permit);
        }),
        None => answer_request(&open.target, &open.wire, &id, &method).await,
    }
}

enum More {
    Head(Result<Answer, NoAnswer>),
    Data(Bytes),
    /// A late JSON answer, to its end.
    Whole(Bytes),
    /// A late JSON answer that has none.
    Broken,
    End,
}

impl Source {
    /// Cancel-safe: what is dropped while pending has taken nothing.
    async fn more(&mut self) -> More {
        match self {
            Self::Head(pending) => More::Head(pending.await),
            Self::Body(body) => match body.frame().await {
                Some(Ok(frame)) => More::Data(frame.into_data().unwrap_or_default()),
                Some(Err(_)) | None => More::End,
            },
            Self::Json(body, read) => loop {
                match body.frame().await {
                    Some(Ok(frame)) => read.extend_from_slice(&frame.into_data().unwrap_or_default()),
                    Some(Err(_)) => return More::Broken,
                    None => return More::Whole(read.split().freeze()),
                }
                if read.len() > LATE_BYTES {
                    return More::Broken;
                }
            },
            Self::Ended => More::End,
        }
    }
}
