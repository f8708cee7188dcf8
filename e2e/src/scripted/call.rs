//! What the tools of a scripted server do. Each answers one `tools/call`; streams are fed by the call itself.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use super::{
    PATIENCE,
    endpoint::{self, Endpoint},
    record::{Asked, Seen, State, Stream},
    script::{Behaviour, EventIds},
};
use crate::{
    http::{BodySender, Cut, Reply, ReplyBody, event_stream, json},
    jsonrpc,
};

/// A `tools/call` with its arguments as they were spelt.
#[derive(serde::Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(serde::Deserialize)]
struct Params<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Answers a call by the behaviour of the tool it names.
pub(super) async fn call(endpoint: &Arc<Endpoint>, seen: &Seen, released: watch::Receiver<u64>) -> Reply {
    let id = seen.id().unwrap_or(&Value::Null).clone();
    let Ok(Call { params: Params { name, arguments } }) = serde_json::from_slice::<Call<'_>>(&seen.body)
    else {
        return json(StatusCode::OK, jsonrpc::error(&id, -32602, "a call names a tool"));
    };
    let spelt = arguments.map_or("{}", RawValue::get);
    let number = |argument: &str| seen.message.pointer(&format!("/params/arguments/{argument}"))?.as_u64();
    let tool = {
        let state = endpoint.state.lock();
        state.tools(seen.session.as_deref()).find(|tool| tool.name == name).cloned()
    };
    let Some(tool) = tool else {
        return json(StatusCode::OK, jsonrpc::error(&id, -32602, &format!("no tool {name}")));
    };
    match tool.behaviour {
        Behaviour::Echo => json(StatusCode::OK, jsonrpc::result(&id, &echo(&name, spelt))),
        Behaviour::EchoStream(times) => {
            let times =
                number("notifications").and_then(|times| usize::try_from(times).ok()).unwrap_or(times);
            let logs = (0..times).map(|n| {
                jsonrpc::notification("notifications/message", &json!({"level": "info", "data": n}))
            });
            stream(endpoint, logs.chain([jsonrpc::result(&id, &echo(&name, spelt))]))
        }
        Behaviour::Slow => {
            slow(number("milliseconds").map(Duration::from_millis), released).await;
            json(StatusCode::OK, jsonrpc::result(&id, &echo(&name, spelt)))
        }
        Behaviour::Hang => pending().await,
        Behaviour::HangOnStream => hang_on_stream(endpoint),
        Behaviour::Fed => fed(endpoint, seen),
        Behaviour::Ask(asked, method) => ask(endpoint, seen, (&asked, &method)),
        Behaviour::Progress(steps) => progress(endpoint, seen, steps),
        Behaviour::Counter => {
            let counter = endpoint.state.lock().counted(seen.session.as_deref());
            json(StatusCode::OK, jsonrpc::result(&id, &jsonrpc::text(&counter.to_string())))
        }
        Behaviour::Big(bytes) => {
            let bytes = number("bytes").and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(bytes);
            json(StatusCode::OK, jsonrpc::result(&id, &jsonrpc::text(&"x".repeat(bytes))))
        }
        Behaviour::Die => {
            let (body, stream) = ReplyBody::stream();
            feed(body, vec![Ok(Bytes::from(r#"{"jsonrpc":"2.0","resu"#)), Err(Cut)]);
            let mut reply = json(StatusCode::OK, Bytes::new());
            *reply.body_mut() = stream;
            reply
        }
        Behaviour::DieOnStream => {
            let (body, reply) = event_stream();
            let log = jsonrpc::notification("notifications/message", &json!({"level": "info", "data": 0}));
            feed(body, vec![Ok(endpoint.state.lock().event(&log)), Err(Cut)]);
            reply
        }
        Behaviour::Result(result) => json(StatusCode::OK, jsonrpc::result(&id, &result.to_string())),
        Behaviour::Fail(code, message) => json(StatusCode::OK, jsonrpc::error(&id, code, &message)),
        Behaviour::Raw(answer) => endpoint::raw(&answer),
    }
}

/// The result of an echo: the name and the arguments, spelt as they came.
fn echo(name: &str, arguments: &str) -> String {
    let text = Value::from(format!("{name}: {arguments}"));
    format!(
        r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{{"arguments":{arguments}}}}}"#
    )
}

async fn slow(delay: Option<Duration>, mut released: watch::Receiver<u64>) {
    match delay {
        Some(delay) => drop(timeout(delay, released.changed()).await),
        None => drop(released.changed().await),
    }
}

/// A stream of these messages and its end.
fn stream(endpoint: &Endpoint, messages: impl Iterator<Item = String>) -> Reply {
    let (body, reply) = event_stream();
    let mut state = endpoint.state.lock();
    state.prime(&body);
    feed(body, messages.map(|message| Ok(state.event(&message))).collect());
    reply
}

/// Feeds a body from a task of its own, which ends with the body's reader.
fn feed(body: BodySender, chunks: Vec<Result<Bytes, Cut>>) {
    drive(async move {
        for chunk in chunks {
            if body.send(chunk).await.is_err() {
                return;
            }
        }
    });
}

/// A stream without a word; it ends when the client goes.
fn hang_on_stream(endpoint: &Endpoint) -> Reply {
    let (body, reply) = event_stream();
    endpoint.state.lock().prime(&body);
    drive(async move { body.closed().await });
    reply
}

/// A stream that the test feeds.
fn fed(endpoint: &Endpoint, seen: &Seen) -> Reply {
    let (events, reply) = event_stream();
    let mut state = endpoint.state.lock();
    state.feeds.push(Stream { session: seen.session.clone(), call: seen.id().cloned(), events });
    state.fed += 1;
    drop(state);
    endpoint.changed();
    reply
}

/// Asks the client on the call's stream, and ends the stream with its answer as the result.
fn ask(endpoint: &Arc<Endpoint>, seen: &Seen, (asked, method): (&Value, &str)) -> Reply {
    let (body, reply) = event_stream();
    let (sender, answer) = oneshot::channel();
    let request = {
        let mut state = endpoint.state.lock();
        state.prime(&body);
        state.asked.push(Asked { session: seen.session.clone(), id: asked.clone(), answer: sender });
        state.event(&jsonrpc::request(
            asked,
            method,
            &json!({"messages": [], "maxTokens": 1, "message": "?"}),
        ))
    };
    let (endpoint, id) = (Arc::clone(endpoint), seen.id().unwrap_or(&Value::Null).clone());
    drive(async move {
        if body.send(Ok(request)).await.is_err() {
            return;
        }
        let said = tokio::select! {
            () = body.closed() => return,
            answer = timeout(PATIENCE, answer) => match answer {
                Ok(Ok(answer)) => jsonrpc::result(&id, &jsonrpc::text(&answer.to_string())),
                Ok(Err(_)) | Err(_) => jsonrpc::error(&id, -32000, "the client never answered"),
            },
        };
        let event = endpoint.state.lock().event(&said);
        // The client may have gone meanwhile; then nobody waits for the result.
        drop(body.send(Ok(event)).await);
    });
    reply
}

/// Progress on the token that the call brought, then the result; without a token only the result.
fn progress(endpoint: &Endpoint, seen: &Seen, steps: usize) -> Reply {
    let token = seen.message.pointer("/params/_meta/progressToken");
    let reports = token.into_iter().flat_map(|token| {
        (1..=steps).map(move |step| {
            let params = json!({"progressToken": token, "progress": step, "total": steps});
            jsonrpc::notification("notifications/progress", &params)
        })
    });
    let done = jsonrpc::result(seen.id().unwrap_or(&Value::Null), &jsonrpc::text("done"));
    stream(endpoint, reports.chain([done]))
}

/// Runs a body's feeder: it ends by itself when the reader of the body goes, so nobody has to wait for it.
fn drive(feeder: impl Future<Output = ()> + Send + 'static) {
    drop(tokio_util::task::TaskTracker::new().spawn(feeder));
}

// === impl State ===

impl State {
    /// The next event's id, where events have ids.
    pub(super) fn event_id(&mut self) -> Option<String> {
        match self.script.event_ids {
            EventIds::Absent => None,
            EventIds::Present => {
                self.events += 1;
                Some(format!("event-{}", self.events))
            }
        }
    }

    /// A message as an event.
    fn event(&mut self, message: &str) -> Bytes {
        let id = self.event_id();
        jsonrpc::event(id.as_deref(), message)
    }

    /// Counts a call in its session, and returns how many there were.
    fn counted(&mut self, session: Option<&str>) -> u64 {
        let session = self.sessions.entry(session.unwrap_or_default().to_owned()).or_default();
        session.counter += 1;
        session.counter
    }
}
