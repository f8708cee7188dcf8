//! Pure: which sessions of a shared server have subscribed to which resources. The server knows one client, so that what
//! one session subscribes to it would tell all of them, and what one takes back it would tell nobody.

use std::collections::BTreeSet;

use super::board::Party;
use crate::jsonrpc::{Kind, Message, span};

/// Subscriptions at one server.
pub(super) const MOST: usize = 1024;
/// Bytes of their URIs.
const MOST_BYTES: usize = 1 << 20;

/// What takes a subscription back.
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Who has subscribed to what.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    of: BTreeSet<(Party, Box<str>)>,
    bytes: usize,
}

/// Enough are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MOST} resources are subscribed to at this server, or their URIs are too long")]
pub(super) struct Full;

/// What a request means to subscriptions.
#[derive(Debug, Default)]
pub(super) struct Meant {
    /// What it subscribes to, where the session had not done so before.
    pub(super) subscribes: Option<Box<str>>,
    /// It takes back what others keep: the server must not hear of it.
    pub(super) is_kept: bool,
}

/// The URI that a message is about; none where it cannot be told, or names nothing.
pub(super) fn uri(message: &Message) -> Option<Box<str>> {
    span::text(&message.bytes, &["params", "uri"]).filter(|uri| !uri.is_empty()).map(Into::into)
}

/// Whether a message takes a subscription back.
pub(super) fn takes_back(message: &Message) -> bool {
    matches!(&message.kind, Kind::Request { method, .. } if method.as_str() == UNSUBSCRIBE)
}

impl Subscriptions {
    /// A request of a session, which may subscribe, or take that back.
    pub(super) fn ask(&mut self, party: Party, message: &Message) -> Result<Meant, Full> {
        let Kind::Request { method, .. } = &message.kind else { return Ok(Meant::default()) };
        let mut meant = Meant::default();
        match method.as_str() {
            "resources/subscribe" => {
                if let Some(uri) = uri(message)
                    && self.add(party, &uri)?
                {
                    meant.subscribes = Some(uri);
                }
            }
            UNSUBSCRIBE => {
                meant.is_kept = uri(message).is_some_and(|uri| self.remove(party, &uri));
            }
            _ => {}
        }
        Ok(meant)
    }

    /// A session subscribes; `false` where it has done so before.
    fn add(&mut self, party: Party, uri: &str) -> Result<bool, Full> {
        let entry = (party, Box::from(uri));
        if self.of.contains(&entry) {
            return Ok(false);
        }
        if self.of.len() >= MOST || self.bytes + uri.len() > MOST_BYTES {
            return Err(Full);
        }
        self.bytes += uri.len();
        Ok(self.of.insert(entry))
    }

    /// A session takes its subscription back; whether others still have one to this URI.
    pub(super) fn remove(&mut self, party: Party, uri: &str) -> bool {
        self.retain(|whose, what| !(whose == party && what == uri));
        self.of.iter().any(|(_, what)| &**what == uri)
    }

    /// A session is over; what it alone had subscribed to.
    pub(super) fn part(&mut self, party: Party) -> Vec<Box<str>> {
        let own = self.of.iter().filter(|(whose, _)| *whose == party).map(|(_, what)| what.clone());
        let mut own: Vec<Box<str>> = own.collect();
        self.retain(|whose, _| whose != party);
        own.retain(|uri| self.of.iter().all(|(_, what)| what != uri));
        own
    }

    /// Whether a session hears that `uri` has changed: it has subscribed to it, or to one that it is part of, since what
    /// changes may be a part of what was subscribed to (2025-11-25, resources, subscriptions).
    pub(super) fn hears(&self, party: Party, uri: &str) -> bool {
        self.of.iter().any(|(whose, what)| *whose == party && is_within(uri, what))
    }

    fn retain(&mut self, keep: impl Fn(Party, &str) -> bool) {
        self.of.retain(|(party, uri)| keep(*party, uri));
        self.bytes = self.of.iter().map(|(_, uri)| uri.len()).sum();
    }
}

/// Whether `uri` is `whole`, or a part of it: what comes behind begins a new segment.
fn is_within(uri: &str, whole: &str) -> bool {
    uri.strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#']))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_session_hears_of_what_it_subscribed_to_and_of_its_parts_until_it_takes_that_back_or_leaves() {
        let mut all = Subscriptions::default();
        assert_eq!(
            [all.add(1, "x://a"), all.add(1, "x://a"), all.add(2, "x://a/b")],
            [true, false, true].map(Ok)
        );
        let hear = |all: &Subscriptions, uri| [1, 2, 3].map(|party| all.hears(party, uri));
        assert_eq!(hear(&all, "x://a"), [true, false, false]);
        assert_eq!(hear(&all, "x://a/b"), [true, true, false]);
        assert_eq!(hear(&all, "x://ab"), [false, false, false]);
        assert_eq!(hear(&all, "x://"), [false; 3]);
        assert_eq!(all.part(2), ["x://a/b".into()]);
        assert_eq!(hear(&all, "x://a/b"), [true, false, false]);
        assert!(!all.remove(1, "x://a"));
        assert_eq!(hear(&all, "x://a"), [false; 3]);
    }

    #[test]
    fn what_others_still_have_is_told_from_what_nobody_has() {
        let mut all = Subscriptions::default();
        for party in [1, 2] {
            assert_eq!(all.add(party, "x://a"), Ok(true));
        }
        assert!(all.remove(1, "x://a"));
        assert!(all.remove(1, "x://a"), "one that it has not is none that it takes from others");
        assert_eq!(all.add(1, "x://a"), Ok(true));
        assert!(all.part(1).is_empty());
        assert!(!all.remove(2, "x://a"));
    }

    #[test]
    fn subscriptions_are_bounded_in_number_and_in_bytes_and_room_comes_back() {
        let mut all = Subscriptions::default();
        for number in 0..MOST {
            assert_eq!(all.add(1, &number.to_string()), Ok(true));
        }
        assert_eq!(all.add(2, "more"), Err(Full));
        assert_eq!(all.add(1, "7"), Ok(false), "it is there");
        assert_eq!(all.part(1).len(), MOST);
        assert_eq!(all.add(2, &"x".repeat(MOST_BYTES)), Ok(true));
        assert_eq!(all.add(2, "more"), Err(Full));
        all.remove(2, &"x".repeat(MOST_BYTES));
        assert_eq!(all.add(2, "more"), Ok(true));
    }

    #[test]
    fn a_uri_is_read_unescaped_and_not_where_it_is_none() {
        let of = |params: &'static str| {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#);
            uri(&Message::parse(Bytes::from(text)).unwrap()).map(String::from)
        };
        assert_eq!(of(r#"{"uri":"x:\/\/a"}"#).as_deref(), Some("x://a"));
        for none in [r#"{"uri":1}"#, r#"{"uri":""}"#, "{}"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
