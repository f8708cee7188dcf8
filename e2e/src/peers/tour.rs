//! What a client saw on a tour: one session in which it did all that the servers behind a URL are good for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// How the servers' names are written at a URL, and which tools of theirs are to be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// What server-everything's names begin with, where it is there.
    pub everything: Option<String>,
    /// What the conformance server's names begin with, where it is there.
    pub fixture: Option<String>,
    /// Tools, as they are written, with arguments. At least one.
    pub calls: Map<String, Value>,
}

/// What a client saw. What belongs to a server that was not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// The protocol version it settled on, where it tells.
    pub protocol: Option<String>,
    /// The names of the tools it listed.
    pub tools: Vec<String>,
    /// The names of the prompts.
    pub prompts: Vec<String>,
    /// The URIs of the resources.
    pub resources: Vec<String>,
    /// The resource templates.
    pub templates: Vec<String>,
    /// The text of each call's result.
    pub calls: BTreeMap<String, String>,
    /// The text of server-everything's prompt about the weather in a city.
    pub prompt: String,
    /// The text of one of its resources.
    pub resource: String,
    /// Its departments that begin with an S.
    pub completion: Vec<String>,
    /// What it says after it has asked the user.
    pub elicitation: String,
    /// What it says after it has asked the client's model.
    pub sampling: String,
    /// What it says about the client's roots.
    pub roots: String,
    /// What the client was asked meanwhile, in order.
    pub asked: Vec<String>,
    /// The progress of its long task, with the total.
    pub progress: Vec<(f64, f64)>,
    /// What that says in the end.
    pub long: String,
    /// The resource that it said was updated.
    pub updated: String,
    /// What it logged of subscriptions at the level `info`, and then at `error`; of clients that read what is logged.
    pub told: Vec<String>,
    /// How many log messages a call of the conformance server brought at the level `info`, and at `error`.
    pub logged: Vec<usize>,
    /// What its tool says that closes the stream before it answers.
    pub reconnection: String,
    /// What its tool says whose user was sent to a page; of clients that open pages.
    pub opened: String,
    /// The page that the server said was read.
    pub read: String,
    /// A call was given up.
    pub cancelled: bool,
    /// The server noticed that.
    pub noticed: bool,
    /// The text of a call in a second session, after the first was over.
    pub again: String,
}

// === impl Prefixes ===

impl Prefixes {
    /// As the clients read it.
    pub(super) fn json(&self) -> Value {
        let Self { everything, fixture, calls } = self;
        let mut json = Map::from_iter([("calls".to_owned(), calls.clone().into())]);
        for (name, prefix) in [("everything", everything), ("fixture", fixture)] {
            json.extend(prefix.iter().map(|prefix| (name.to_owned(), prefix.as_str().into())));
        }
        json.into()
    }
}
