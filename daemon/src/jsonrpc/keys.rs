//! Pure: keys of objects, read so that nobody behind us takes another key for one that we judge by.
//!
//! We match keys byte for byte and forward what came. Many parsers are laxer: they match names whatever their case, or
//! end them at a NUL, and of several that match the last one wins. A second, laxer spelling beside the one that we read
//! would have us judge by one value and the target act on another.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, Visitor},
};

/// Reads a key as one of these, and any other as none.
///
/// Fails for a key that some parser may mistake for one of them.
#[derive(Debug)]
pub(super) struct Known<K: 'static>(pub(super) &'static [(&'static str, K)]);

impl<'de, K: Copy> DeserializeSeed<'de> for Known<K> {
    type Value = Option<K>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<K>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<K: Copy> Visitor<'_> for Known<K> {
    type Value = Option<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<K>, E> {
        if let Some((_, known)) = self.0.iter().find(|(name, _)| *name == key) {
            return Ok(Some(*known));
        }
        self.0.iter().try_for_each(|(name, _)| distinct(key, name))?;
        Ok(None)
    }
}

/// Refuses a `key` that is not `name`, but that some parser reads as it.
///
/// # Errors
/// For such a key.
pub(super) fn distinct<E: Error>(key: &str, name: &str) -> Result<(), E> {
    if mistakable(key, name) {
        return Err(E::custom(format_args!("a key is {name} in another spelling")));
    }
    Ok(())
}

/// Almost every key ends this at its length or its first letter.
fn mistakable(key: &str, name: &str) -> bool {
    // Every letter that folds to an ASCII one is at least as long.
    if key.len() < name.len() {
        return false;
    }
    let begun = key.trim_start_matches('\0');
    // Who ends a name at its first NUL reads an empty one where we skip those in front; others skip them, as we do.
    let letters = begun.chars().take_while(|letter| *letter != '\0');
    letters.map(fold).eq(name.chars().map(fold)) && key != name
}

/// The letter that laxer parsers hold for the same: that of the other case, and the four that only Unicode's rules for
/// cases take to an ASCII letter.
const fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_that_some_parser_takes_for_a_key_is_another_spelling_of_it() {
        for key in ["Name", "NAME", "nAmE", "name\0", "\0name", "name\0\0", "Name\0", "name\0x", "\0NAME\0x"]
        {
            assert!(mistakable(key, "name"), "{key:?}");
        }
        for (key, name) in [
            ("param\u{17f}", "params"),
            ("re\u{17f}ult", "result"),
            ("ta\u{17f}\u{212a}Id", "taskId"),
            ("ta\u{17f}\u{212a}\u{130}\u{131}", "taskii"),
            ("_META", "_meta"),
            ("\u{17f}", "S"),
        ] {
            assert!(mistakable(key, name), "{key:?}");
        }
    }

    #[test]
    fn a_key_itself_and_those_that_merely_look_like_it_are_no_other_spelling() {
        for key in [
            "name",
            "",
            "\0",
            "nam",
            "names",
            "name ",
            " name",
            "n\0ame",
            "na-me",
            "na_me",
            "n\u{e4}me",
            "\0nam",
            "n\u{430}me",
            "x-name",
            "naming",
        ] {
            assert!(!mistakable(key, "name"), "{key:?}");
        }
        assert!(!mistakable("meta", "_meta"));
    }

    #[test]
    fn every_letter_that_some_case_of_unicode_takes_to_an_ascii_letter_folds_to_it() {
        for letter in '\0'..=char::MAX {
            let lower = only(letter.to_lowercase()).filter(char::is_ascii_lowercase);
            let upper = only(letter.to_uppercase()).filter(char::is_ascii_uppercase);
            // The one whose lower case is two characters is to some parsers only the first of them.
            let plain = if letter == '\u{130}' { Some('i') } else { lower.or(upper) };
            assert_eq!(fold(letter), plain.map_or(letter, |plain| plain.to_ascii_lowercase()), "{letter:?}");
        }
    }

    fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
        letters.next().filter(|_| letters.next().is_none())
    }
}
