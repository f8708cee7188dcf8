//! Batches: JSON-RPC arrays, which 2025-03-26 alone has (base protocol, batching). Their requests run side by side, each
//! as if it had come alone, and the answer is one array. What targets ask meanwhile goes to the client's GET stream.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Response;
use http_body_util::{BodyExt, Limited};
use serde_json::value::RawValue;

use super::{Context, accepted, post};
use crate::{
    body::Answer,
    edge::Accepts,
    fault::Fault,
    jsonrpc::{Kind, Message, reply},
    receive::Share,
    relay::json_response,
    session::Session,
    version::Version,
};

/// The largest answer that one message of a batch may have.
const ANSWER_BYTES: usize = 8 << 20;
/// Messages of one batch.
const MOST_MESSAGES: usize = 64;

pub(super) async fn batch(
    context: &mut Context<'_>,
    bytes: &Bytes,
    share: Share,
    accepts: Accepts,
) -> Result<Response<Answer>, Fault> {
    context.account.method = "batch".into();
    let session = context.session().await?;
    let none = || Fault::NotAMessage("a batch; send one message at a time".to_owned());
    if session.version != Version::V2025_03_26 {
        return Err(none());
    }
    let parts: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|_| Fault::Syntax)?;
    if parts.is_empty() || parts.len() > MOST_MESSAGES {
        return Err(Fault::NotAMessage(format!("a batch has 1 to {MOST_MESSAGES} messages")));
    }
    let messages = parts.iter().map(|part| Message::parse(bytes.slice_ref(part.get().as_bytes())));
    let messages: Vec<Result<Message, Fault>> = messages.map(|parsed| parsed.map_err(Fault::from)).collect();
    let begins = |message: &Message| matches!(&message.kind, Kind::Request { method, .. } if method.as_str() == "initialize");
    if messages.iter().flatten().any(begins) {
        return Err(Fault::NotAMessage("initialize comes alone, never in a batch".to_owned()));
    }
    let context = &*context;
    let answers = join_all(messages.iter().map(|message| async {
        match message {
            Ok(message) => one(context, &session, message, accepts.in_part()).await,
            // The others are answered all the same (JSON-RPC 2.0 §6).
            Err(fault) => Some((
                reply::error(None, fault.code(), &fault.message(), None),
                context.gateway.shared.budget.share(),
            )),
        }
    }));
    let answers = answers.await;
    drop(share);
    // The shares go with the answers, once they are one body.
    let (answers, _shares): (Vec<Bytes>, Vec<Share>) = answers.into_iter().flatten().unzip();
    if answers.is_empty() {
        return Ok(accepted());
    }
    Ok(json_response(Answer::whole(Bytes::from([&b"["[..], &answers.join(&b","[..]), b"]"].concat()))))
}

/// The answer to one message, where it wants one.
async fn one(
    context: &Context<'_>,
    session: &Arc<Session>,
    message: &Message,
    accepts: Accepts,
) -> Option<(Bytes, Share)> {
    let mut alone = context.beside(session);
    post::note(&mut alone, message);
    let admitted = match &message.kind {
        Kind::Request { .. } => alone.admit().and_then(|()| alone.admit_to(session)),
        Kind::Notification { .. } | Kind::Response { .. } => Ok(()),
    };
    let budget = &context.gateway.shared.budget;
    let (share, mut answer_share) = (budget.share(), budget.share());
    let outcome = match admitted {
        Ok(()) => post::message_in(&mut alone, session, message, share, accepts).await,
        Err(fault) => Err(fault),
    };
    let wants = matches!(message.kind, Kind::Request { .. });
    let whole = match outcome {
        Ok(response) => {
            alone.account.status = Some(response.status());
            whole(response.into_body(), &mut answer_share).await
        }
        Err(fault) => Err(fault),
    };
    let answer = whole.unwrap_or_else(|fault| {
        alone.account.status = Some(fault.status());
        let error = reply::error(alone.id.as_deref(), fault.code(), &fault.message(), fault.data().as_ref());
        alone.account.fault = Some(fault);
        error
    });
    wants.then_some((answer, answer_share))
}

/// The whole of an answer. It is held until all are there, so it counts as bodies do.
async fn whole(body: Answer, share: &mut Share) -> Result<Bytes, Fault> {
    let read = Limited::new(body, ANSWER_BYTES).collect().await;
    let body = read.map_err(|_| Fault::BatchAnswer)?.to_bytes();
    share.hold(body.len() as u64)?;
    Ok(body)
}
