//! What was last written for each object, so that nothing is written that is already so. Does no IO.

use std::collections::HashMap;

use kube::core::DynamicObject;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{child::ChildKind, key::Key};

/// The kind and key of a reconciled object.
pub type Owner<'a> = (&'static str, &'a Key);

/// One child of a reconciled object.
#[derive(Debug, Clone, Copy)]
pub struct ChildOf<'a> {
    /// Whose.
    pub owner: Owner<'a>,
    /// The child's kind.
    pub kind: ChildKind,
    /// The child's name.
    pub name: &'a str,
}

/// A fingerprint of a JSON value.
pub type Digest = [u8; 32];

/// Of every reconciled object what we last wrote for it; forgotten with the object.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<(&'static str, Key), Entry>>);

#[derive(Debug, Default)]
struct Entry {
    children: HashMap<(ChildKind, String), Written>,
    status: Option<StatusWritten>,
    failures: u32,
    undecodable: Option<String>,
}

/// One child as it was after our last apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What we wanted.
    pub planned: Digest,
    /// What the API server made of the fields that we wanted.
    pub live: Digest,
    /// The object's uid: what bears it is ours, whatever was stripped from it.
    pub uid: Option<String>,
    /// The version that our apply replaced: a store that still shows it lags behind.
    pub replaced: Option<String>,
}

/// A status as we last wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWritten {
    /// What we wrote.
    pub status: Value,
    /// The object's version that we decided from.
    pub before: Option<String>,
    /// The object's version since.
    pub after: Option<String>,
}

impl Ledger {
    /// Whether `live`, as read, is what our last apply of the same plan left.
    pub fn settled(&self, child: ChildOf<'_>, planned: &Value, live: &Value) -> bool {
        let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        self.with(child.owner, |entry| {
            entry.children.get(&(child.kind, child.name.to_owned())).is_some_and(|written| {
                written.planned == digest(planned)
                    && (written.live == digest(&project(live, planned))
                        || (version.is_some() && written.replaced.as_deref() == version))
            })
        })
    }

    /// Notes an apply: what was planned, what came back, and the version that it replaced.
    pub fn applied(&self, child: ChildOf<'_>, planned: &Value, came_back: &Value, replaced: Option<&str>) {
        let version = came_back.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let written = Written {
            planned: digest(planned),
            live: digest(&project(came_back, planned)),
            uid: came_back.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned),
            // An apply that changed nothing keeps the version; then the store does not lag.
            replaced: replaced.filter(|replaced| version != Some(replaced)).map(str::to_owned),
        };
        self.with(child.owner, |entry| entry.children.insert((child.kind, child.name.to_owned()), written));
    }

    /// Whether we made, in this process, the very object of this uid.
    pub fn made(&self, child: ChildOf<'_>, uid: Option<&str>) -> bool {
        self.with(child.owner, |entry| {
            let written = entry.children.get(&(child.kind, child.name.to_owned()));
            uid.is_some() && written.is_some_and(|written| written.uid.as_deref() == uid)
        })
    }

    /// The status that we last wrote for an object.
    pub fn status(&self, owner: Owner<'_>) -> Option<StatusWritten> {
        self.with(owner, |entry| entry.status.clone())
    }

    /// Notes a status.
    pub fn wrote_status(&self, owner: Owner<'_>, written: StatusWritten) {
        self.with(owner, |entry| entry.status = Some(written));
    }

    /// Counts a failure; returns how many there were in a row.
    pub fn failed(&self, owner: Owner<'_>) -> u32 {
        self.with(owner, |entry| {
            entry.failures = entry.failures.saturating_add(1);
            entry.failures
        })
    }

    /// Ends a row of failures.
    pub fn succeeded(&self, owner: Owner<'_>) {
        self.with(owner, |entry| {
            entry.failures = 0;
            entry.undecodable = None;
        });
    }

    /// Notes that a version of an object cannot be decoded; true the first time.
    pub fn undecodable(&self, owner: Owner<'_>, what: &str) -> bool {
        self.with(owner, |entry| entry.undecodable.replace(what.to_owned()).as_deref() != Some(what))
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, owner: Owner<'_>) {
        self.0.lock().remove(&(owner.0, owner.1.clone()));
    }

    fn with<T>(&self, (kind, key): Owner<'_>, act: impl FnOnce(&mut Entry) -> T) -> T {
        act(self.0.lock().entry((kind, key.clone())).or_default())
    }
}

/// What `live` says about the fields that `planned` decides; lists count whole.
///
/// Fields of others (a status, annotations of other controllers, a daemon's report) do not show in it; an edited
/// or removed field of ours does.
pub fn project(live: &Value, planned: &Value) -> Value {
    match (live, planned) {
        (Value::Object(live), Value::Object(planned)) => Value::Object(
            planned
                .iter()
                .filter_map(|(name, planned)| Some((name.clone(), project(live.get(name)?, planned))))
                .collect::<Map<_, _>>(),
        ),
        (live, _) => live.clone(),
    }
}

/// The JSON of an object without its type, which items of a list lack.
pub fn wanted(object: &DynamicObject) -> serde_json::Result<Value> {
    let mut json = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut json {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    Ok(json)
}

fn digest(value: &Value) -> Digest {
    // serde_json's maps are sorted, so equal values have equal text.
    Sha256::digest(value.to_string().as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> Key {
        Key::new("team", "tools")
    }

    fn child(key: &Key) -> ChildOf<'_> {
        ChildOf { owner: ("MCPGateway", key), kind: ChildKind::Deployment, name: "tools-mcp" }
    }

    fn live(replicas: i32, version: &str) -> Value {
        json!({
            "metadata": {"name": "tools-mcp", "labels": {"a": "b", "theirs": "x"}, "resourceVersion": version},
            "spec": {"replicas": replicas, "revisionHistoryLimit": 10},
            "status": {"replicas": replicas},
        })
    }

    fn planned() -> Value {
        json!({"metadata": {"name": "tools-mcp", "labels": {"a": "b"}}, "spec": {"replicas": 1}})
    }

    fn settled(ledger: &Ledger, planned: &Value, live: &Value) -> bool {
        ledger.settled(child(&key()), planned, live)
    }

    fn ledger() -> Ledger {
        let ledger = Ledger::default();
        ledger.applied(child(&key()), &planned(), &live(1, "7"), Some("5"));
        ledger
    }

    #[test]
    fn before_any_apply_nothing_is_settled() {
        assert!(!settled(&Ledger::default(), &planned(), &live(1, "7")));
    }

    #[test]
    fn fields_of_others_do_not_unsettle_a_child() {
        let mut touched = live(1, "9");
        touched["status"]["replicas"] = json!(3);
        touched["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "2"});
        assert!(settled(&ledger(), &planned(), &touched));
    }

    #[test]
    fn an_edit_of_ours_or_a_new_plan_unsettles_it() {
        assert!(!settled(&ledger(), &planned(), &live(4, "9")));
        let mut stripped = live(1, "9");
        stripped["metadata"]["labels"] = json!({});
        assert!(!settled(&ledger(), &planned(), &stripped));
        let mut other = planned();
        other["spec"]["replicas"] = json!(2);
        assert!(!settled(&ledger(), &other, &live(1, "7")));
    }

    #[test]
    fn a_store_that_still_shows_what_we_replaced_lags_and_is_no_edit() {
        assert!(settled(&ledger(), &planned(), &live(3, "5")));
        assert!(!settled(&ledger(), &planned(), &live(3, "6")));
    }

    #[test]
    fn an_apply_that_changed_nothing_does_not_make_the_store_look_late() {
        let ledger = Ledger::default();
        ledger.applied(child(&key()), &planned(), &live(1, "7"), Some("7"));
        assert!(!settled(&ledger, &planned(), &live(3, "7")));
    }

    #[test]
    fn an_object_that_we_made_is_known_by_its_uid() {
        let ledger = Ledger::default();
        let mut made = live(1, "7");
        made["metadata"]["uid"] = json!("a");
        ledger.applied(child(&key()), &planned(), &made, None);
        assert!(ledger.made(child(&key()), Some("a")));
        assert!(!ledger.made(child(&key()), Some("b")));
        assert!(!ledger.made(child(&key()), None));
    }

    #[test]
    fn what_is_forgotten_is_no_longer_settled() {
        let ledger = ledger();
        ledger.forget(("MCPGateway", &key()));
        assert!(!settled(&ledger, &planned(), &live(1, "7")));
    }

    #[test]
    fn an_undecodable_version_is_news_once() {
        let ledger = Ledger::default();
        assert!(ledger.undecodable(("MCPGateway", &key()), "uid/1"));
        assert!(!ledger.undecodable(("MCPGateway", &key()), "uid/1"));
        assert!(ledger.undecodable(("MCPGateway", &key()), "uid/2"));
    }

    #[test]
    fn failures_are_counted_until_a_success() {
        let ledger = Ledger::default();
        assert_eq!(ledger.failed(("MCPGateway", &key())), 1);
        assert_eq!(ledger.failed(("MCPGateway", &key())), 2);
        ledger.succeeded(("MCPGateway", &key()));
        assert_eq!(ledger.failed(("MCPGateway", &key())), 1);
    }
}
