//! Reads event streams, whole or as they come. What is no event (comments) is kept as one without data.

use std::{collections::VecDeque, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Answer, ClientError};

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type, `message` where it is not written.
    pub name: Option<String>,
    /// Its id.
    pub id: Option<String>,
    /// Its data, lines joined.
    pub data: Option<String>,
    /// How long to wait before reconnecting, as written.
    pub retry: Option<String>,
}

/// An answer whose headers are there and whose body may still come.
#[derive(Debug)]
pub struct Events {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    received: BytesMut,
    ready: VecDeque<Event>,
    deadline: Duration,
}

// === impl Event ===

impl Event {
    /// The message in the data, if there is one.
    pub fn message(&self) -> Option<Value> {
        serde_json::from_str(self.data.as_deref()?).ok()
    }

    /// The messages of these.
    pub fn messages(events: &[Self]) -> Vec<Value> {
        events.iter().filter_map(Self::message).collect()
    }

    fn parse(text: &str) -> Self {
        let mut event = Self::default();
        for (field, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => event.name = Some(value.to_owned()),
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry = Some(value.to_owned()),
                "data" => match &mut event.data {
                    Some(data) => data.extend(["\n", value]),
                    None => event.data = Some(value.to_owned()),
                },
                _ => {}
            }
        }
        event
    }
}

/// The events of a whole body.
pub(super) fn read(body: &Bytes) -> Vec<Event> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n");
    text.split("\n\n").filter(|event| !event.is_empty()).map(Event::parse).collect()
}

// === impl Events ===

impl Events {
    pub(super) fn new(answer: Response<Incoming>, deadline: Duration) -> Self {
        let (parts, body) = answer.into_parts();
        let (received, ready) = (BytesMut::new(), VecDeque::new());
        Self { status: parts.status, headers: parts.headers, body, received, ready, deadline }
    }

    /// The next event, or none if the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        self.next_within(self.deadline).await
    }

    /// The next event within a time, or none if the stream has ended.
    pub async fn next_within(&mut self, within: Duration) -> Result<Option<Event>, ClientError> {
        let until = Instant::now() + within;
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let frame = timeout_at(until, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| ClientError::Deadline(within))? else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                self.received.extend_from_slice(&data);
                self.cut_events();
            }
        }
    }

    /// The data of the next event that has any, or none if the stream has ended.
    pub async fn next_data(&mut self) -> Result<Option<String>, ClientError> {
        while let Some(event) = self.next().await? {
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The next message within the deadline, comments and empty events left out; none if the stream has ended.
    pub async fn next_message(&mut self) -> Result<Option<Value>, ClientError> {
        while let Some(event) = self.next().await? {
            if let Some(message) = event.message() {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// All events until the stream's end, comments left out.
    pub async fn rest(mut self) -> Result<Vec<Event>, ClientError> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await? {
            all.extend(Some(event).filter(|event| *event != Event::default()));
        }
        Ok(all)
    }

    /// The rest of the body, as an answer. Events that were taken before are not part of it.
    pub async fn collect(self) -> Result<Answer, ClientError> {
        let body = tokio::time::timeout(self.deadline, self.body.collect()).await;
        let body = body.map_err(|_| ClientError::Deadline(self.deadline))??.to_bytes();
        Ok(Answer { status: self.status, headers: self.headers, body })
    }

    /// Moves the events that are complete from the bytes received to those that are ready.
    fn cut_events(&mut self) {
        while let Some(end) = end_of_event(&self.received) {
            let event = self.received.split_to(end).freeze();
            self.ready.extend(read(&event));
        }
    }
}

/// Where the first event ends, its blank line included.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let after = |blank: &[u8]| {
        bytes.windows(blank.len()).position(|window| window == blank).map(|at| at + blank.len())
    };
    match (after(b"\n\n"), after(b"\r\n\r\n")) {
        (Some(lf), Some(crlf)) => Some(lf.min(crlf)),
        (end, None) | (None, end) => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_cut_at_its_blank_line_and_read_field_by_field() {
        let body = Bytes::from_static(
            b": hello\n\nid: 7\nevent: message\ndata: {\"a\":\ndata: 1}\n\nretry: 5\r\n\r\n",
        );
        let events = read(&body);
        assert_eq!(events.len(), 3);
        assert_eq!(events[0], Event::default());
        assert_eq!(events[1].id.as_deref(), Some("7"));
        assert_eq!(events[1].message(), Some(serde_json::json!({"a": 1})));
        assert_eq!(events[2].retry.as_deref(), Some("5"));
        assert_eq!(end_of_event(&body), Some(9));
        assert_eq!(end_of_event(b"data: half"), None);
    }
}
