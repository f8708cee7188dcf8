//! Pure: MCP's stdio framing (2025-11-25, transports, stdio): cuts what a process prints into lines of bounded length,
//! and writes a message as one line. Knows nothing of what the lines mean.

use bytes::{Buf, Bytes, BytesMut};

/// Cuts a byte stream at its newlines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How far the buffer was searched for a newline already.
    searched: usize,
    limit: usize,
    /// Bytes of the line under way that were thrown away; none while it is within the limit.
    skipped: usize,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its newline.
    Whole(Bytes),
    /// Longer than the limit, and not kept: so many bytes.
    TooLong(usize),
}

impl Lines {
    /// Holds at most `limit` bytes of an unfinished line, and what was pushed at once.
    pub(super) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipped: 0 }
    }

    /// Takes more of the stream; ask for all lines before the next push.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line.
    pub(super) fn next_line(&mut self) -> Option<Line> {
        let found = self.buffer.get(self.searched..).and_then(|rest| memchr::memchr(b'\n', rest));
        let Some(found) = found else {
            self.searched = self.buffer.len();
            if self.searched > self.limit || self.skipped > 0 {
                // The rest of a line that is too long already is thrown away as it comes.
                self.skipped += self.searched;
                self.buffer.clear();
                self.searched = 0;
            }
            return None;
        };
        let line = self.buffer.split_to(self.searched + found).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        let length = std::mem::take(&mut self.skipped) + line.len();
        Some(if length > self.limit { Line::TooLong(length) } else { Line::Whole(line) })
    }

    /// What is there behind the last newline, at the end of the stream.
    pub(super) fn rest(&mut self) -> Option<Bytes> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        (!rest.is_empty() && std::mem::take(&mut self.skipped) == 0).then_some(rest)
    }
}

/// A message as one line, its newline included. JSON has newlines between its tokens only, where a space is the same.
pub(super) fn line(json: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(json.len() + 1);
    line.extend_from_slice(json);
    for byte in line.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.extend_from_slice(b"\n");
    line.freeze()
}

/// The beginning of what somebody printed, for people: without control characters, at most `most` characters.
pub(super) fn shortened(text: &[u8], most: usize) -> String {
    let text =
        String::from_utf8_lossy(text.get(..text.len().min(most.saturating_mul(4))).unwrap_or_default());
    let mut plain = text.trim().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = plain.by_ref().take(most).collect();
    if plain.next().is_some() {
        short.push('\u{2026}');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(stream: &[u8], size: usize, limit: usize) -> (Vec<Line>, Option<Bytes>) {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for piece in stream.chunks(size) {
            lines.push(piece);
            while let Some(line) = lines.next_line() {
                found.push(line);
            }
        }
        (found, lines.rest())
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn however_the_stream_is_cut_the_lines_are_the_same() {
        let stream = b"one\n\ntwo\r\nthree, which is too long\nfour\nhalf";
        for size in 1..=stream.len() {
            let (lines, rest) = cut(stream, size, 8);
            let expected = [whole("one"), whole(""), whole("two\r"), Line::TooLong(24), whole("four")];
            assert_eq!(lines, expected, "in pieces of {size}");
            assert_eq!(rest.as_deref(), Some(b"half".as_ref()), "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_never_ends_is_not_kept() {
        let mut lines = Lines::new(16);
        for _ in 0..1000 {
            lines.push(&[b'x'; 32]);
            assert_eq!(lines.next_line(), None);
            assert!(lines.buffer.len() <= 16, "{}", lines.buffer.len());
        }
        assert_eq!(lines.rest(), None);
        lines.push(b"\nback\n");
        assert_eq!(
            [lines.next_line(), lines.next_line()],
            [Some(Line::TooLong(32_000)), Some(whole("back"))]
        );
    }

    #[test]
    fn a_message_is_one_line_and_means_the_same() {
        let json = b"{\"a\":\r\n \"x\\ny\",\n\"b\":1}";
        let line = line(json);
        assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
        let value = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&line), value(json));
    }

    #[test]
    fn what_is_shown_of_a_line_is_short_and_without_control_characters() {
        assert_eq!(shortened(b"\x1b[31mred\x1b[0m\xff\n", 80), "\u{fffd}[31mred\u{fffd}[0m\u{fffd}");
        assert_eq!(shortened(&[b'x'; 500], 10), format!("{}\u{2026}", "x".repeat(10)));
    }
}
