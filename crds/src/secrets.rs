//! Pure: which values of Secrets and ConfigMaps a gateway's configuration names by key, and where each comes from.
//! Holds no value itself; [`resolve`] hands on what it is given.

use std::collections::BTreeMap;
use std::fmt;

use crate::condition::reason;

/// The key of the bundle that the OpenID Connect provider is trusted by.
pub const OIDC_CA: &str = "oidc.ca";
/// The key of the listener's certificate, PEM.
pub const TLS_CERTIFICATE: &str = "tls.crt";
/// The key of the listener's private key, PEM.
pub const TLS_KEY: &str = "tls.key";

/// The key of a header's value; `header` in lower case.
pub fn header(uid: &str, header: &str) -> String {
    format!("{uid}.header.{header}")
}

/// The key of an OAuth client's id.
pub fn client_id(uid: &str) -> String {
    format!("{uid}.client-id")
}

/// The key of an OAuth client's secret.
pub fn client_secret(uid: &str) -> String {
    format!("{uid}.client-secret")
}

/// The key of the bundle that a target is trusted by, PEM.
pub fn ca(uid: &str) -> String {
    format!("{uid}.ca")
}

/// The key of the certificate that a target is shown, with its private key behind it, PEM.
pub fn client_certificate(uid: &str) -> String {
    format!("{uid}.client-certificate")
}

/// Where the value of one key comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretSource {
    /// The key, unique in its gateway and the same for as long as the reference is there.
    pub key: String,
    /// The uid of the target that needs it; none where the gateway itself does.
    pub target: Option<String>,
    /// What the object is.
    pub kind: SourceKind,
    /// The object's namespace; empty in `moored serve`.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The keys in its data. More than one is put together, a line break behind each.
    pub entries: Vec<String>,
    /// The field that refers to it, such as `spec.credentials`.
    pub field: &'static str,
}

/// An object with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl SourceKind {
    /// As Kubernetes calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an object holds under one of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This.
    Value(Vec<u8>),
    /// There is no such object.
    NoObject,
    /// The object has no such key.
    NoEntry,
    /// The object has not been read yet.
    Unread,
}

/// A reference that leads to nothing. Its text names object and key, and no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The reference.
    pub source: SecretSource,
    /// What it lacks.
    pub lacking: Lacking,
}

/// What is missing where a reference leads to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacking {
    /// The object.
    Object,
    /// The object's key of this name.
    Entry(String),
    /// A value of at most so many bytes.
    Smaller(usize),
    /// Room beside the values of older targets, so many bytes being the most of one gateway.
    Room(usize),
}

impl Unresolved {
    /// One of [`crate::condition::reason`].
    pub const fn reason(&self) -> &'static str {
        match self.lacking {
            Lacking::Object | Lacking::Entry(_) => reason::SECRET_NOT_FOUND,
            Lacking::Smaller(_) | Lacking::Room(_) => reason::TOO_LARGE,
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SecretSource { kind, name, field, .. } = &self.source;
        match &self.lacking {
            Lacking::Object => write!(f, "there is no {kind} {name}; create it, or correct {field}"),
            Lacking::Entry(entry) => {
                write!(f, "{kind} {name} has no key {entry}; add it, or correct {field}")
            }
            Lacking::Smaller(most) => {
                let most = most / 1024;
                write!(
                    f,
                    "{kind} {name} has a value over {most} KiB; write a smaller one, or correct {field}"
                )
            }
            Lacking::Room(most) => {
                let most = most / 1024;
                write!(
                    f,
                    "with {kind} {name} the values of the gateway are over {most} KiB, and those of older targets come \
                     first; write smaller ones, or name another gateway in spec.gatewayRefs"
                )
            }
        }
    }
}

/// The values of a configuration's keys, as far as they are there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// By key.
    pub values: BTreeMap<String, Vec<u8>>,
    /// What leads to nothing.
    pub unresolved: Vec<Unresolved>,
    /// Keys whose object has not been read yet.
    pub unread: Vec<String>,
}

/// Shows keys, never values.
impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, unresolved, unread } = self;
        f.debug_struct("Resolved")
            .field("keys", &values.keys())
            .field("unresolved", unresolved)
            .field("unread", unread)
            .finish()
    }
}

/// Looks every reference up. `find` is asked for the object of a source and one of its entries.
pub fn resolve(sources: &[SecretSource], find: impl Fn(&SecretSource, &str) -> Found) -> Resolved {
    let mut resolved = Resolved::default();
    'sources: for source in sources {
        let mut value = Vec::new();
        for entry in &source.entries {
            let lacking = match find(source, entry) {
                Found::Value(part) => {
                    value.push(part);
                    continue;
                }
                Found::Unread => {
                    resolved.unread.push(source.key.clone());
                    continue 'sources;
                }
                Found::NoObject => Lacking::Object,
                Found::NoEntry => Lacking::Entry(entry.clone()),
            };
            resolved.unresolved.push(Unresolved { source: source.clone(), lacking });
            continue 'sources;
        }
        let value = match value.len() {
            1 => value.concat(),
            _ => value.into_iter().flat_map(|part| [part, b"\n".to_vec()]).collect::<Vec<_>>().concat(),
        };
        resolved.values.insert(source.key.clone(), value);
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(key: &str, name: &str, entries: &[&str]) -> SecretSource {
        SecretSource {
            key: key.to_owned(),
            target: None,
            kind: SourceKind::Secret,
            namespace: "team".to_owned(),
            name: name.to_owned(),
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            field: "spec.credentials",
        }
    }

    fn find(source: &SecretSource, entry: &str) -> Found {
        match (source.name.as_str(), entry) {
            ("there", "missing") => Found::NoEntry,
            ("there", entry) => Found::Value(entry.as_bytes().to_vec()),
            ("later", _) => Found::Unread,
            _ => Found::NoObject,
        }
    }

    #[test]
    fn what_is_missing_is_named_by_object_and_key() {
        let sources =
            [source("a", "there", &["x"]), source("b", "there", &["missing"]), source("c", "gone", &["x"])];
        let resolved = resolve(&sources, find);
        assert_eq!(resolved.values.keys().collect::<Vec<_>>(), ["a"]);
        let said: Vec<_> = resolved.unresolved.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "Secret there has no key missing; add it, or correct spec.credentials",
                "there is no Secret gone; create it, or correct spec.credentials",
            ]
        );
    }

    #[test]
    fn a_certificate_and_its_key_are_one_value_and_what_is_not_read_yet_is_not_missing() {
        let sources = [source("pair", "there", &["crt", "key"]), source("d", "later", &["x"])];
        let resolved = resolve(&sources, find);
        assert_eq!(resolved.values.get("pair").unwrap(), b"crt\nkey\n");
        assert_eq!((resolved.unread.as_slice(), resolved.unresolved.len()), (["d".to_owned()].as_slice(), 0));
    }

    #[test]
    fn a_value_never_shows() {
        let shown = format!("{:?}", resolve(&[source("a", "there", &["hunter2"])], find));
        assert!(shown.contains('a') && !shown.contains("hunter2") && !shown.contains("104"), "{shown}");
    }
}
