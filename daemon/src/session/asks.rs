//! Requests of targets that wait for the client's answer, under ids of ours: targets number theirs from 0, so that two
//! of them would meet (DESIGN §4). Bounded; sends nothing itself.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::targets::TargetSession;
use crate::jsonrpc::envelope::same_id;

/// Requests of targets that one client may have open.
pub(super) const MOST_OPEN: usize = 64;

/// The open requests of one session.
#[derive(Debug, Default)]
pub struct Asks(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    issued: u64,
    open: HashMap<u64, Ask>,
}

/// One open request.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Who asks.
    pub of: Arc<TargetSession>,
    /// The id that it gave, raw JSON.
    pub id: Bytes,
    /// The progress token that it gave, raw JSON.
    pub token: Option<Bytes>,
    /// Fires when the request is no longer open, whatever the reason.
    pub closed: CancellationToken,
}

/// An id of ours: the process that issued it, and its number in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskId {
    /// The process.
    pub replica: u32,
    /// The number, from 1.
    pub number: u64,
}

/// What an answer of the client's meets.
#[derive(Debug)]
pub enum Answered {
    /// A request that was open, and is no longer.
    Open(Ask),
    /// One that was open once: the answer came too late, and is nobody's.
    Late,
    /// An id that was never issued.
    Never,
}

impl std::fmt::Display for AskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}.{}", self.replica, self.number)
    }
}

impl AskId {
    /// Reads a JSON string that holds one.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(raw).ok()?.strip_prefix('"')?.strip_suffix('"')?;
        let (replica, number) = text.split_once('.')?;
        let strict = replica.len() == 8 && replica.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let replica = strict.then(|| u32::from_str_radix(replica, 16).ok()).flatten()?;
        // One number has one spelling: `+1` and `01` were never issued, nor was 0.
        let spelt = number.starts_with(|first: char| matches!(first, '1'..='9'));
        Some(Self { replica, number: spelt.then(|| number.parse().ok()).flatten()? })
    }

    /// As it stands in a message.
    pub fn json(self) -> String {
        format!("\"{self}\"")
    }
}

impl Asks {
    /// Enters a request; none where the client has too many open.
    pub fn open(&self, replica: u32, ask: Ask) -> Option<AskId> {
        let mut numbered = self.0.lock();
        if numbered.open.len() >= MOST_OPEN {
            return None;
        }
        numbered.issued += 1;
        let number = numbered.issued;
        numbered.open.insert(number, ask);
        Some(AskId { replica, number })
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.0.lock().open.is_empty()
    }

    /// Takes the request that an answer of the client's with this id, raw JSON, is for.
    pub fn answer(&self, replica: u32, id: &[u8]) -> Answered {
        let Some(id) = AskId::parse(id) else { return Answered::Never };
        // Another process's: what it had issued is not known here, and its request is gone with it.
        if id.replica != replica {
            return Answered::Late;
        }
        let mut numbered = self.0.lock();
        match numbered.open.remove(&id.number) {
            Some(ask) => {
                ask.closed.cancel();
                Answered::Open(ask)
            }
            None if id.number <= numbered.issued => Answered::Late,
            None => Answered::Never,
        }
    }

    /// The open request of this id, raw JSON: what the client reports progress on.
    pub fn get(&self, replica: u32, id: &[u8]) -> Option<Ask> {
        let id = AskId::parse(id).filter(|id| id.replica == replica)?;
        self.0.lock().open.get(&id.number).cloned()
    }

    /// Takes a request that is open no longer.
    pub fn close(&self, id: AskId) -> Option<Ask> {
        let ask = self.0.lock().open.remove(&id.number)?;
        ask.closed.cancel();
        Some(ask)
    }

    /// Takes the request that `of` withdraws under its own `id`; the id that the client knows it by.
    pub fn withdraw(&self, of: &TargetSession, id: &[u8]) -> Option<u64> {
        let mut numbered = self.0.lock();
        let same = |ask: &Ask| std::ptr::eq(&raw const *ask.of, of) && same_id(&ask.id, id);
        let number = numbered.open.iter().find(|(_, ask)| same(ask)).map(|(number, _)| *number)?;
        numbered.open.remove(&number)?.closed.cancel();
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::target_session;

    fn ask(of: &Arc<TargetSession>, id: &'static str) -> Ask {
        let id = Bytes::from_static(id.as_bytes());
        Ask { of: Arc::clone(of), id, token: None, closed: CancellationToken::new() }
    }

    #[test]
    fn two_targets_with_one_id_get_each_its_own_answer_and_once() {
        let asks = Asks::default();
        let (a, b) = (target_session("a"), target_session("b"));
        let ids = [&a, &b].map(|of| asks.open(7, ask(of, "1")).unwrap());
        assert_ne!(ids[0], ids[1]);
        for (id, alias) in ids.iter().zip(["a", "b"]).rev() {
            let Answered::Open(open) = asks.answer(7, id.json().as_bytes()) else { panic!("{id}") };
            assert_eq!((open.of.target.alias(), open.id.as_ref()), (alias, b"1".as_ref()));
            assert!(open.closed.is_cancelled());
            assert!(matches!(asks.answer(7, id.json().as_bytes()), Answered::Late));
        }
    }

    #[test]
    fn an_answer_to_what_was_never_asked_is_told_from_a_late_one() {
        let asks = Asks::default();
        let id = asks.open(7, ask(&target_session("a"), "1")).unwrap();
        for never in [
            "1",
            "\"1\"",
            "\"00000007.2\"",
            "\"7.1\"",
            "\"00000007.0\"",
            "null",
            "\"00000007.x\"",
            "\"00000007.+1\"",
            "\"00000007.01\"",
        ] {
            assert!(matches!(asks.answer(7, never.as_bytes()), Answered::Never), "{never}");
        }
        assert!(matches!(asks.answer(8, id.json().as_bytes()), Answered::Late), "another process's");
        assert!(asks.close(id).is_some());
        assert!(matches!(asks.answer(7, id.json().as_bytes()), Answered::Late));
    }

    #[test]
    fn a_target_withdraws_only_its_own_request() {
        let asks = Asks::default();
        let (a, b) = (target_session("a"), target_session("b"));
        let id = asks.open(7, ask(&a, "1")).unwrap();
        assert_eq!(asks.withdraw(&b, b"1"), None);
        assert_eq!(asks.withdraw(&a, b"2"), None);
        assert_eq!(asks.withdraw(&a, b"1"), Some(id.number));
        assert_eq!(asks.withdraw(&a, b"1"), None);
    }

    #[test]
    fn a_client_is_not_asked_without_end() {
        let (asks, a) = (Asks::default(), target_session("a"));
        for _ in 0..MOST_OPEN {
            assert!(asks.open(7, ask(&a, "1")).is_some());
        }
        assert!(asks.open(7, ask(&a, "1")).is_none());
    }
}
