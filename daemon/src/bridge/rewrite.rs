//! Pure: messages with their ids and progress tokens replaced.

use bytes::Bytes;

use crate::jsonrpc::Message;

/// The message with a part of it replaced.
pub(super) fn swap(message: &Message, part: &Bytes, with: &Bytes) -> Bytes {
    Bytes::from(message.replace(part, with.clone()).concat())
}

/// The request with its id, and its progress token where it has one, replaced.
pub(super) fn renumbered(message: &Message, id: &Bytes, token: Option<&Bytes>, with: &Bytes) -> Bytes {
    let Some(token) = token else { return swap(message, id, with) };
    let (first, second) = if id.as_ptr().addr() < token.as_ptr().addr() { (id, token) } else { (token, id) };
    let ([before, _, _], [_, _, after]) =
        (message.replace(first, Bytes::new()), message.replace(second, Bytes::new()));
    let between = before.len() + first.len()..message.bytes.len() - after.len() - second.len();
    Bytes::from([before, with.clone(), message.bytes.slice(between), with.clone(), after].concat())
}
