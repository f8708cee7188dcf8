//! Pure: what a verified token says of its bearer, and how its claims are compared with what is wanted.

use std::sync::Arc;

use mooring_crds::config::ClaimValues;
use serde_json::{Map, Value};

/// The claims of a token whose signature was verified; none of nobody in particular. Cheap to copy.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Claims(Option<Arc<Map<String, Value>>>);

impl std::fmt::Debug for Claims {
    /// Names alone: values may be personal.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.iter().flat_map(|claims| claims.keys())).finish()
    }
}

impl From<Map<String, Value>> for Claims {
    fn from(claims: Map<String, Value>) -> Self {
        Self(Some(Arc::new(claims)))
    }
}

impl Claims {
    fn get(&self, claim: &str) -> Option<&Value> {
        self.0.as_ref()?.get(claim)
    }

    /// Whether both were read of one token.
    pub fn are(&self, others: &Self) -> bool {
        match (&self.0, &others.0) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// A claim that is a string and not empty.
    pub fn text(&self, claim: &str) -> Option<&str> {
        self.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// A string inside an object inside a claim, and so on.
    pub(super) fn text_at(&self, path: &[&str]) -> Option<&str> {
        let (claim, below) = path.split_first()?;
        let found = below.iter().try_fold(self.get(claim)?, |value, name| value.get(name))?;
        found.as_str().filter(|text| !text.is_empty())
    }

    /// A time (RFC 7519, NumericDate), in milliseconds since the epoch.
    pub(super) fn time(&self, claim: &str) -> Option<Result<i64, NoTime>> {
        let value = self.get(claim)?;
        // Far beyond any date, and far from where a cast would saturate.
        let seconds = value.as_f64().filter(|seconds| (0.0..1e12).contains(seconds));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it was just bounded, and fractions are meant to go"
        )]
        Some(seconds.map(|seconds| (seconds * 1000.0) as i64).ok_or(NoTime))
    }

    /// The strings of a claim that is one string or a list of them.
    pub(super) fn texts(&self, claim: &str) -> impl Iterator<Item = &str> {
        self.values(claim).filter_map(Value::as_str)
    }

    fn values(&self, claim: &str) -> impl Iterator<Item = &Value> {
        let value = self.get(claim);
        let list = value.and_then(Value::as_array);
        let single = value.filter(|value| !value.is_array());
        single.into_iter().chain(list.into_iter().flatten())
    }

    /// The scopes that it was given: `scope` with spaces between (RFC 8693 §4.2), or `scp`, a list or with spaces.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &str> {
        ["scope", "scp"].into_iter().flat_map(|claim| self.texts(claim)).flat_map(|text| text.split(' '))
    }

    /// The client that it was issued to: `azp` (OpenID Connect Core §2), or `client_id` (RFC 9068 §2.2).
    pub(super) fn client(&self) -> Option<&str> {
        self.text("azp").or_else(|| self.text("client_id"))
    }

    /// Whether the claim, or one element of it where it is a list, is one of the wanted values. Numbers and booleans
    /// are compared as JSON writes them.
    pub fn has(&self, wanted: &ClaimValues) -> bool {
        let ClaimValues { claim, values } = wanted;
        self.values(claim).any(|value| match value {
            Value::String(text) => values.contains(text),
            Value::Bool(_) | Value::Number(_) => values.contains(&value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        })
    }
}

/// A claim that should be a time and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoTime;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Value) -> Claims {
        let Value::Object(map) = value else { panic!("no object") };
        Claims::from(map)
    }

    #[test]
    fn a_claim_has_a_wanted_value_alone_or_in_a_list() {
        let claims = claims(
            json!({"groups": ["dev", "ops"], "team": "a", "ok": true, "level": 3, "deep": {"x": "a"}}),
        );
        let has = |claim: &str, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            claims.has(&ClaimValues { claim: claim.to_owned(), values })
        };
        assert!(
            has("groups", &["ops"])
                && has("team", &["b", "a"])
                && has("ok", &["true"])
                && has("level", &["3"])
        );
        assert!(
            !has("groups", &["op"]) && !has("team", &["A"]) && !has("absent", &["a"]) && !has("deep", &["a"])
        );
        assert!(!has("team", &[]));
    }

    #[test]
    fn scopes_are_read_however_a_provider_writes_them() {
        for value in [json!({"scope": "a b"}), json!({"scp": ["a", "b"]}), json!({"scp": "a b"})] {
            assert_eq!(claims(value.clone()).scopes().collect::<Vec<_>>(), ["a", "b"], "{value}");
        }
        assert_eq!(claims(json!({"sub": "x"})).scopes().count(), 0);
    }

    #[test]
    fn a_time_is_a_number_of_seconds_and_nothing_else() {
        assert_eq!(claims(json!({"exp": 1.5})).time("exp"), Some(Ok(1500)));
        assert_eq!(claims(json!({})).time("exp"), None);
        for value in [json!("1"), json!(-1), json!(1e300), json!(null)] {
            assert_eq!(claims(json!({"exp": value})).time("exp"), Some(Err(NoTime)));
        }
    }

    #[test]
    fn values_never_show_in_what_is_logged() {
        let shown = format!("{:?}", claims(json!({"email": "alice@example.org"})));
        assert!(shown.contains("email") && !shown.contains("alice"), "{shown}");
    }
}
