//! `initialize` at a bridge: with a server of the session's own, or with the one that all sessions share, which is
//! asked once and whose result all of them get.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::request::Parts;
use mooring_crds::config::Isolation;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{sync::OnceCell, time::timeout};

use super::{
    Bridge, Source,
    conversation::{Caller, Conversation},
    peer::Unreached,
    process,
    refusal::Refusal,
    sse,
    table::Session,
};
use crate::jsonrpc::{Message, reply};

/// The longest that a server may take to answer `initialize`; whoever asks may have less patience, and leave.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// The one conversation that sessions share: begun by the first of them, and told to all who wait for it, also where
/// it fails. A failure is not kept for those who come later.
#[derive(Debug, Default)]
pub(super) struct Joint(OnceCell<Result<Shaken, Refusal>>);

/// A server that has answered `initialize`.
#[derive(Debug, Clone)]
struct Shaken {
    conversation: Arc<Conversation>,
    result: Arc<RawValue>,
}

#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Joint {
    /// Whether a new one is needed: it failed, or its server has ended.
    fn is_over(&self) -> bool {
        match self.0.get() {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(shaken)) => shaken.conversation.end.is_cancelled(),
        }
    }
}

impl Bridge {
    /// A new session: its id, and what `initialize` is answered.
    pub(super) async fn initialize(
        &self,
        head: &Parts,
        message: &Message,
        id: &Bytes,
    ) -> Result<(String, Bytes), Refusal> {
        let shared = match &self.source {
            Source::Process(config) => config.isolation == Isolation::Shared,
            Source::Sse { .. } => false,
        };
        if !shared {
            let (conversation, guard) = self.reach(head, false).await?;
            let (session, text) = self.shake(conversation, head, message, id).await?;
            let found = self.admit(session)?;
            drop(guard.disarm());
            return Ok((found, text));
        }
        let joint = self.joint();
        let shaken = joint.0.get_or_init(|| self.first(head, message, id)).await.clone()?;
        let (party, stream) = shaken.conversation.join().ok_or(Refusal::UnknownSession)?;
        let text = reply::result(id, shaken.result.get().as_bytes());
        Ok((self.admit(Session::new(shaken.conversation, party, stream))?, text))
    }

    async fn first(&self, head: &Parts, message: &Message, id: &Bytes) -> Result<Shaken, Refusal> {
        let (conversation, guard) = self.reach(head, true).await?;
        let (session, text) = self.shake(conversation, head, message, id).await?;
        let Session { conversation, party, .. } = session;
        conversation.part(party);
        let answered: Answered<'_> = serde_json::from_slice(&text).map_err(|_| unlike())?;
        let result = answered.result.ok_or_else(unlike)?.to_owned();
        drop(guard.disarm());
        Ok(Shaken { conversation, result: result.into() })
    }

    fn joint(&self) -> Arc<Joint> {
        let mut joint = self.joint.lock();
        if joint.is_over() {
            *joint = Arc::default();
        }
        Arc::clone(&joint)
    }

    /// A conversation with a server that is new. Dropping the guard ends it.
    async fn reach(
        &self,
        head: &Parts,
        shared: bool,
    ) -> Result<(Arc<Conversation>, tokio_util::sync::DropGuard), Refusal> {
        let end = self.alive.child_token();
        let guard = end.clone().drop_guard();
        let peer = match &self.source {
            Source::Process(config) => {
                let permit = Arc::clone(&self.processes).try_acquire_owned();
                let permit = permit.map_err(|_| Unreached::TooMany(super::MOST_PROCESSES))?;
                process::spawn(config, &self.around, end.clone(), permit)?
            }
            Source::Sse { http, url } => sse::open(&self.around, http, url, head, end.clone()).await?,
        };
        Ok((Conversation::begin(&self.around, peer, shared, end), guard))
    }

    /// Has `initialize` answered in a session that is not one yet.
    async fn shake(
        &self,
        conversation: Arc<Conversation>,
        head: &Parts,
        message: &Message,
        id: &Bytes,
    ) -> Result<(Session, Bytes), Refusal> {
        let (party, stream) = conversation.join().ok_or(Refusal::UnknownSession)?;
        let (reader, _flight) =
            match conversation.ask(Caller { party, headers: &head.headers }, message, id, false).await {
                Ok(asked) => asked,
                // There is no session yet that could be gone.
                Err(Refusal::UnknownSession) => return Err(unlike()),
                Err(other) => return Err(other),
            };
        let answer = timeout(ANSWER_TIME, reader.next()).await.map_err(|_| Refusal::Silent)?;
        let text = answer.ok_or_else(unlike)?.message;
        let answered: Answered<'_> = serde_json::from_slice(&text).map_err(|_| unlike())?;
        match answered {
            Answered { error: Some(error), result: _ } => Err(Refusal::Server(error.to_owned())),
            Answered { error: None, result: Some(_) } => {
                Ok((Session::new(conversation, party, stream), text))
            }
            Answered { error: None, result: None } => Err(unlike()),
        }
    }

    /// Makes it a session that can be found.
    fn admit(&self, session: Session) -> Result<String, Refusal> {
        let conversation = Arc::clone(&session.conversation);
        let (id, session) = self.around.table.insert(session).map_err(|_| Refusal::Random)?;
        // Looked at behind the entry: the end of a server takes entries out first.
        if conversation.end.is_cancelled() {
            self.around.table.forget(&conversation);
        }
        let (table, begun) = (Arc::clone(&self.around.table), id.clone());
        self.around.tasks.spawn(async move {
            // Whoever asked may have left while the answer was on its way: then nobody has the id, to end it by.
            if !session.is_used().await {
                table.end(&begun);
            }
        });
        Ok(id)
    }
}

fn unlike() -> Refusal {
    Refusal::NotSent(super::peer::NotSent::Refused("initialize was not answered as it must be".to_owned()))
}
