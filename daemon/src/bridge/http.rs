//! The bridge's HTTP side: Streamable HTTP with sessions (2025-11-25, transports). Whoever lets others than a gateway in
//! the same process connect checks Host and Origin before it.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName},
    request::Parts,
};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use tokio::time::timeout;

use super::{
    Bridge,
    conversation::{Caller, Flight},
    queue::{Held, Reader, Role},
    refusal::Refusal,
    table::Session,
};
use crate::jsonrpc::{Kind, Message, sse};

/// `Mcp-Session-Id`.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The largest body.
const BODY_BYTES: usize = 16 << 20;
/// How long a stream may be silent before a comment keeps it.
const SILENCE: Duration = Duration::from_secs(15);

/// The body of an answer.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Answers one request.
pub(super) async fn handle<B>(bridge: &Bridge, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    match head.method {
        Method::POST => match Limited::new(body, BODY_BYTES).collect().await {
            Ok(body) => post(bridge, &head, body.to_bytes()).await,
            Err(_) => refused(&Refusal::Body, None),
        },
        Method::GET => match session(bridge, &head.headers) {
            Ok((_, session)) => events(None, session.stream.read(), None),
            Err(refusal) => refused(&refusal, None),
        },
        Method::DELETE => match session(bridge, &head.headers) {
            Ok((id, _)) => {
                bridge.around.table.end(id);
                whole(StatusCode::OK, Bytes::new())
            }
            Err(refusal) => refused(&refusal, None),
        },
        _ => {
            let mut answer = refused(&Refusal::Method, None);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            answer
        }
    }
}

async fn post(bridge: &Bridge, head: &Parts, body: Bytes) -> Answer {
    let message = match Message::parse(body) {
        Ok(message) => message,
        Err(invalid) => return refused(&invalid.into(), None),
    };
    let id = match &message.kind {
        Kind::Request { id, .. } => Some(id.clone()),
        Kind::Notification { .. } | Kind::Response { .. } => None,
    };
    match answer(bridge, head, &message).await {
        Ok(answer) => answer,
        Err(refusal) => {
            if let Some(limit) = refusal.limit() {
                bridge.around.refusals.count(limit);
            }
            refused(&refusal, id.as_deref())
        }
    }
}

async fn answer(bridge: &Bridge, head: &Parts, message: &Message) -> Result<Answer, Refusal> {
    if let Kind::Request { id, method, params: _ } = &message.kind
        && method.as_str() == "initialize"
    {
        if head.headers.contains_key(SESSION_ID) {
            return Err(Refusal::SessionOnInitialize);
        }
        let (session, text) = bridge.initialize(head, message, id).await?;
        let mut answer = json(text);
        let session = HeaderValue::from_str(&session).map_err(|_| Refusal::Random)?;
        answer.headers_mut().insert(SESSION_ID, session);
        return Ok(answer);
    }
    let (_, session) = session(bridge, &head.headers)?;
    let Session { conversation, party, .. } = &*session;
    let caller = Caller { party: *party, headers: &head.headers };
    match &message.kind {
        Kind::Request { id, .. } => {
            let (reader, flight) = conversation.ask(caller, message, id, true).await?;
            Ok(match reader.next().await {
                Some(Held { message, role: Role::Answer }) => json(message),
                first => events(first, reader, Some(flight)),
            })
        }
        Kind::Notification { method, .. } if method.as_str() == "notifications/initialized" => {
            conversation.initialized(caller, message).await.map(|()| accepted())
        }
        Kind::Notification { .. } => conversation.tell(caller, message).await.map(|()| accepted()),
        Kind::Response { id } => conversation.respond(caller, message, id).await.map(|()| accepted()),
    }
}

fn session<'a>(
    bridge: &Bridge,
    headers: &'a HeaderMap,
) -> Result<(&'a str, std::sync::Arc<Session>), Refusal> {
    let id = headers.get(SESSION_ID).ok_or(Refusal::MissingSession)?;
    let id = id.to_str().map_err(|_| Refusal::UnknownSession)?;
    let session = bridge.around.table.find(id).ok_or(Refusal::UnknownSession)?;
    session.touch();
    Ok((id, session))
}

/// An event stream: `first`, then what the reader gives, until its end. `flight` is over with it.
fn events(first: Option<Held>, reader: Reader, flight: Option<Flight>) -> Answer {
    let chunks = stream::unfold((first, reader, flight), |(first, reader, flight)| async move {
        let held = match first {
            Some(held) => Ok(Some(held)),
            None => timeout(SILENCE, reader.next()).await,
        };
        let chunk = match held {
            Ok(held) => sse::message(&held?.message),
            Err(_) => sse::KEEP_ALIVE,
        };
        Some((Ok(Frame::data(chunk)), (None, reader, flight)))
    });
    let mut answer = Response::new(StreamBody::new(chunks).boxed_unsync());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

fn json(text: Bytes) -> Answer {
    let mut answer = whole(StatusCode::OK, text);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn accepted() -> Answer {
    whole(StatusCode::ACCEPTED, Bytes::new())
}

fn refused(refusal: &Refusal, id: Option<&[u8]>) -> Answer {
    let mut answer = json(refusal.body(id));
    *answer.status_mut() = refusal.status();
    answer
}

fn whole(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed_unsync());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mooring_crds::config::{CommandConfig, Isolation};

    use super::{
        super::{Source, table::UNUSED},
        *,
    };
    use crate::testing::shared;

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

    fn post(text: &'static str) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from_static(text.as_bytes())));
        *request.method_mut() = Method::POST;
        request
    }

    /// A bridge in front of a process that answers `initialize` and says no more.
    fn bridge(isolation: Isolation) -> Arc<Bridge> {
        let script = r#"read line; id=${line#*\"id\":}; echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%,*},\"result\":{}}"; cat >/dev/null"#;
        let command = ["sh", "-c", script].map(str::to_owned).into();
        let source = Source::Process(CommandConfig { command, isolation, ..CommandConfig::default() });
        let shared = shared();
        Bridge::new("a", source, &shared.tasks, &shared.metrics.target("tools", "a").refusals)
    }

    #[tokio::test]
    async fn a_session_whose_client_did_not_get_its_id_ends_and_one_that_was_used_stays() {
        for isolation in [Isolation::PerSession, Isolation::Shared] {
            let bridge = bridge(isolation);
            let mut begun = Vec::new();
            for _ in 0..2 {
                let answer = handle(&bridge, post(INITIALIZE)).await;
                begun.push(answer.headers().get(SESSION_ID).cloned().unwrap());
            }
            let is_there = |id: &HeaderValue| bridge.around.table.find(id.to_str().unwrap()).is_some();
            assert!(begun.iter().all(is_there));
            let mut used = post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            used.headers_mut().insert(SESSION_ID, begun[1].clone());
            assert_eq!(handle(&bridge, used).await.status(), StatusCode::ACCEPTED);
            // Only now, since the clock would not wait for a process.
            tokio::time::pause();
            drop(timeout(UNUSED * 2, std::future::pending::<()>()).await);
            assert_eq!((is_there(&begun[0]), is_there(&begun[1])), (false, true), "{isolation:?}");
            tokio::time::resume();
        }
    }

    #[tokio::test]
    async fn a_session_that_there_is_no_process_left_for_is_refused_and_counted() {
        let shared = shared();
        let refusals = shared.metrics.target("tools", "a").refusals;
        let bridge = Bridge::new("a", Source::Process(CommandConfig::default()), &shared.tasks, &refusals);
        bridge.processes.forget_permits(super::super::MOST_PROCESSES);
        assert_eq!(handle(&bridge, post(INITIALIZE)).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let shown =
            prometheus::TextEncoder::new().encode_to_string(&shared.metrics.registry.gather()).unwrap();
        let line = r#"mooring_target_refusals_total{gateway="tools",limit="processes",target="a"} 1"#;
        assert!(shown.contains(line), "{shown}");
    }
}
