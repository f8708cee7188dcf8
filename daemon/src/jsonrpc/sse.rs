//! Pure: cuts an event stream into events (WHATWG HTML §9.2) and writes events. Bounded by what the caller allows.

use bytes::{Buf, Bytes, BytesMut};

/// Cuts a byte stream at the ends of its events.
#[derive(Debug)]
pub struct Splitter {
    buffer: BytesMut,
    /// How far the buffer was searched for an end already.
    searched: usize,
    limit: usize,
    started: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The lines of its `data` fields, joined by newlines; empty for comments and for priming events.
    pub data: Bytes,
    /// The event as it came, its final blank line included.
    pub bytes: Bytes,
    /// Its `id` field, where it has one.
    pub id: Option<Bytes>,
    /// Its `retry` field, in milliseconds, where it has one.
    pub retry: Option<u64>,
    /// It has nothing but `data` and `event: message` fields, so that `bytes` may be passed on as they are.
    plain: bool,
}

/// An event larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub struct TooLarge(pub usize);

/// Larger events hold on to nothing but themselves. Smaller ones stand in a buffer that may be much larger: who keeps one
/// for long, copies it.
pub const SMALL: usize = 16 << 10;

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Splitter {
    /// A splitter that holds at most `limit` bytes of an unfinished event.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, started: false }
    }

    /// Takes more of the stream.
    ///
    /// # Errors
    /// Where the unfinished event is larger than the limit.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.buffer.extend_from_slice(bytes);
        if !self.started && self.buffer.len() >= BOM.len() {
            self.started = true;
            if self.buffer.starts_with(BOM) {
                self.buffer.advance(BOM.len());
                // Where it came in pieces, some of it was searched, and what follows was not.
                self.searched = 0;
            }
        }
        if self.buffer.len() > self.limit && self.end().is_none() {
            return Err(TooLarge(self.limit));
        }
        Ok(())
    }

    /// How many bytes of unfinished events it holds.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole event.
    pub fn next_event(&mut self) -> Option<Event> {
        let end = self.end()?;
        // A byte order mark is one at the very beginning only.
        self.started = true;
        self.searched = 0;
        Some(Event::read(self.cut(end)))
    }

    /// The first `end` bytes.
    fn cut(&mut self, end: usize) -> Bytes {
        if end <= SMALL {
            return self.buffer.split_to(end).freeze();
        }
        let (event, _) = self.buffer.split_at(end);
        let event = Bytes::copy_from_slice(event);
        self.buffer.advance(end);
        if self.buffer.is_empty() {
            // Streams are long, and few events are so large.
            self.buffer = BytesMut::new();
        }
        event
    }

    /// Takes note that the stream has ended. True where that makes an event whole: one that ends in two CRs, the second of
    /// which could have been half of a CRLF.
    pub fn finish(&mut self) -> bool {
        let whole = matches!(self.buffer.as_ref(), [.., b'\n' | b'\r', b'\r']);
        if whole {
            self.buffer.extend_from_slice(b"\n");
        } else {
            self.buffer.clear();
        }
        whole
    }

    /// Where the first whole event ends: behind a blank line, whose end may be LF, CR or CRLF.
    fn end(&mut self) -> Option<usize> {
        let bytes: &[u8] = &self.buffer;
        let mut at = self.searched;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'\n', b'\r', rest)) {
            let first = line_end(bytes, at + found);
            match (bytes.get(first), bytes.get(first + 1)) {
                // A CR at the buffer's end may be half of a CRLF: wait for what follows.
                (Some(b'\r'), None) | (None, _) => {
                    self.searched = at + found;
                    return None;
                }
                (Some(b'\n' | b'\r'), _) => return Some(line_end(bytes, first)),
                (Some(_), _) => at = first,
            }
        }
        self.searched = bytes.len();
        None
    }
}

/// The index behind the line end that begins at `at`.
fn line_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'\r') && bytes.get(at + 1) == Some(&b'\n') { at + 2 } else { at + 1 }
}

impl Event {
    fn read(bytes: Bytes) -> Self {
        // A blank line in front would end whatever is written before it.
        let mut plain = !matches!(bytes.first(), Some(b'\n' | b'\r'));
        let (mut id, mut retry) = (None, None);
        let mut parts: Vec<Bytes> = Vec::with_capacity(1);
        for line in bytes.split(|byte| matches!(byte, b'\n' | b'\r')) {
            if line.is_empty() {
                continue;
            }
            let colon = memchr::memchr(b':', line).unwrap_or(line.len());
            let (field, value) = line.split_at(colon);
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" => parts.push(bytes.slice_ref(value)),
                b"event" => plain &= value == b"message",
                b"id" => {
                    plain = false;
                    id = Some(bytes.slice_ref(value)).filter(|id| !id.contains(&0));
                }
                b"retry" => {
                    plain = false;
                    retry = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                }
                _ => plain = false,
            }
        }
        let data = match parts.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => Bytes::from(many.join(b"\n".as_ref())),
        };
        plain &= !data.is_empty();
        Self { data, bytes, id, retry, plain }
    }

    /// Writes the event for a client: as it came where it is plain, else without the target's ids and retry times, which
    /// mean nothing on our side.
    pub fn write(&self, into: &mut Vec<u8>) {
        if self.plain {
            into.extend_from_slice(&self.bytes);
        } else {
            write_message(into, &self.data);
        }
    }
}

/// An event that carries `json`.
pub fn message(json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() + 24);
    write_message(&mut out, json);
    Bytes::from(out)
}

/// Writes such an event.
pub fn write_message(into: &mut Vec<u8>, json: &[u8]) {
    into.extend_from_slice(b"event: message\n");
    for line in json.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()) {
        into.extend_from_slice(b"data: ");
        into.extend_from_slice(line);
        into.push(b'\n');
    }
    into.push(b'\n');
}

/// Writes the id field of an event: the stream's name, and the message's number on it.
pub fn write_id(into: &mut Vec<u8>, stream: &str, message: u64) {
    into.extend_from_slice(b"id: ");
    into.extend_from_slice(stream.as_bytes());
    into.push(b'.');
    into.extend_from_slice(message.to_string().as_bytes());
    into.push(b'\n');
}

/// A comment that keeps proxies from cutting a silent stream.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of `stream`, fed in pieces of `size` bytes.
    fn split(stream: &[u8], size: usize) -> Vec<Event> {
        let mut splitter = Splitter::new(1 << 20);
        let mut events = Vec::new();
        for piece in stream.chunks(size) {
            splitter.push(piece).unwrap();
            while let Some(event) = splitter.next_event() {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn a_large_event_holds_on_to_nothing_else_whatever_came_with_it() {
        let sizes = [10, 100 << 10, 1 << 20];
        for (first, second, kept) in sizes
            .into_iter()
            .flat_map(|first| sizes.map(|second| (first, second)))
            .flat_map(|(first, second)| [0, 1].map(|kept| (first, second, kept)))
        {
            let mut splitter = Splitter::new(4 << 20);
            let event = |size: usize| format!("data: {}\n\n", "x".repeat(size));
            splitter.push([event(first), event(second)].concat().as_bytes()).unwrap();
            let mut events: Vec<Bytes> =
                std::iter::from_fn(|| splitter.next_event()).map(|event| event.bytes).collect();
            assert_eq!((events.len(), splitter.held()), (2, 0));
            let event = events.swap_remove(kept);
            if event.len() <= SMALL {
                continue;
            }
            drop((splitter, events));
            // Nobody else has its buffer now: what it becomes is that buffer.
            let owned = BytesMut::from(event);
            let [capacity, size] = [owned.capacity(), owned.len()];
            assert!(capacity <= size + 64, "{first}, {second}: {capacity} for {size}");
        }
    }

    #[test]
    fn however_the_stream_is_cut_the_events_are_the_same() {
        let stream: &[u8] = b"\xEF\xBB\xBFid: 1\ndata: \n\nevent: message\ndata: {\"a\":1}\n\n: hi\r\n\r\ndata: x\rdata: y\r\rdata:z\r\n\r\n\n";
        let whole = split(stream, stream.len());
        let data: Vec<&[u8]> = whole.iter().map(|event| event.data.as_ref()).collect();
        assert_eq!(data, [b"".as_ref(), b"{\"a\":1}", b"", b"x\ny", b"z"]);
        for size in 1..stream.len() {
            let events = split(stream, size);
            assert_eq!(
                events.iter().map(|e| e.data.as_ref()).collect::<Vec<_>>(),
                data,
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_behind_the_first_event_is_part_of_what_it_stands_in() {
        let stream = b"\n\n\xEF\xBB\xBFdata: 1\n\n";
        for size in 1..stream.len() {
            let data: Vec<Bytes> = split(stream, size).into_iter().map(|event| event.data).collect();
            assert_eq!(data, [Bytes::new(), Bytes::new()], "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_that_ends_in_two_carriage_returns_is_whole_at_the_end_of_the_stream() {
        let mut splitter = Splitter::new(64);
        splitter.push(b"data: 1\r\r").unwrap();
        assert_eq!(splitter.next_event(), None, "a line feed may follow");
        assert!(splitter.finish());
        assert_eq!(splitter.next_event().map(|event| event.data), Some(Bytes::from_static(b"1")));
        splitter.push(b"data: 2\r").unwrap();
        assert!(!splitter.finish());
        assert_eq!(splitter.next_event(), None);
    }

    #[test]
    fn a_byte_order_mark_that_comes_in_pieces_hides_no_line_end_behind_it() {
        let stream = b"\xef\xbb\xbf\r\r\r\rdata: 1\n\n";
        let mut pieces = Splitter::new(64);
        let mut events = Vec::new();
        for piece in [&stream[..1], &stream[1..2], &stream[2..]] {
            pieces.push(piece).unwrap();
            events.extend(std::iter::from_fn(|| pieces.next_event()));
        }
        assert_eq!(events, split(stream, stream.len()));
        assert_eq!(events.len(), 3);
    }

    #[test]
    fn only_events_without_the_targets_ids_pass_as_they_came() {
        let events = split(b"event: message\ndata: {}\n\nid: 7\nretry: 10\ndata: {}\n\n", 64);
        let written = |event: &Event| {
            let mut into = Vec::new();
            event.write(&mut into);
            into
        };
        assert_eq!(written(&events[0]), events[0].bytes);
        assert_eq!(written(&events[1]), b"event: message\ndata: {}\n\n");
    }

    #[test]
    fn an_event_that_never_ends_is_refused_at_the_limit() {
        let mut splitter = Splitter::new(16);
        assert_eq!(splitter.push(b"data: 0123456789"), Ok(()));
        assert_eq!(splitter.push(b"x"), Err(TooLarge(16)));
    }

    #[test]
    fn a_message_with_newlines_is_one_event_again_when_read() {
        let event = message(b"{\n \"a\": 1\r\n}");
        let events = split(&event, 5);
        assert_eq!(events.len(), 1);
        let value: serde_json::Value = serde_json::from_slice(&events[0].data).unwrap();
        assert_eq!(value["a"], 1);
    }
}
