//! The client's end of a stream that answers a POST: ids of its events, the priming event, what is kept for a client
//! that comes back. Versions before 2025-03-26 know no ids, and before 2025-11-25 clients choke on a priming event.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    fault::Fault,
    jsonrpc::sse::{self, Event},
    receive::Budget,
    session::{
        Session,
        event_id::StreamName,
        posts::{Parted, Post, Reader},
        table::Sessions,
    },
    version::Version,
};

/// The client's end.
#[derive(Debug)]
pub(super) struct ClientStream {
    kept: Option<Kept>,
    priming: bool,
}

#[derive(Debug)]
struct Kept {
    post: Arc<Post>,
    /// The connection that reads it; none once another has taken it over.
    reader: Option<Reader>,
    /// What ids begin with.
    name: String,
}

impl Kept {
    /// Whether another connection has it: what is kept is read there. To be looked at behind the keeping, since who takes
    /// it over before that finds the message, and who does so later asks for what its client has not got.
    fn is_taken(&self) -> bool {
        match self.post.has_parted(self.reader) {
            Some(Parted::Taken) => true,
            Some(Parted::GivenUp) | None => false,
        }
    }
}

impl ClientStream {
    /// None: the client takes JSON only.
    pub(super) fn none() -> Self {
        Self { kept: None, priming: false }
    }

    /// Opens the stream that answers `request`, an id in raw JSON.
    pub(super) fn open(sessions: &Sessions, session: &Session, request: &[u8]) -> Self {
        if session.version < Version::V2025_03_26 || session.ephemeral {
            return Self { kept: None, priming: false };
        }
        let (post, reader) = session.channel().posts.open();
        let stream = StreamName { replica: sessions.replica, number: post.number, request: request.to_vec() };
        match stream.seal(&sessions.seal, session.key) {
            Ok(name) => Self {
                kept: Some(Kept { post, reader: Some(reader), name }),
                priming: session.version >= Version::V2025_11_25,
            },
            Err(error) => {
                tracing::error!(%error, "a stream goes without ids");
                session.channel().posts.close(post.number);
                Self { kept: None, priming: false }
            }
        }
    }

    /// Whether a client that lost it may come back to it.
    pub(super) fn kept(&self) -> Option<&Arc<Post>> {
        self.kept.as_ref().map(|kept| &kept.post)
    }

    /// Whether the client may be told to come back later.
    pub(super) fn polls(&self) -> bool {
        self.priming
    }

    /// The event that every stream begins with, where the client knows it.
    pub(super) fn primer(&self, into: &mut Vec<u8>) {
        if let Some(kept) = self.kept.as_ref().filter(|_| self.priming) {
            sse::write_id(into, &kept.name, 0);
            into.extend_from_slice(b"data: \n\n");
        }
    }

    /// Writes a message of the target's: as the event that it `came` in, unchanged, where that may be, else as a new one.
    ///
    /// # Errors
    /// [`Fault::Overloaded`], where there is no room to keep it: then it is not written.
    pub(super) fn write(
        &self,
        into: &mut Vec<u8>,
        json: &Bytes,
        came: Option<&Event>,
        budget: &Budget,
    ) -> Result<(), Fault> {
        if let Some(kept) = &self.kept {
            let number = kept.post.outbox.take(json.clone(), budget)?;
            if kept.is_taken() {
                return Ok(());
            }
            sse::write_id(into, &kept.name, number);
        }
        match came {
            Some(event) => event.write(into),
            None => sse::write_message(into, json),
        }
        Ok(())
    }

    /// Writes a message of our own.
    pub(super) fn say(&self, into: &mut Vec<u8>, json: &Bytes) {
        if let Some(kept) = &self.kept {
            let number = kept.post.outbox.push(json.clone());
            if kept.is_taken() {
                return;
            }
            sse::write_id(into, &kept.name, number);
        }
        sse::write_message(into, json);
    }

    /// Has the client come back after `wait`.
    pub(super) fn ask_back(into: &mut Vec<u8>, wait: Duration) {
        into.extend_from_slice(format!("retry: {}\n\n", wait.as_millis()).as_bytes());
    }

    /// Its connection is gone: the stream is one without a client, unless another has taken it over.
    pub(super) fn lost(&self, session: &Session) {
        if let Some(kept) = &self.kept
            && let Some(reader) = kept.reader
        {
            session.channel().posts.detach(kept.post.number, reader);
        }
    }

    /// What has ended its connection's part in the stream.
    pub(super) fn has_parted(&self) -> Option<Parted> {
        let Kept { post, reader, name: _ } = self.kept.as_ref()?;
        post.has_parted(*reader)
    }

    /// Waits for that.
    pub(super) async fn parted(&self) -> Parted {
        match &self.kept {
            Some(Kept { post, reader, name: _ }) => post.parted(*reader).await,
            None => std::future::pending().await,
        }
    }

    /// From now on no connection is waited upon: what is written is kept.
    pub(super) fn detached(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.reader = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::posts::Posts;

    #[test]
    fn what_another_connection_has_taken_over_is_kept_for_it_and_not_written_here() {
        let (posts, budget) = (Posts::default(), Budget::new(1 << 20));
        let (post, reader) = posts.open();
        let kept = Kept { post: Arc::clone(&post), reader: Some(reader), name: "name".to_owned() };
        let stream = ClientStream { kept: Some(kept), priming: true };
        let mut write = Vec::new();
        stream.write(&mut write, &Bytes::from_static(b"1"), None, &budget).unwrap();
        assert!(!write.is_empty());
        // Though the connection was not told yet: what it waited for was ready first.
        let (_, _newer) = posts.take(post.number).unwrap();
        write.clear();
        stream.write(&mut write, &Bytes::from_static(b"2"), None, &budget).unwrap();
        stream.say(&mut write, &Bytes::from_static(b"3"));
        assert!(write.is_empty(), "a message went to two streams");
        let numbers: Vec<u64> = post.outbox.read(0).messages.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }
}
