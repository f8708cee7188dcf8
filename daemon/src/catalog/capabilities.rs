//! Pure: what the gateway announces of itself in `initialize`, out of what its targets announce (DESIGN §3.4).

use mooring_crds::config::{SessionMode, Streaming};
use serde_json::{Map, Value, json};

use super::{kind, listing::Listing, merge::Merged};

/// The most of one target's instructions that is handed on, in bytes.
const INSTRUCTIONS_BYTES: usize = 4 << 10;
/// The most of all instructions together.
const ALL_INSTRUCTIONS_BYTES: usize = 32 << 10;

/// What `initialize` answers besides version, name and session.
#[derive(Debug, Clone, PartialEq)]
pub struct Announced {
    /// `capabilities`.
    pub capabilities: Value,
    /// `instructions`, where any target gives some.
    pub instructions: Option<String>,
}

/// What a gateway can do for its clients between one request and the next. What it cannot is not announced, whatever
/// its targets do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// A stream of the client's to tell it something on, that it did not ask for just then.
    pub streams: bool,
    /// A session, so that what a request leaves behind at a target is there for the next.
    pub sessions: bool,
}

impl Keeps {
    /// What a gateway of this configuration can do.
    pub const fn of(mode: SessionMode, streaming: Streaming) -> Self {
        let sessions = matches!(mode, SessionMode::Stateful);
        Self { streams: sessions && matches!(streaming, Streaming::Enabled), sessions }
    }
}

/// What is announced to a caller who may see the targets for which `visible` says so.
///
/// Tools, prompts and resources: what any target announces, and all three while there is a target that was not heard
/// of. Tools always, since targets may come later. Changes of lists are announced wherever they can be told, since the
/// gateway tells of them itself. Everything else only as seen, and only what can be kept: where there is no stream nobody
/// hears of a resource, and where there is no session a level and a task are forgotten with the request.
pub fn announce(merged: &Merged, keeps: Keeps, visible: impl Fn(&Listing) -> bool) -> Announced {
    let listings: Vec<&Listing> =
        merged.listings.iter().map(|listing| &**listing).filter(|l| visible(l)).collect();
    let unheard = listings.iter().any(|listing| listing.capabilities().is_none());
    let heard = || listings.iter().filter_map(|listing| listing.capabilities());
    let mut announced = Map::new();
    for kind in kind::ALL {
        let name = kind.capability();
        if unheard || name == "tools" || heard().any(|of_one| of_one.has(name)) {
            let of_lists = if keeps.streams { json!({"listChanged": true}) } else { json!({}) };
            announced.insert(name.to_owned(), of_lists);
        }
    }
    if keeps.streams
        && heard().any(|of_one| of_one.flag("resources", "subscribe"))
        && let Some(Value::Object(resources)) = announced.get_mut("resources")
    {
        resources.insert("subscribe".to_owned(), Value::Bool(true));
    }
    for (name, kept) in [("completions", true), ("logging", keeps.sessions)] {
        if kept && heard().any(|of_one| of_one.has(name)) {
            announced.insert(name.to_owned(), json!({}));
        }
    }
    for (name, kept) in [("tasks", keeps.sessions), ("experimental", true)] {
        let mut merged = Map::new();
        for of_one in heard().filter_map(|of_one| of_one.get(name)) {
            if let Value::Object(of_one) = of_one {
                add(&mut merged, of_one);
            }
        }
        if kept && heard().any(|of_one| of_one.has(name)) {
            announced.insert(name.to_owned(), Value::Object(merged));
        }
    }
    Announced { capabilities: Value::Object(announced), instructions: instructions(&listings) }
}

/// Adds what is not there yet, object by object: of two values for one key the older target's stays.
fn add(merged: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, value) in other {
        match (merged.get_mut(key), value) {
            (Some(Value::Object(merged)), Value::Object(other)) => add(merged, other),
            (Some(_), _) => {}
            (None, value) => drop(merged.insert(key.clone(), value.clone())),
        }
    }
}

fn instructions(listings: &[&Listing]) -> Option<String> {
    let mut all = String::new();
    for listing in listings {
        let Some(text) = listing.instructions().map(str::trim).filter(|text| !text.is_empty()) else {
            continue;
        };
        let text = cut(text, INSTRUCTIONS_BYTES);
        let part =
            if listings.len() > 1 { format!("# {}\n\n{text}", listing.alias()) } else { text.to_owned() };
        // A part that does not fit is left out whole, and so are those behind it.
        if all.len() + part.len() > ALL_INSTRUCTIONS_BYTES {
            break;
        }
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        all.push_str(&part);
    }
    (!all.is_empty()).then_some(all)
}

/// The longest beginning of `text` that has at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        capabilities::ServerCapabilities,
        catalog::{
            listing::{Hello, Known},
            merge::merge,
        },
        testing::{router, target},
        version::LATEST,
    };

    fn heard(alias: &str, capabilities: Value, instructions: Option<&str>) -> Arc<Listing> {
        let hello = Hello {
            capabilities: ServerCapabilities::new(capabilities),
            instructions: instructions.map(Into::into),
        };
        let known = Known { hello: Some(Arc::new(hello)), ..Known::default() };
        Arc::new(Listing::ready(&target(alias), LATEST, known))
    }

    const ALL: Keeps = Keeps { streams: true, sessions: true };

    fn announced(listings: Vec<Arc<Listing>>) -> Announced {
        announced_by(ALL, listings)
    }

    fn announced_by(keeps: Keeps, listings: Vec<Arc<Listing>>) -> Announced {
        announce(&merge(&router(&["a", "b"]), listings, &Merged::default(), || 1), keeps, |_| true)
    }

    #[test]
    fn what_any_target_announces_is_announced_and_changes_always_are() {
        let a =
            json!({"tools": {}, "logging": {}, "experimental": {"x": {"of": "a"}}, "tasks": {"list": {}}});
        let b = json!({
            "prompts": {"listChanged": false}, "resources": {"subscribe": true}, "completions": {},
            "experimental": {"x": {"of": "b", "more": 1}, "y": {}},
            "tasks": {"requests": {"tools": {"call": {}}}}, "unknown": {},
        });
        let both = announced(vec![heard("a", a, None), heard("b", b, None)]);
        let changes = json!({"listChanged": true});
        assert_eq!(
            both.capabilities,
            json!({
                "tools": changes, "prompts": changes, "resources": {"listChanged": true, "subscribe": true},
                "logging": {}, "completions": {},
                "experimental": {"x": {"of": "a", "more": 1}, "y": {}},
                "tasks": {"list": {}, "requests": {"tools": {"call": {}}}},
            })
        );
        assert_eq!(both.instructions, None);
    }

    #[test]
    fn what_needs_a_stream_or_a_session_is_not_announced_where_there_is_none() {
        let all = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true}, "completions": {}, "logging": {},
            "resources": {"subscribe": true, "listChanged": true}, "tasks": {"list": {}}, "experimental": {"x": {}},
        });
        let said = |mode, streaming| {
            let keeps = Keeps::of(mode, streaming);
            announced_by(keeps, vec![heard("a", all.clone(), None)]).capabilities
        };
        assert_eq!(said(SessionMode::Stateful, Streaming::Enabled), all);
        let unstreamed = said(SessionMode::Stateful, Streaming::Disabled);
        assert_eq!(
            unstreamed,
            json!({
                "tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {},
                "tasks": {"list": {}}, "experimental": {"x": {}},
            })
        );
        for streaming in [Streaming::Enabled, Streaming::Disabled] {
            assert_eq!(
                said(SessionMode::Stateless, streaming),
                json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "experimental": {"x": {}}})
            );
        }
    }

    #[test]
    fn of_a_target_that_was_not_heard_of_only_lists_are_announced() {
        let unheard = Arc::new(Listing::pending(&target("b"), Known::default()));
        let some = announced(vec![heard("a", json!({"logging": {}}), None), unheard]);
        let changes = json!({"listChanged": true});
        assert_eq!(
            some.capabilities,
            json!({"tools": changes, "prompts": changes, "resources": changes, "logging": {}})
        );
        assert_eq!(announced(Vec::new()).capabilities, json!({"tools": changes}));
    }

    #[test]
    fn instructions_are_headed_by_their_alias_where_there_are_several_targets_and_bounded() {
        let one = announced(vec![heard("a", json!({}), Some(" Ask first. "))]);
        assert_eq!(one.instructions.as_deref(), Some("Ask first."));
        let long = "ü".repeat(INSTRUCTIONS_BYTES);
        let two = announced(vec![heard("a", json!({}), Some("Ask.")), heard("b", json!({}), Some(&long))]);
        let text = two.instructions.unwrap();
        assert!(text.starts_with("# a\n\nAsk.\n\n# b\n\nü"), "{text}");
        assert!(text.len() <= INSTRUCTIONS_BYTES + 32);
        let many: Vec<_> = (0..20).map(|_| heard("a", json!({}), Some(&long))).collect();
        assert!(announced(many).instructions.unwrap().len() <= ALL_INSTRUCTIONS_BYTES + 64);
    }

    #[test]
    fn what_a_caller_may_not_see_is_not_announced_to_it() {
        let hidden = heard("b", json!({"prompts": {}, "logging": {}}), Some("secret"));
        let merged =
            merge(&router(&["a", "b"]), vec![heard("a", json!({}), None), hidden], &Merged::default(), || 1);
        let seen = announce(&merged, ALL, |listing| listing.alias() == "a");
        assert_eq!(seen.capabilities, json!({"tools": {"listChanged": true}}));
        assert_eq!(seen.instructions, None);
    }
}
