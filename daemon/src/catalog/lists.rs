//! Reads one list of one target, page by page and within bounds. In which session is the caller's to say.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{
    item::{Item, MOST_ITEMS, Page},
    kind::Kind,
};
use crate::{
    fault::TargetFailure,
    target::{
        Target, Wire,
        exchange::{NoAnswer, error_object},
        unary,
    },
};

/// A target that pages for ever is cut off here.
const MOST_PAGES: usize = 200;
/// One whose list is larger, too.
const MOST_BYTES: usize = 16 << 20;
/// A list that takes longer, over all its pages, counts as no answer.
const LIST_TIME: Duration = Duration::from_secs(30);
/// The JSON-RPC error of a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

/// Why a list could not be read.
#[derive(Debug)]
pub enum Unread {
    /// The target forgot the session.
    Lost,
    /// It failed.
    Failed(TargetFailure),
}

/// Reads the list of a kind under a request id, raw JSON, that nothing else in the session has at this time. A page may
/// take as long as a connection; all together, 30 seconds.
///
/// A target that has no such method lists nothing: many announce resources and know no templates.
///
/// # Errors
/// [`Unread`].
pub async fn read(target: &Target, wire: &Wire, kind: Kind, id: &str) -> Result<Arc<[Item]>, Unread> {
    let (mut items, mut bytes, mut cursor) = (Vec::new(), 0, None::<String>);
    let until = Instant::now() + LIST_TIME;
    for _ in 0..MOST_PAGES {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let asking = timeout_at(
            until.min(Instant::now() + target.connect_bound()),
            unary::ask_as(target, wire, id, kind.method(), &params),
        );
        let reply = match asking.await {
            Err(_) => {
                return Err(Unread::Failed(TargetFailure::Timeout(target.config.timeouts.connect_seconds)));
            }
            Ok(Err(NoAnswer::Lost)) => return Err(Unread::Lost),
            Ok(Err(NoAnswer::Error(body)))
                if kind != Kind::Tools
                    && error_object(&body).is_some_and(|error| error.code == METHOD_NOT_FOUND) =>
            {
                return Ok(Arc::new([]));
            }
            Ok(Err(other)) => return Err(Unread::Failed(other.failure())),
            Ok(Ok(reply)) => reply,
        };
        let page = Page::parse(kind, reply.result.get())
            .ok_or(Unread::Failed(TargetFailure::Protocol("a result of a list that is none")))?;
        cursor =
            page.next_cursor.as_ref().map(|cursor| cursor.get().to_owned()).filter(|cursor| cursor != "null");
        items.extend(page.items().filter(|item| kind != Kind::Tools || target.offers_tool(&item.name)));
        bytes += reply.result.get().len();
        if cursor.is_none() || items.len() >= MOST_ITEMS || bytes >= MOST_BYTES {
            break;
        }
    }
    if cursor.is_some() || items.len() > MOST_ITEMS {
        tracing::warn!(
            target = target.alias(),
            list = kind.method(),
            "the target lists too much; the rest is left out"
        );
        items.truncate(MOST_ITEMS);
    }
    Ok(items.into())
}
