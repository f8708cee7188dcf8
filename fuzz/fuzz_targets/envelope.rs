//! Reads any bytes as a message: nothing panics, what is read is a slice of what came, and a part that is replaced
//! leaves the rest byte for byte. Nobody who reads keys more laxly than we do reads another message.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mooring_fuzz::jsonrpc::{
    Kind, Message, Params,
    envelope::{same_id, text},
    reply,
};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::parse(Bytes::copy_from_slice(data)) else { return };
    assert_eq!(message.bytes, data, "the bytes stay as they came");
    // What `Value` cannot hold (depth, the range of numbers, lone surrogates) is forwarded all the same.
    let value = serde_json::from_slice::<Value>(data).ok();
    reads_alike(value.as_ref());
    match &message.kind {
        Kind::Request { id, method, params } => {
            holds_id(&message, id, value.as_ref());
            holds_params(&message, params, value.as_ref());
            agrees(value.as_ref(), "/method", &Value::from(method.as_str()));
            let answer = Message::parse(reply::result(id, b"{}")).expect("an answer of ours is a message");
            assert!(matches!(answer.kind, Kind::Response { id: answered } if answered == *id));
        }
        Kind::Notification { method, params } => {
            holds_params(&message, params, value.as_ref());
            agrees(value.as_ref(), "/method", &Value::from(method.as_str()));
        }
        Kind::Response { id } => holds_id(&message, id, value.as_ref()),
    }
});

/// Where something is read, and the keys that are.
const READ: [(&str, &[&str]); 4] = [
    ("", &["jsonrpc", "id", "method", "params", "result", "error"]),
    (
        "/params",
        &[
            "name",
            "cursor",
            "requestId",
            "progressToken",
            "_meta",
            "protocolVersion",
            "clientInfo",
            "capabilities",
            "uri",
            "ref",
            "task",
            "taskId",
            "level",
        ],
    ),
    ("/params/_meta", &["progressToken", "io.modelcontextprotocol/related-task"]),
    ("/params/ref", &["type", "name", "uri"]),
];

/// None of the keys that are read is there in another spelling.
fn reads_alike(value: Option<&Value>) {
    for (place, read) in READ {
        let object = value.and_then(|value| value.pointer(place)).and_then(Value::as_object);
        for key in object.into_iter().flat_map(|object| object.keys()) {
            let lax = laxly(key);
            let same = |read: &&&str| laxly(read) == lax && key != *read;
            assert_eq!(read.iter().find(same), None, "{key:?} in {place:?}");
        }
    }
}

/// A key as the laxest parser compares it: without NULs around it, each letter in the upper case of its lower case.
fn laxly(key: &str) -> String {
    let plain = key.trim_matches('\0').chars().map(|letter| alone(letter.to_lowercase()).unwrap_or(letter));
    plain.map(|letter| alone(letter.to_uppercase()).unwrap_or(letter)).collect()
}

fn alone(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

fn holds_id(message: &Message, id: &Bytes, value: Option<&Value>) {
    assert!(same_id(id, id));
    holds_part(message, id);
    if let Ok(id) = serde_json::from_slice(id) {
        agrees(value, "/id", &id);
    }
}

fn holds_params(message: &Message, params: &Params, value: Option<&Value>) {
    let parts = [
        ("/params/name", &params.name),
        ("/params/cursor", &params.cursor),
        ("/params/requestId", &params.request_id),
        ("/params/progressToken", &params.progress_token),
        ("/params/_meta", &params.meta),
        ("/params/protocolVersion", &params.protocol_version),
        ("/params/clientInfo", &params.client_info),
        ("/params/capabilities", &params.capabilities),
    ];
    for (pointer, part) in parts {
        let Some(part) = part else { continue };
        holds_part(message, part);
        // Whether it is a string or not, reading it as one does not panic.
        drop(text(part));
        if let Ok(part) = serde_json::from_slice(part) {
            agrees(value, pointer, &part);
        }
    }
}

/// A part lies within the message, and can be replaced without touching anything else.
fn holds_part(message: &Message, part: &Bytes) {
    let at = part.as_ptr().addr().checked_sub(message.bytes.as_ptr().addr());
    let at = at.expect("a part does not begin before its message");
    assert_eq!(
        message.bytes.get(at..at + part.len()),
        Some(part.as_ref()),
        "a part is a slice of its message"
    );
    let with = Bytes::from_static(br#""other""#);
    let replaced = message.replace(part, with.clone()).concat();
    let wanted = [&message.bytes[..at], &with, &message.bytes[at + part.len()..]].concat();
    assert_eq!(replaced, wanted);
    let again = Message::parse(replaced.into()).expect("a message with another string in it is a message");
    assert_eq!(std::mem::discriminant(&again.kind), std::mem::discriminant(&message.kind));
    assert_eq!(message.replace(part, part.clone()).concat(), message.bytes);
}

/// What was read is what a full parser reads in that place.
fn agrees(value: Option<&Value>, pointer: &str, read: &Value) {
    if let Some(value) = value {
        assert_eq!(value.pointer(pointer), Some(read), "{pointer}");
    }
}
