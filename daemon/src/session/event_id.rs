//! Pure: ids of events.
//!
//! One names the replica that holds the stream, the stream, and the request that it answers, sealed for its session, and
//! how far the stream has come (DESIGN §3.8; 2025-11-25, transports, resumability).

use crate::{
    seal::{NoSeal, Seal, TAG_LEN},
    session::id::Key,
};

/// The stream on which the client hears of what belongs to no request of its own.
pub const STANDALONE: u32 = 0;

/// A stream, as its events' ids name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    /// Which process holds it.
    pub replica: u32,
    /// Which of the session's streams there; [`STANDALONE`] or one that answers a POST.
    pub number: u32,
    /// The id of the request that it answers, raw JSON; empty where it answers none.
    pub request: Vec<u8>,
}

/// How far a client has read a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Which stream.
    pub stream: StreamName,
    /// The last message that it has; 0 for none.
    pub message: u64,
}

impl StreamName {
    /// What the ids of its events begin with.
    ///
    /// # Errors
    /// [`NoSeal`].
    pub fn seal(&self, seal: &Seal, session: Key) -> Result<String, NoSeal> {
        let Self { replica, number, request } = self;
        let mut plain = Vec::with_capacity(2 * size_of::<u32>() + request.len() + TAG_LEN);
        plain.extend_from_slice(&replica.to_be_bytes());
        plain.extend_from_slice(&number.to_be_bytes());
        plain.extend_from_slice(request);
        seal.seal(&session.bytes(), plain)
    }
}

impl Position {
    /// Reads a `Last-Event-ID`; none where it is no id of this session's.
    pub fn read(text: &str, seal: &Seal, session: Key) -> Option<Self> {
        let (sealed, message) = text.split_once('.')?;
        let plain = seal.open(&session.bytes(), sealed)?;
        let (replica, rest) = plain.split_first_chunk()?;
        let (number, request) = rest.split_first_chunk()?;
        let stream = StreamName {
            replica: u32::from_be_bytes(*replica),
            number: u32::from_be_bytes(*number),
            request: request.to_vec(),
        };
        Some(Self { stream, message: message.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::id::SessionId;

    #[test]
    fn an_event_id_leads_back_to_its_stream_in_its_own_session_only() {
        let (seal, mine, other) =
            (Seal::new().unwrap(), SessionId::mint().unwrap().key(), SessionId::mint().unwrap().key());
        let stream = StreamName { replica: 7, number: 3, request: br#""a.b""#.to_vec() };
        let id = format!("{}.12", stream.seal(&seal, mine).unwrap());
        assert_eq!(Position::read(&id, &seal, mine), Some(Position { stream, message: 12 }));
        assert_eq!(Position::read(&id, &seal, other), None);
        for text in ["", ".", "x.1", "12", &id.replace(".12", ".x"), &id.replace(".12", "")] {
            assert_eq!(Position::read(text, &seal, mine), None, "{text}");
        }
    }
}
