//! Pure: where in a JSON document a value stands that is needed too rarely to be read with the envelope.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::Bytes;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{envelope, keys::distinct};

/// Where the value stands to which `path`, a list of object keys, leads.
///
/// None where it leads nowhere, or where a key on the way is given twice, in one spelling or in two: what we read must be
/// what the other side reads.
pub fn find(json: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut range = 0..json.len();
    for key in path {
        let document = json.get(range.clone())?;
        let value = pick(document, key)?;
        let start = value.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
        range = start..start + value.len();
    }
    Some(range)
}

/// The value itself, sharing the allocation of `json`.
pub fn value(json: &Bytes, path: &[&str]) -> Option<Bytes> {
    find(json, path).map(|range| json.slice(range))
}

/// The text itself, where it is a string.
pub fn text(json: &Bytes, path: &[&str]) -> Option<String> {
    envelope::text(&value(json, path)?).ok().map(Cow::into_owned)
}

/// `json` with the values at these places, each raw JSON, in place of those that stand there. Places that do not lie
/// behind one another are left as they are.
pub fn replace(json: &Bytes, mut edits: Vec<(Range<usize>, String)>) -> Bytes {
    if edits.is_empty() {
        return json.clone();
    }
    edits.sort_by_key(|(range, _)| range.start);
    let added: usize = edits.iter().map(|(_, with)| with.len()).sum();
    let mut out = Vec::with_capacity(json.len() + added);
    let mut at = 0;
    for (range, with) in edits {
        let Some(before) = json.get(at..range.start) else { continue };
        out.extend_from_slice(before);
        out.extend_from_slice(with.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(json.get(at..).unwrap_or_default());
    Bytes::from(out)
}

fn pick<'a>(document: &'a [u8], key: &str) -> Option<&'a [u8]> {
    if document.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let mut json = serde_json::Deserializer::from_slice(document);
    let value = json.deserialize_map(Pick(key)).ok()??;
    Some(value.get().as_bytes())
}

struct Pick<'k>(&'k str);

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is) = map.next_key_seed(Is(self.0))? {
            if !is {
                map.next_value::<IgnoredAny>()?;
            } else if found.replace(map.next_value::<&RawValue>()?).is_some() {
                return Err(A::Error::custom("a key is given twice"));
            }
        }
        Ok(found)
    }
}

/// Whether a key is this one, escaped or not. Fails where others may take it for this one.
struct Is<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        distinct(key, self.0)?;
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'j>(json: &'j str, path: &[&str]) -> Option<&'j str> {
        find(json.as_bytes(), path).and_then(|range| json.get(range))
    }

    #[test]
    fn a_path_leads_to_the_value_as_it_is_written() {
        let json = r#" {"a" : {"\u0062": [1, 2 ], "c":{"b":"x"}}, "b":7}"#;
        assert_eq!(at(json, &["a", "b"]), Some("[1, 2 ]"));
        assert_eq!(at(json, &["a", "c", "b"]), Some(r#""x""#));
        assert_eq!(at(json, &["b"]), Some("7"));
        for path in [&["c"][..], &["b", "a"], &["a", "b", "0"]] {
            assert_eq!(at(json, path), None, "{path:?}");
        }
    }

    #[test]
    fn a_key_that_is_given_twice_in_one_spelling_or_in_two_leads_nowhere() {
        assert_eq!(at(r#"{"a":1,"\u0061":2}"#, &["a"]), None);
        assert_eq!(at(r#"{"a":1,"b":2,"b":3}"#, &["a"]), Some("1"));
        for other in ["A", "a\\u0000", "\\u0041"] {
            assert_eq!(at(&format!(r#"{{"a":1,"{other}":2}}"#), &["a"]), None, "{other}");
            assert_eq!(at(&format!(r#"{{"b":{{"{other}":2,"a":1}}}}"#), &["b", "a"]), None, "{other}");
        }
        assert_eq!(at(r#"{"a":1,"b":{"A":2}}"#, &["a"]), Some("1"));
        assert_eq!(at(r#"[{"a":1}]"#, &["a"]), None);
        assert_eq!(at(r#"{"a":1"#, &["a"]), None);
    }

    #[test]
    fn what_is_not_replaced_stays_byte_for_byte() {
        let json = Bytes::from_static(br#"{"a": 1 ,"x":1.0e2,"b":"c"}"#);
        let edits = ["b", "a"].map(|key| (find(&json, &[key]).unwrap(), format!("\"new {key}\"")));
        let edited = replace(&json, edits.into());
        assert_eq!(edited.as_ref(), br#"{"a": "new a" ,"x":1.0e2,"b":"new b"}"#);
        assert_eq!(replace(&json, Vec::new()), json);
    }
}
