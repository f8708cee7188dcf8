//! The client's side of HTTP+SSE (2024-11-05, transports): the server speaks on one event stream, and takes POSTs at an
//! address that it names there. Makes no connections of its own.

mod endpoint;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Uri,
    header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING},
    request::Parts,
};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use mooring_runtime::Tasks;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Around,
    http::SESSION_ID,
    peer::{NotSent, Outlet, Peer, UNDER_WAY, Unreached},
};
use crate::jsonrpc::{Message, sse::Splitter};

/// How long a server may take to open its stream and to name its endpoint.
const OPEN_TIME: Duration = Duration::from_secs(30);
/// How long it may take to take a message.
const POST_TIME: Duration = Duration::from_secs(30);
/// What is read of an answer that means nothing.
const READ_BYTES: usize = 64 << 10;
/// The longest message.
const EVENT_BYTES: usize = 16 << 20;

/// How requests are sent to the server.
pub trait Http: fmt::Debug + Send + Sync + 'static {
    /// Sends one; the caller bounds the wait.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Incoming>, String>>;
}

/// Where messages are posted to.
#[derive(Debug)]
pub(super) struct Posts {
    http: Arc<dyn Http>,
    uri: Uri,
    name: Arc<str>,
    /// What answers of our own are sent with: as the newest message of the session was, since credentials change while
    /// it lasts.
    newest: ArcSwap<HeaderMap>,
    tasks: Tasks,
    /// Its stream has ended.
    gone: CancellationToken,
}

/// Opens the event stream at `url` and waits until it names the endpoint; `head` is of the request that asks for it.
///
/// # Errors
/// [`Unreached::Stream`].
pub(super) async fn open(
    around: &Around,
    http: &Arc<dyn Http>,
    url: &Uri,
    head: &Parts,
    end: CancellationToken,
) -> Result<Peer, Unreached> {
    let Around { name, tasks, .. } = around;
    let late = || Unreached::Stream(format!("it named no endpoint within {} s", OPEN_TIME.as_secs()));
    let url = endpoint::asked(url, &head.uri);
    let opening = async {
        let mut stream = EventStream::open(http, &url, head).await?;
        let named = stream.endpoint().await?;
        let uri = endpoint::resolve(&url, &named)
            .ok_or_else(|| "its endpoint is no address of its own origin".to_owned())?;
        Ok((stream, uri))
    };
    let (stream, uri) = timeout(OPEN_TIME, opening).await.map_err(|_| late())?.map_err(Unreached::Stream)?;
    let gone = CancellationToken::new();
    let posts = Posts {
        http: Arc::clone(http),
        uri,
        name: Arc::clone(name),
        newest: ArcSwap::from_pointee(handed_on(&head.headers)),
        tasks: tasks.clone(),
        gone: gone.clone(),
    };
    let (said, incoming) = mpsc::channel(UNDER_WAY);
    let why = Arc::new(OnceLock::new());
    let reason = Arc::clone(&why);
    tasks.spawn(async move {
        let ended = end.run_until_cancelled(stream.messages(&said)).await;
        gone.cancel();
        let text = ended.unwrap_or_else(|| "the session was ended".to_owned());
        // Set once, here, and before `said` is dropped.
        let _: &String = reason.get_or_init(|| text);
        drop(said);
    });
    Ok(Peer { outlet: Outlet::Posts(Arc::new(posts)), incoming, why })
}

/// What of a request's headers goes on to the server: all but those of the one connection and of our side.
fn handed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [HOST, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, ACCEPT, SESSION_ID] {
        headers.remove(name);
    }
    headers
}

struct EventStream {
    body: Incoming,
    splitter: Splitter,
}

impl EventStream {
    async fn open(http: &Arc<dyn Http>, url: &Uri, head: &Parts) -> Result<Self, String> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = url.clone();
        *request.headers_mut() = handed_on(&head.headers);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = http.send(request).await?;
        if !response.status().is_success() {
            return Err(format!("HTTP {}", response.status().as_u16()));
        }
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with(b"text/event-stream") {
            return Err("it is no event stream".to_owned());
        }
        Ok(Self { body: response.into_body(), splitter: Splitter::new(EVENT_BYTES) })
    }

    /// The next event's type and data.
    async fn next(&mut self) -> Result<(endpoint::EventType, Bytes), String> {
        loop {
            if let Some(event) = self.splitter.next_event() {
                return Ok((endpoint::event_type(&event.bytes), event.data));
            }
            let frame = match self.body.frame().await {
                None => return Err("the server's event stream has ended".to_owned()),
                Some(Err(error)) => return Err(format!("the server's event stream broke off: {error}")),
                Some(Ok(frame)) => frame,
            };
            if let Ok(data) = frame.into_data() {
                self.splitter.push(&data).map_err(|error| format!("the server's event stream: {error}"))?;
            }
        }
    }

    async fn endpoint(&mut self) -> Result<String, String> {
        loop {
            if let (endpoint::EventType::Endpoint, data) = self.next().await? {
                return String::from_utf8(data.to_vec()).map_err(|_| "its endpoint is no text".to_owned());
            }
        }
    }

    /// Hands the messages on; returns why there are no more.
    async fn messages(mut self, said: &mpsc::Sender<Message>) -> String {
        loop {
            let data = match self.next().await {
                Ok((endpoint::EventType::Message, data)) if !data.is_empty() => data,
                Ok(_) => continue,
                Err(why) => return why,
            };
            match Message::parse(data) {
                Ok(message) => {
                    if said.send(message).await.is_err() {
                        return "nobody listens".to_owned();
                    }
                }
                Err(error) => tracing::debug!(%error, "an event that is no message is skipped"),
            }
        }
    }
}

impl Posts {
    /// Posts a message of the session, sent with these headers.
    pub(super) async fn post(&self, headers: &HeaderMap, message: Bytes) -> Result<(), NotSent> {
        let headers = handed_on(headers);
        // Nearly always they are the same.
        if **self.newest.load() != headers {
            self.newest.store(Arc::new(headers.clone()));
        }
        self.send(headers, message).await
    }

    /// The server takes it with 202, and answers on its stream.
    async fn send(&self, headers: HeaderMap, message: Bytes) -> Result<(), NotSent> {
        if self.gone.is_cancelled() {
            return Err(NotSent::Gone);
        }
        let mut request = Request::new(message);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = timeout(POST_TIME, self.http.send(request)).await.map_err(|_| NotSent::Stuck)?;
        let response = response.map_err(NotSent::Refused)?;
        if !response.status().is_success() {
            return Err(NotSent::Refused(format!("HTTP {}", response.status().as_u16())));
        }
        // Read, so that the connection can be used again; what it says there means nothing.
        drop(timeout(POST_TIME, Limited::new(response.into_body(), READ_BYTES).collect()).await);
        Ok(())
    }

    /// Posts an answer of our own, beside everything else.
    pub(super) fn answer(self: &Arc<Self>, message: Bytes) {
        let posts = Arc::clone(self);
        self.tasks.spawn(async move {
            let headers = HeaderMap::clone(&posts.newest.load());
            if let Err(error) = posts.send(headers, message).await {
                tracing::debug!(server = &*posts.name, %error, "an answer of the bridge was not taken");
            }
        });
    }
}
