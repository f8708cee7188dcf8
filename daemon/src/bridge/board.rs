//! Pure: who gets what a server says. Knows the requests in flight of every session of one conversation.
//!
//! A session of its own process keeps its ids; sessions that share one have their request ids and progress tokens
//! rewritten, since each of them counts from the same numbers.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    outcome::{Begun, Delivery, MOST_FLIGHTS, NotBegun},
    queue::{Held, Queue, Queued, Role},
    rewrite::{renumbered, swap},
    subscriptions::{self, Meant, Subscriptions},
    token::progress_token,
};
use crate::jsonrpc::{Kind, Message, Params, envelope::same_id, reply, span};

/// Requests of a server, and requests whose caller has left, that are remembered.
const REMEMBERED: usize = 256;

/// A session, as its conversation knows it.
pub(super) type Party = u64;

/// What is under way.
#[derive(Debug)]
pub(super) struct Board {
    /// Whether several sessions share the server.
    shared: bool,
    /// In the order in which they began.
    flights: Vec<Flight>,
    parties: Vec<(Party, Arc<Queue>)>,
    /// Requests of the server: whom they were given to.
    asked: VecDeque<(Bytes, Party)>,
    /// Requests whose caller has left: whose, under which id, and how the server knows it.
    left: VecDeque<(Party, Bytes, Bytes)>,
    /// Kept where the server is shared: else its one client is the session.
    subscriptions: Subscriptions,
    next: u64,
    /// Why nothing is under way any more.
    over: Option<String>,
}

#[derive(Debug)]
struct Flight {
    number: u64,
    party: Party,
    /// As the session wrote it.
    id: Bytes,
    /// As the server knows it.
    wire: Bytes,
    /// The progress token, as the session wrote it and as the server knows it.
    token: Option<(Bytes, Bytes)>,
    /// Whether its stream takes more than its answer.
    aside: bool,
    /// What it subscribes to, where the session had not done so before.
    subscribes: Option<Box<str>>,
    queue: Arc<Queue>,
}

impl Board {
    /// With nothing under way.
    pub(super) fn new(shared: bool) -> Self {
        Self {
            shared,
            flights: Vec::new(),
            parties: Vec::new(),
            asked: VecDeque::new(),
            left: VecDeque::new(),
            subscriptions: Subscriptions::default(),
            next: 0,
            over: None,
        }
    }

    /// A new session, and where it gets what belongs to no request of it; none where the server has ended.
    pub(super) fn join(&mut self) -> Option<(Party, Arc<Queue>)> {
        if self.over.is_some() {
            return None;
        }
        let (party, queue) = (self.number(), Arc::new(Queue::default()));
        self.parties.push((party, Arc::clone(&queue)));
        Some((party, queue))
    }

    /// A session is over: its stream ends, and what it waits for is answered with an error. So is what the server
    /// waits for. What it alone had subscribed to is taken back. The server gets these messages.
    pub(super) fn part(&mut self, party: Party) -> Vec<Bytes> {
        self.parties.retain(|(other, queue)| {
            if *other == party {
                queue.close();
            }
            *other != party
        });
        let (gone, kept) =
            std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.party == party);
        self.flights = kept;
        fail(gone, "the session ended while the request ran");
        let alone = self.subscriptions.part(party);
        let asked = self.asked.iter().filter(|(_, whom)| *whom == party);
        let unanswered: Vec<Bytes> = asked.map(|(id, _)| id.clone()).collect();
        let mut messages: Vec<Bytes> = unanswered.iter().map(|id| self.unanswered(id)).collect();
        messages.extend(alone.iter().map(|uri| self.unsubscribe(uri)));
        messages
    }

    /// Takes a subscription back in our own name: nobody waits for the answer.
    fn unsubscribe(&mut self, uri: &str) -> Bytes {
        let params = serde_json::json!({ "uri": uri }).to_string();
        reply::request(&self.number().to_string(), subscriptions::UNSUBSCRIBE, &params)
    }

    /// The server has ended: everybody is told.
    pub(super) fn end(&mut self, why: &str) {
        self.over.get_or_insert_with(|| why.to_owned());
        fail(std::mem::take(&mut self.flights), why);
        for (_, queue) in self.parties.drain(..) {
            queue.close();
        }
    }

    /// How many requests are in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// The streams of all sessions.
    pub(super) fn streams(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.parties.iter().map(|(_, queue)| queue)
    }

    /// A request of a session. `aside` says whether its caller takes more than the answer.
    pub(super) fn begin(
        &mut self,
        party: Party,
        message: &Message,
        id: &Bytes,
        aside: bool,
    ) -> Result<Begun, NotBegun> {
        if let Some(why) = &self.over {
            return Err(NotBegun::Over(why.clone()));
        }
        if self.flights.iter().any(|flight| flight.party == party && same_id(&flight.id, id)) {
            return Err(NotBegun::Duplicate);
        }
        if self.flights.len() >= MOST_FLIGHTS {
            return Err(NotBegun::TooMany);
        }
        let meant = if self.shared { self.subscriptions.ask(party, message)? } else { Meant::default() };
        if meant.is_kept {
            let (number, queue) = (self.number(), Arc::new(Queue::default()));
            let _: Queued = queue.push(Held { message: reply::result(id, b"{}"), role: Role::Answer });
            return Ok(Begun { number, message: None, queue });
        }
        let number = self.number();
        let token = progress_token(message);
        let ours = Bytes::from(number.to_string());
        let (wire, sent) = if self.shared {
            (ours.clone(), renumbered(message, id, token.as_ref(), &ours))
        } else {
            (id.clone(), message.bytes.clone())
        };
        let token = token.map(|token| (token.clone(), if self.shared { ours } else { token }));
        let queue = Arc::new(Queue::default());
        // Copies: slices would keep the whole message for as long as the request runs.
        let (id, wire) = (Bytes::copy_from_slice(id), Bytes::copy_from_slice(&wire));
        let token = token.map(|(own, wire)| (Bytes::copy_from_slice(&own), Bytes::copy_from_slice(&wire)));
        let queued = Arc::clone(&queue);
        self.flights.push(Flight {
            number,
            party,
            id,
            wire,
            token,
            aside,
            subscribes: meant.subscribes,
            queue: queued,
        });
        Ok(Begun { number, message: Some(sent), queue })
    }

    /// Nobody waits for a request any more.
    pub(super) fn leave(&mut self, number: u64) {
        if let Some(flight) = self.land(number) {
            if self.left.len() >= REMEMBERED {
                self.left.pop_front();
            }
            self.left.push_back((flight.party, flight.id, flight.wire));
        }
    }

    /// As [`Self::leave`], where the server was not sent the request.
    pub(super) fn unsent(&mut self, number: u64) {
        if let Some(flight) = self.land(number)
            && let Some(uri) = &flight.subscribes
        {
            self.subscriptions.remove(flight.party, uri);
        }
    }

    /// Takes out the request of this number, where it is in flight.
    fn land(&mut self, number: u64) -> Option<Flight> {
        let at = self.flights.iter().position(|flight| flight.number == number)?;
        Some(self.flights.remove(at))
    }

    /// A notification of a session, as the server is sent it; none where it speaks of nothing that the server knows.
    pub(super) fn notified(&self, party: Party, message: &Message) -> Option<Bytes> {
        let Kind::Notification { method, params } = &message.kind else { return None };
        let cancelled = match (method.as_str(), &params.request_id) {
            ("notifications/cancelled", Some(id)) if self.shared => id,
            _ => return Some(message.bytes.clone()),
        };
        let flying = self.flights.iter().map(|flight| (flight.party, &flight.id, &flight.wire));
        let left = self.left.iter().rev().map(|(party, id, wire)| (*party, id, wire));
        let (_, _, wire) =
            flying.chain(left).find(|(whose, id, _)| *whose == party && same_id(id, cancelled))?;
        Some(swap(message, cancelled, wire))
    }

    /// Whether an answer of a session is to a request that it was given.
    pub(super) fn answered(&mut self, party: Party, id: &[u8]) -> bool {
        let found = self.asked.iter().position(|(asked, whom)| *whom == party && same_id(asked, id));
        found.and_then(|at| self.asked.remove(at)).is_some()
    }

    /// The server did not get an answer to this request from anybody, and gets this one.
    pub(super) fn unanswered(&mut self, id: &Bytes) -> Bytes {
        self.asked.retain(|(asked, _)| asked != id);
        reply::error(Some(id), -32603, "no client took the request", None)
    }

    /// Something that the server says.
    pub(super) fn deliver(&mut self, message: &Message, now: Instant) -> Delivery {
        match &message.kind {
            Kind::Response { id } => self.answer(message, id),
            Kind::Request { id, method, params: _ } if method.as_str() == "ping" => {
                // It asks whether the other end of its own connection is there, and that is us.
                Delivery::Answer(reply::result(id, b"{}"))
            }
            Kind::Request { id, method: _, params: _ } => self.ask(message, id, now),
            // What is said of no request belongs on the session's own stream (2025-11-25, transports, listening): the
            // caller of an unrelated one may not look for it there, and cannot where it takes JSON only.
            Kind::Notification { method, params } => match method.as_str() {
                "notifications/tasks/status" => {
                    let only = self.only();
                    self.tell_sessions(message, |party| Some(party) == only)
                }
                "notifications/resources/updated" if self.shared => {
                    let uri = subscriptions::uri(message).unwrap_or_default();
                    self.tell_sessions(message, |party| self.subscriptions.hears(party, &uri))
                }
                "notifications/resources/updated" => self.tell_sessions(message, |_| true),
                changed if changed.ends_with("/list_changed") => self.tell_sessions(message, |_| true),
                _ => self.tell(message, params),
            },
        }
    }

    /// A notification goes where its request is, or where that request went which it speaks of.
    fn tell(&self, message: &Message, params: &Params) -> Delivery {
        let about = |token: &Bytes| {
            self.flights.iter().find_map(|flight| {
                let (own, wire) = flight.token.as_ref()?;
                same_id(wire, token).then(|| (self.stream_of(flight), own))
            })
        };
        let (queue, text) = match params.progress_token.as_ref().map(|token| (token, about(token))) {
            Some((token, Some((queue, own)))) if self.shared => (queue, swap(message, token, own)),
            Some((_, Some((queue, _)))) => (queue, message.bytes.clone()),
            Some((_, None)) => return Delivery::Lost("progress of nothing in flight"),
            None => {
                let queue = match params.request_id.as_ref().and_then(|id| self.asked_party(id)) {
                    // Behind what it speaks of.
                    Some(asked) => self.own_stream(asked),
                    None => self.stream(),
                };
                (queue, message.bytes.clone())
            }
        };
        let Some(queue) = queue else { return Delivery::Lost("a notification for nobody in particular") };
        match queue.push(Held { message: text, role: Role::Notification }) {
            Queued::Kept => Delivery::Done,
            Queued::Displaced => Delivery::Lost("an older notification, for want of a reader"),
            Queued::Refused => Delivery::Lost("a notification, for want of a reader"),
        }
    }

    fn answer(&mut self, message: &Message, id: &Bytes) -> Delivery {
        let Some(at) = self.flights.iter().position(|flight| same_id(&flight.wire, id)) else {
            return Delivery::Lost("an answer that nobody waits for");
        };
        let flight = self.flights.remove(at);
        if let Some(uri) = &flight.subscribes
            && span::find(&message.bytes, &["error"]).is_some()
        {
            self.subscriptions.remove(flight.party, uri);
        }
        let text = if self.shared { swap(message, id, &flight.id) } else { message.bytes.clone() };
        // An answer finds room always.
        let _: Queued = flight.queue.push(Held { message: text, role: Role::Answer });
        Delivery::Done
    }

    /// A request goes to the session's own stream: which of its calls has the server ask, the server alone knows, and one
    /// that is guessed may be over before the answer.
    fn ask(&mut self, message: &Message, id: &Bytes, now: Instant) -> Delivery {
        let only = self.only().and_then(|party| Some((self.own_stream(party)?, party)));
        let Some((queue, party)) = only else { return Delivery::Answer(self.unanswered(id)) };
        let id = Bytes::copy_from_slice(id);
        let held = Held { message: message.bytes.clone(), role: Role::Request(id.clone(), now) };
        if queue.push(held) == Queued::Refused || self.asked.len() >= REMEMBERED {
            return Delivery::Answer(self.unanswered(&id));
        }
        self.asked.push_back((id, party));
        Delivery::Done
    }

    /// Tells those sessions on their own streams.
    fn tell_sessions(&self, message: &Message, told: impl Fn(Party) -> bool) -> Delivery {
        let mut queues =
            self.parties.iter().filter(|(party, _)| told(*party)).map(|(_, queue)| queue).peekable();
        if queues.peek().is_none() {
            return Delivery::Lost("a notification that is no session's");
        }
        for queue in queues {
            // A session that nobody listens for hears of the newest changes only.
            let _: Queued = queue.push(Held { message: message.bytes.clone(), role: Role::Notification });
        }
        Delivery::Done
    }

    fn asked_party(&self, id: &[u8]) -> Option<Party> {
        self.asked.iter().find(|(asked, _)| same_id(asked, id)).map(|(_, party)| *party)
    }

    /// Where a notification goes that names no request: to the session's request that began last, else to its own stream;
    /// where it could be meant for several sessions, to nobody.
    fn stream(&self) -> Option<Arc<Queue>> {
        let party = self.only()?;
        let mut flights = self.flights.iter().rev().filter(|flight| flight.aside);
        match flights.find(|flight| flight.party == party) {
            Some(last) => Some(Arc::clone(&last.queue)),
            None => self.own_stream(party),
        }
    }

    fn own_stream(&self, party: Party) -> Option<Arc<Queue>> {
        self.parties.iter().find(|(other, _)| *other == party).map(|(_, queue)| Arc::clone(queue))
    }

    /// The session that everything in flight belongs to; with nothing in flight, the only one there is. A guess among
    /// several would show one principal what the server does for another.
    fn only(&self) -> Option<Party> {
        let flying = self.flights.iter().map(|flight| flight.party);
        let joined = self.parties.iter().map(|(party, _)| *party);
        let mut parties = flying.chain(joined.filter(|_| self.flights.is_empty()));
        let first = parties.next()?;
        parties.all(|other| other == first).then_some(first)
    }

    fn stream_of(&self, flight: &Flight) -> Option<Arc<Queue>> {
        if flight.aside { Some(Arc::clone(&flight.queue)) } else { self.own_stream(flight.party) }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn fail(flights: Vec<Flight>, why: &str) {
    for Flight { id, queue, .. } in flights {
        let data: Option<&Value> = None;
        let _: Queued =
            queue.push(Held { message: reply::error(Some(&id), -32603, why, data), role: Role::Answer });
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
