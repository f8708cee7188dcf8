//! Asks the client on a target's behalf: gives the request an id of ours, watches over it to its bound, and brings the
//! answer back. What a client did not announce is answered to the target at once.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    Session,
    asks::{Answered, Ask, AskId},
    calls::{Handed, Handling, To},
    table::Sessions,
    targets::TargetSession,
    task_ids,
};
use crate::{
    capabilities::Answers,
    fault::Fault,
    jsonrpc::{Kind, Message, reply, span},
    metrics::TargetLimit,
    receive::Share,
    relay::pause::Pause,
    target::stream::answer_request,
};

/// How long a request waits for a stream that could take it to the client.
const STREAM_WAIT: Duration = Duration::from_secs(30);

/// JSON-RPC codes that a target is answered with.
const NO_STREAM: &str = "the client has no stream open on which it could be asked";
const SESSION_OVER: &str = "the client's session is over";
const INTERNAL: i32 = -32603;
const INVALID_PARAMS: i32 = -32602;
const TIMED_OUT: i32 = -32001;

/// How a request reaches the client.
#[derive(Debug, Clone)]
pub enum Way {
    /// On the stream that answers the call which caused it.
    Call {
        /// The client's id of the call, raw JSON.
        id: Box<[u8]>,
        /// The call's clock.
        pause: Arc<Pause>,
        /// Fires when the call is over.
        over: CancellationToken,
    },
    /// On the client's GET stream, since the answer to the call which caused it is none.
    Beside {
        /// The call's clock.
        pause: Arc<Pause>,
        /// Fires when the call is over.
        over: CancellationToken,
    },
    /// On whatever stream there is.
    Any,
    /// None: the client takes JSON only.
    None,
}

/// Who answers a request of a target's.
enum Answerer {
    /// The client.
    Client,
    /// We, as where nobody is asked.
    Us,
    /// Nobody can, and the target is told why, under this JSON-RPC code.
    Nobody(i32, &'static str),
}

impl Sessions {
    /// Takes a request of `of`. What must be written on the call's stream now; none where there is nothing, or where it
    /// goes another way.
    pub async fn ask(
        self: &Arc<Self>,
        session: &Arc<Session>,
        of: &Arc<TargetSession>,
        message: &Message,
        way: Way,
    ) -> Option<Bytes> {
        let Kind::Request { id, method, params } = &message.kind else { return None };
        let method = method.as_str();
        match session.answerer(of, method, message, &way) {
            Answerer::Client => {}
            Answerer::Us => {
                self.attend(of, id, method).await;
                return None;
            }
            Answerer::Nobody(code, why) => {
                self.answer(of, reply::error(Some(id), code, why, None));
                return None;
            }
        }
        let token = params.meta.as_ref().and_then(|meta| span::value(meta, &["progressToken"]));
        let ask = Ask {
            of: Arc::clone(of),
            id: id.clone(),
            token: token.clone(),
            closed: CancellationToken::new(),
        };
        let channel = session.channel();
        let Some(ours) = channel.asks.open(self.replica, ask.clone()) else {
            of.target.metrics.refusals.count(TargetLimit::Asks);
            self.answer(of, reply::error(Some(id), INTERNAL, "the client is asked too much at once", None));
            return None;
        };
        let mut edits = vec![(range_in(&message.bytes, id), ours.json())];
        edits.extend(token.iter().map(|token| (range_in(&message.bytes, token), ours.json())));
        let json = task_ids::expose_asked(&span::replace(&message.bytes, edits), of.target.alias());
        let at_once = *channel.initialized.borrow();
        let (now, later) = match (&way, at_once) {
            (Way::Call { .. }, true) => (Some(json), None),
            (Way::Call { .. } | Way::Beside { .. } | Way::Any | Way::None, _) => (None, Some(json)),
        };
        let (call, clocks, over) = match way {
            Way::Call { id, pause, over } => (Some(id), vec![pause], over),
            Way::Beside { pause, over } => (None, vec![pause], over),
            // Which call has it ask, only the target knows.
            Way::Any | Way::None => (None, session.calls.clocks(&of.target), CancellationToken::new()),
        };
        for clock in &clocks {
            clock.opened();
        }
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(Watched { sessions, session, ask, ours, call, clocks, over }.run(later));
        now
    }

    /// Answers a request of a target's in the client's place. Beside whatever goes on, so that it waits for nobody; a
    /// target that asks more than a few things at once waits for its answers itself.
    async fn attend(&self, of: &Arc<TargetSession>, id: &Bytes, method: &str) {
        let Some(permit) = of.target.answers() else {
            return answer_request(&of.target, &of.newest_wire(), id, method).await;
        };
        let (of, id, method) = (Arc::clone(of), id.clone(), method.to_owned());
        self.tasks.spawn(async move {
            answer_request(&of.target, &of.newest_wire(), &id, &method).await;
            drop(permit);
        });
    }

    /// Takes the client's answer, a message whose id is raw JSON, and brings it to the target that asked.
    ///
    /// # Errors
    /// [`Fault::UnknownAnswer`], where nothing of that id was ever asked.
    pub fn answered(&self, session: &Session, message: &Message, share: Share) -> Result<(), Fault> {
        let Kind::Response { id } = &message.kind else { return Ok(()) };
        let answered =
            session.known_channel().map_or(Answered::Never, |channel| channel.asks.answer(self.replica, id));
        match answered {
            Answered::Never => Err(Fault::UnknownAnswer),
            Answered::Late => Ok(()),
            Answered::Open(Ask { of, id: theirs, token: _, closed: _ }) => {
                let edit = (range_in(&message.bytes, id), String::from_utf8_lossy(&theirs).into_owned());
                let json = span::replace(&message.bytes, vec![edit]);
                let json = task_ids::own_answered(&json, of.target.alias());
                self.tasks.spawn(async move {
                    of.notify(json).await;
                    drop(share);
                });
                Ok(())
            }
        }
    }

    /// Brings the client's progress on a request of a target's to that target; on anything else it is nobody's.
    pub fn progressed(&self, session: &Session, message: &Message) {
        let Kind::Notification { params, .. } = &message.kind else { return };
        let Some(token) = &params.progress_token else { return };
        let ask = session.known_channel().and_then(|channel| channel.asks.get(self.replica, token));
        let Some((ask, theirs)) = ask.and_then(|ask| ask.token.clone().map(|theirs| (ask, theirs))) else {
            return;
        };
        let edit = (range_in(&message.bytes, token), String::from_utf8_lossy(&theirs).into_owned());
        self.answer(&ask.of, span::replace(&message.bytes, vec![edit]));
    }

    /// Takes back a request that its target has cancelled under the id it gave.
    pub fn withdrawn(&self, session: &Session, of: &TargetSession, params_request_id: Option<&Bytes>) {
        let channel = session.known_channel().zip(params_request_id);
        let Some((channel, id)) = channel else { return };
        if let Some(number) = channel.asks.withdraw(of, id) {
            let ours = AskId { replica: self.replica, number };
            session.tell(&of.target, &reply::cancelled(ours.json().as_bytes(), "the server withdrew it"));
        }
    }

    fn answer(&self, of: &Arc<TargetSession>, json: Bytes) {
        let of = Arc::clone(of);
        self.tasks.spawn(async move { of.notify(json).await });
    }
}

impl Session {
    fn answerer(&self, of: &TargetSession, method: &str, message: &Message, way: &Way) -> Answerer {
        if of.gone.is_cancelled() {
            return Answerer::Nobody(INTERNAL, SESSION_OVER);
        }
        if method == "ping" || matches!(way, Way::None) {
            return Answerer::Us;
        }
        let mode = span::value(&message.bytes, &["params", "mode"]);
        match self.stored().record.capabilities.answers(method, mode.as_deref()) {
            Answers::No => return Answerer::Us,
            Answers::InAnotherMode => {
                return Answerer::Nobody(INVALID_PARAMS, "not a mode that the client takes");
            }
            Answers::Yes => {}
        }
        match way {
            Way::Any if !self.listens() && self.calls.take_json_only(&of.target) => Answerer::Us,
            Way::Beside { .. } if !self.listens() => Answerer::Nobody(INTERNAL, NO_STREAM),
            Way::Call { .. } | Way::Beside { .. } | Way::Any | Way::None => Answerer::Client,
        }
    }

    /// Hands a message of `target` to the client: on its GET stream where it has one, else on a running call's.
    /// `false` where neither is there.
    pub fn tell(&self, target: &crate::target::Target, json: &Bytes) -> bool {
        if let Some(channel) = self.known_channel().filter(|_| self.listens()) {
            channel.outbox.push(json.clone());
            return true;
        }
        self.calls.deliver(target, To::Any, json).is_some()
    }
}

/// A request that is watched over to its end.
struct Watched {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    ask: Ask,
    ours: AskId,
    /// The call that it belongs to, by the client's id.
    call: Option<Box<[u8]>>,
    /// The clocks that stand for it: of the call that caused it, or of all that may have.
    clocks: Vec<Arc<Pause>>,
    /// Fires when that call is over.
    over: CancellationToken,
}

enum End {
    Closed,
    NoStream,
    NoRoom,
    TooLate,
    CallOver,
    SessionOver,
    /// The target's session is, and the client's goes on.
    Parted,
}

impl Watched {
    /// Brings `later` to the client once that is possible, and waits for the end of the request.
    async fn run(self, later: Option<Bytes>) {
        let seconds = self.ask.of.target.config.timeouts.client_answer_seconds;
        let until = Instant::now() + Duration::from_secs(seconds.into());
        let waited = async {
            if let Some(json) = later {
                match timeout(STREAM_WAIT, self.deliver(&json)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return End::NoRoom,
                    Err(_) => return End::NoStream,
                }
            }
            std::future::pending().await
        };
        let end = tokio::select! {
            biased;
            () = self.ask.closed.cancelled() => End::Closed,
            () = self.over.cancelled() => End::CallOver,
            () = self.session.ended.cancelled() => End::SessionOver,
            () = self.ask.of.gone.cancelled() => End::Parted,
            () = self.sessions.tasks.stop.cancelled() => End::SessionOver,
            end = timeout_at(until, waited) => end.unwrap_or(End::TooLate),
        };
        self.close(&end, seconds).await;
        let now = Instant::now();
        for clock in &self.clocks {
            clock.closed(now);
        }
    }

    /// Waits for the client to be initialised, then for a stream that takes the message.
    async fn deliver(&self, json: &Bytes) -> Result<(), Fault> {
        let channel = self.session.channel();
        let mut initialized = channel.initialized.subscribe();
        let mut listening = channel.listening.subscribe();
        // Its sender lives as long as the session.
        drop(initialized.wait_for(|initialized| *initialized).await);
        // A call that hands it back can be handed nothing any more, so this ends.
        while self.call.is_some() || !*listening.borrow() {
            let to = self.call.as_deref().map_or(To::Any, To::Call);
            let Some(Handed { clock: _, handled }) =
                self.session.calls.deliver(&self.ask.of.target, to, json)
            else {
                break;
            };
            match handled.await {
                Ok(Handling::Written) => return Ok(()),
                Ok(Handling::NoRoom) => return Err(Fault::Overloaded),
                // Another may take it.
                Err(_) => {}
            }
        }
        drop(listening.wait_for(|listening| *listening).await);
        channel.outbox.take(json.clone(), &self.sessions.budget).map(drop)
    }

    async fn close(&self, end: &End, seconds: u32) {
        if let End::Closed = end {
            return;
        }
        // Whoever takes it out answers it.
        if self.session.channel().asks.close(self.ours).is_none() {
            return;
        }
        let (code, why) = match end {
            End::Closed => return,
            End::NoStream => (INTERNAL, NO_STREAM.to_owned()),
            End::NoRoom => (INTERNAL, "there is no room for so large a request now".to_owned()),
            End::TooLate => (TIMED_OUT, format!("the client did not answer within {seconds} s")),
            End::CallOver => (INTERNAL, "the call that it belonged to is over".to_owned()),
            End::SessionOver | End::Parted => (INTERNAL, SESSION_OVER.to_owned()),
        };
        if let End::TooLate | End::CallOver | End::Parted = end {
            let notice =
                reply::cancelled(self.ours.json().as_bytes(), "nobody waits for the answer any more");
            self.session.tell(&self.ask.of.target, &notice);
        }
        self.ask.of.notify(reply::error(Some(&self.ask.id), code, &why, None)).await;
    }
}

/// Where `part`, a slice of `whole`, stands in it.
fn range_in(whole: &Bytes, part: &Bytes) -> std::ops::Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    start..start.wrapping_add(part.len())
}

#[cfg(test)]
mod tests {
    use mooring_crds::config::GatewayConfig;

    use super::*;
    use crate::{
        capabilities::ClientCapabilities,
        config::secrets::Secrets,
        gateway::Gateway,
        session::{asks::MOST_OPEN, record::Principal, table::Opening},
        target::{Target, Wire},
        testing::{opening, shared, target_config},
    };

    #[tokio::test]
    async fn a_request_too_many_of_a_target_is_counted_as_refused() {
        let (shared, secrets) = (shared(), Secrets::default());
        let (registry, metrics) = (shared.metrics.registry.clone(), shared.metrics.target("tools", "a"));
        let target = Target::new(target_config("a"), &secrets, &shared.connector, metrics).unwrap();
        let of = Arc::new(TargetSession::new(&target, Wire::first(&Arc::default())));
        let gateway = Gateway::start(GatewayConfig::default(), secrets, shared);
        let capabilities = ClientCapabilities::parse(br#"{"roots":{}}"#).unwrap();
        let id = gateway.sessions.create(Opening { capabilities, ..opening() }).await.unwrap().to_string();
        let session = gateway.sessions.find(Some(&id), &Principal::Anonymous).await.unwrap();
        let asked = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        let asked = Message::parse(asked).unwrap();
        let line = |count| {
            let shown = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            let labels = r#"gateway="tools",limit="asks",target="a""#;
            shown.contains(&format!("mooring_target_refusals_total{{{labels}}} {count}\n"))
        };
        for _ in 0..MOST_OPEN {
            assert!(gateway.sessions.ask(&session, &of, &asked, Way::Any).await.is_none());
        }
        assert!(line(0));
        assert!(gateway.sessions.ask(&session, &of, &asked, Way::Any).await.is_none());
        assert!(line(1));
    }
}
