//! What a process prints: messages on standard output, anything on standard error. Noise is skipped and logged, at a
//! bounded pace (case 041).

use std::process::ExitStatus;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::mpsc,
    time::Instant,
};

use crate::{
    bridge::{
        lines::{Line, Lines, shortened},
        pace::Pace,
    },
    jsonrpc::Message,
};

/// The longest message; a longer line is skipped.
const LINE_BYTES: usize = 16 << 20;
/// What is kept of a line of standard error.
const STDERR_LINE_BYTES: usize = 16 << 10;
/// What is read at once.
const READ_BYTES: usize = 64 << 10;
/// How much of a line is shown in the log.
const SHOWN: usize = 500;
/// How much of one is told to clients.
const TOLD: usize = 200;

/// The last line of standard error.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<String>);

impl LastWords {
    /// Why the process ended, in a sentence for whoever waits for its answer.
    pub(super) fn reason(&self, status: Option<ExitStatus>) -> String {
        let how = status.map_or_else(|| "it does not end".to_owned(), |status| status.to_string());
        let last = self.0.lock();
        if last.is_empty() {
            return format!("the server's process ended ({how})");
        }
        format!("the server's process ended ({how}); it last said: {}", shortened(last.as_bytes(), TOLD))
    }
}

/// Hands on the messages of standard output until its end, or until nobody wants them.
pub(super) async fn messages(stdout: impl AsyncRead + Unpin, name: &str, said: mpsc::Sender<Message>) {
    let mut noise = Noise { name, pace: Pace::new(Instant::now()) };
    let mut lines = Lines::new(LINE_BYTES);
    let mut reader = Pieces::new(stdout);
    while let Some(piece) = reader.next().await {
        lines.push(&piece);
        while let Some(line) = lines.next_line() {
            let Some(message) = noise.message(line) else { continue };
            if said.send(message).await.is_err() {
                return;
            }
        }
    }
    // A last line without a newline is one all the same.
    if let Some(message) = lines.rest().and_then(|rest| noise.message(Line::Whole(rest))) {
        // Nobody may want it any more.
        drop(said.send(message).await);
    }
}

struct Noise<'a> {
    name: &'a str,
    pace: Pace,
}

impl Noise<'_> {
    /// The message of a line; what is none is logged, unless it is blank.
    fn message(&mut self, line: Line) -> Option<Message> {
        let (line, reason) = match line {
            Line::TooLong(bytes) => (Bytes::new(), format!("{bytes} bytes, over the limit of {LINE_BYTES}")),
            Line::Whole(line) if line.trim_ascii().is_empty() => return None,
            Line::Whole(line) => match Message::parse(line.clone()) {
                Ok(message) => return Some(message),
                Err(invalid) => (line, invalid.to_string()),
            },
        };
        if let Some(withheld) = self.pace.admit(Instant::now()) {
            let line = shortened(&line, SHOWN);
            tracing::warn!(
                server = self.name,
                reason,
                line,
                withheld,
                "stdout: a line that is no message is skipped"
            );
        }
        None
    }
}

/// Reads standard error to its end, so that the process never waits for us, and logs it at a bounded pace.
pub(super) async fn drain(stderr: impl AsyncRead + Unpin, name: &str, last: &LastWords) {
    let mut pace = Pace::new(Instant::now());
    let mut log = |line: &[u8]| {
        let line = shortened(line, SHOWN);
        if line.is_empty() {
            return;
        }
        last.0.lock().clone_from(&line);
        if let Some(withheld) = pace.admit(Instant::now()) {
            tracing::info!(server = name, line, withheld, "stderr");
        }
    };
    let mut lines = Lines::new(STDERR_LINE_BYTES);
    let mut reader = Pieces::new(stderr);
    while let Some(piece) = reader.next().await {
        lines.push(&piece);
        while let Some(line) = lines.next_line() {
            match line {
                Line::Whole(line) => log(&line),
                Line::TooLong(bytes) => log(format!("({bytes} bytes in one line)").as_bytes()),
            }
        }
    }
    if let Some(rest) = lines.rest() {
        log(&rest);
    }
}

/// An output in pieces, until it ends or fails.
struct Pieces<R> {
    from: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Pieces<R> {
    fn new(from: R) -> Self {
        Self { from, buffer: BytesMut::new() }
    }

    async fn next(&mut self) -> Option<BytesMut> {
        self.buffer.reserve(READ_BYTES);
        match self.from.read_buf(&mut self.buffer).await {
            Ok(1..) => Some(self.buffer.split()),
            Ok(0) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 041.
    #[tokio::test]
    async fn what_is_no_message_is_skipped_and_a_line_in_halves_is_one() {
        let noise: &[&[u8]] = &[
            b"Welcome to the server!\n",
            b"\x1b[32mready\x1b[0m\n",
            b"\n",
            b"{}\n",
            b"\"text\"\n",
            b"\xff\xfe\n",
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n",
            b"{\"jsonrpc\":\"2.0\",",
            b"\"id\":1,\"result\":{}}\r\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/last\"}",
        ];
        let (said, mut heard) = mpsc::channel(8);
        let output = std::io::Cursor::new(noise.concat());
        messages(output, "weather", said).await;
        let mut all = Vec::new();
        while let Some(message) = heard.recv().await {
            all.push(String::from_utf8(message.bytes.to_vec()).unwrap());
        }
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0].trim_end(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(all[1], r#"{"jsonrpc":"2.0","method":"notifications/last"}"#);
    }

    #[tokio::test]
    async fn the_last_line_of_stderr_is_told_shortened() {
        let last = LastWords::default();
        let mut stderr = b"first\nTraceback: no module named weather\n\n".to_vec();
        drain(stderr.as_slice(), "weather", &last).await;
        assert_eq!(
            last.reason(None),
            "the server's process ended (it does not end); it last said: Traceback: no module named weather"
        );
        stderr.extend(vec![b'x'; 10 << 20]);
        drain(stderr.as_slice(), "weather", &last).await;
        assert!(last.reason(None).len() < 300);
    }
}
