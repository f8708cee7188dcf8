//! Notes what clients subscribe to, and take back: a target session that is begun in another's place is told of it.

use crate::{
    body::Answer,
    jsonrpc::{Kind, Message, span},
    session::Session,
    target::{Target, exchange::error_object},
};

/// What a request means to the subscriptions of its session.
#[derive(Debug)]
pub(super) enum Subscription {
    /// It subscribes to this URI.
    Made(Box<str>),
    /// It takes that back.
    TakenBack(Box<str>),
}

impl Subscription {
    /// What `message` means to them; none for nearly all requests.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let Kind::Request { method, .. } = &message.kind else { return None };
        let meant = match method.as_str() {
            "resources/subscribe" => Self::Made,
            "resources/unsubscribe" => Self::TakenBack,
            _ => return None,
        };
        span::text(&message.bytes, &["params", "uri"]).map(|uri| meant(uri.into()))
    }

    /// To be called before the request is sent: a target session that is begun for it is told of nothing that it takes
    /// back.
    pub(super) fn sent(&self, session: &Session, target: &Target) {
        match self {
            Self::Made(_) => {}
            Self::TakenBack(uri) => session.channel().subscribed.remove(&target.config.uid, uri),
        }
    }

    /// To be called with the target's answer.
    pub(super) fn answered(&self, session: &Session, target: &Target, answer: &Answer) {
        match self {
            // A refusal that comes as an event is not seen here: then one is asked for again that is refused again.
            Self::Made(uri) if answer.as_whole().is_none_or(|json| error_object(json).is_none()) => {
                session.channel().subscribed.add(&target.config.uid, uri);
            }
            Self::Made(_) | Self::TakenBack(_) => {}
        }
    }
}
