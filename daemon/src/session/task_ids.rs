//! Pure: ids of tasks. A target's task is shown to the client under its target's alias, so that two targets' tasks never
//! meet and each leads back to its own (2025-11-25, tasks; DESIGN §4).

use std::{ops::Range, sync::LazyLock};

use bytes::Bytes;
use memchr::memmem::Finder;

use crate::jsonrpc::{
    envelope::{RELATED_TASK, text},
    span,
};

/// Between the alias and the target's own id: no alias holds one.
const SEPARATOR: char = ':';

/// Where in a message the id of a task may stand.
const PLACES: [&[&str]; 6] = [
    &["result", "task", "taskId"],
    &["result", "taskId"],
    &["params", "taskId"],
    &["result", "_meta", RELATED_TASK, "taskId"],
    &["params", "_meta", RELATED_TASK, "taskId"],
    &["error", "data", "taskId"],
];
/// Where in a request of a target's the id of a task of its own may stand; any other is a task of the client's.
const ASKED: [&[&str]; 1] = [&["params", "_meta", RELATED_TASK, "taskId"]];
/// The same in the client's answer.
const ANSWERED: [&[&str]; 1] = [&["result", "_meta", RELATED_TASK, "taskId"]];

/// Sought in every message of a stream.
static TASK_ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""taskId""#));

/// A message of the target of that alias, as the client is to read it.
pub fn expose(message: &Bytes, alias: &str) -> Bytes {
    // Tasks are rare; only messages that speak of one are looked into.
    if TASK_ID.find(message).is_none() {
        return message.clone();
    }
    edit(message, &PLACES, |own| Some(exposed(own, alias)))
}

/// A request of the target of that alias to the client, as the client is to read it.
pub fn expose_asked(message: &Bytes, alias: &str) -> Bytes {
    if TASK_ID.find(message).is_none() {
        return message.clone();
    }
    edit(message, &ASKED, |own| Some(exposed(own, alias)))
}

/// The client's answer to such a request, as the target is to read it.
pub fn own_answered(message: &Bytes, alias: &str) -> Bytes {
    if TASK_ID.find(message).is_none() {
        return message.clone();
    }
    edit(message, &ANSWERED, |exposed| own_of(exposed, alias))
}

/// A message of the client's, as the target of that alias is to read it.
pub fn own(message: &Bytes, alias: &str) -> Bytes {
    if TASK_ID.find(message).is_none() {
        return message.clone();
    }
    edit(message, &PLACES, |exposed| own_of(exposed, alias))
}

/// The target's own id, where `exposed` is one of the target of that alias.
fn own_of(exposed: &str, alias: &str) -> Option<String> {
    let (of, own) = split(exposed)?;
    (of == alias).then(|| own.to_owned())
}

/// The id that a client knows a task of the target of that alias by.
pub fn exposed(own: &str, alias: &str) -> String {
    format!("{alias}{SEPARATOR}{own}")
}

/// The alias and the target's own id, where `exposed` is an id that we gave.
pub fn split(exposed: &str) -> Option<(&str, &str)> {
    exposed.split_once(SEPARATOR)
}

/// The id of the task that a request is about, as the client wrote it.
pub fn requested(message: &Bytes) -> Option<String> {
    span::text(message, &["params", "taskId"])
}

fn edit(message: &Bytes, places: &[&[&str]], new: impl Fn(&str) -> Option<String>) -> Bytes {
    let edits = places.iter().filter_map(|place| replacement(message, place, &new)).collect();
    span::replace(message, edits)
}

fn replacement(
    message: &Bytes,
    place: &[&str],
    new: impl Fn(&str) -> Option<String>,
) -> Option<(Range<usize>, String)> {
    let range = span::find(message, place)?;
    let raw = message.slice(range.clone());
    let id = text(&raw).ok()?;
    new(&id).map(|id| (range, serde_json::Value::from(id).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_under_its_targets_alias_and_leads_back() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t:1","status":"working"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"taskId":"t:1","ttl":1.0e3}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t:1"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t:1"}}}}"#,
        ] {
            let message = Bytes::from_static(message.as_bytes());
            let exposed = expose(&message, "a.b");
            let want = std::str::from_utf8(&message).unwrap().replace("\"t:1\"", "\"a.b:t:1\"");
            assert_eq!(exposed.as_ref(), want.as_bytes());
            assert_eq!(own(&exposed, "a.b"), message);
            assert_eq!(own(&exposed, "other"), exposed, "another target's is left alone");
        }
        assert_eq!(split("a:b:c"), Some(("a", "b:c")));
        assert_eq!(split("abc"), None);
    }

    #[test]
    fn in_requests_to_the_client_only_the_task_that_they_belong_to_is_the_targets() {
        let asked = Bytes::from_static(
            br#"{"id":1,"method":"tasks/get","params":{"taskId":"c","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#,
        );
        let shown = expose_asked(&asked, "a");
        assert!(std::str::from_utf8(&shown).unwrap().contains(r#""taskId":"c","_meta""#));
        assert!(std::str::from_utf8(&shown).unwrap().contains(r#"{"taskId":"a:t"}"#));
        let answer = Bytes::from_static(
            br#"{"id":1,"result":{"taskId":"a:c","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a:t"}}}}"#,
        );
        let own = own_answered(&answer, "a");
        assert!(std::str::from_utf8(&own).unwrap().contains(r#""taskId":"a:c","_meta""#));
        assert!(std::str::from_utf8(&own).unwrap().contains(r#"{"taskId":"t"}"#));
    }

    #[test]
    fn what_a_tool_says_of_tasks_is_its_own() {
        let text = Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"taskId":"x"}],"structuredContent":{"taskId":"y"}}}"#,
        );
        assert_eq!(expose(&text, "a"), text);
    }
}
