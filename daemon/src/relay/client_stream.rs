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

    /// Writes a message of the target's: as the event that it came in where that may be, else as a new one.
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
            sse::write_id(into, &kept.name, number);
        }
        match came.filter(|event| event.plain) {
            Some(event) => into.extend_from_slice(&event.bytes),
            None => into.extend_from_slice(&sse::message(json)),
        }
        Ok(())
    }

    /// Writes a message of our own.
    pub(super) fn say(&self, into: &mut Vec<u8>, json: &Bytes) {
        if let Some(kept) = &self.kept {
            sse::write_id(into, &kept.name, kept.post.outbox.push(json.clone()));
        }
        into.extend_from_slice(&sse::message(json));
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
