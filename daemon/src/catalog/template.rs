//! Pure: whether a URI can have come from a URI template (RFC 6570), to find the target that serves it.
//!
//! Lenient, since the target has the last word: `{var}` takes what is within one segment, `{+var}` and `{#var}` take
//! anything, and the operators of level 3 (`{/var}`, `{?var}` and the like) may be absent.

/// The longest URI that is matched; a longer one is of no template.
const LONGEST_URI: usize = 2048;
/// The most parts of a template that is matched, so that a target cannot make matching slow.
const MOST_PARTS: usize = 16;

/// A template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Exactly this.
    Literal(Box<[u8]>),
    /// One or more characters of a segment.
    Segment,
    /// One or more characters.
    Anything,
    /// Nothing, or this character and anything.
    Optional(u8),
}

impl Template {
    /// Reads a template; none where its braces do not pair, or it has too many parts.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((literal, behind)) = rest.split_once('{') {
            let (expression, behind) = behind.split_once('}')?;
            push_literal(&mut parts, literal)?;
            parts.push(match expression.as_bytes() {
                [] => return None,
                [b'+', ..] => Part::Anything,
                [b'#', ..] => Part::Optional(b'#'),
                [operator @ (b'/' | b'.' | b';' | b'?' | b'&'), ..] => Part::Optional(*operator),
                [..] => Part::Segment,
            });
            rest = behind;
        }
        push_literal(&mut parts, rest)?;
        (parts.len() <= MOST_PARTS).then_some(Self { parts })
    }

    /// Whether `uri` can have come from it. Takes time in proportion to the product of both lengths at most.
    pub fn matches(&self, uri: &str) -> bool {
        let uri = uri.as_bytes();
        if uri.len() > LONGEST_URI {
            return false;
        }
        // `reached[at]`: whether the parts so far can have taken all before `at`.
        let mut reached = vec![false; uri.len() + 1];
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for part in &self.parts {
            reached = part.step(uri, &reached);
        }
        reached.last() == Some(&true)
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) -> Option<()> {
    if text.contains('}') {
        return None;
    }
    if !text.is_empty() {
        parts.push(Part::Literal(text.as_bytes().into()));
    }
    Some(())
}

impl Part {
    /// From where the parts before can have ended to where this one can end.
    fn step(&self, uri: &[u8], reached: &[bool]) -> Vec<bool> {
        let begins = |at: usize| reached.get(at) == Some(&true);
        let mut ends = vec![false; reached.len()];
        let mut running = false;
        for (end, reachable) in ends.iter_mut().enumerate() {
            // The character that lies before `end`.
            let last = end.checked_sub(1);
            let character = last.and_then(|last| uri.get(last)).copied();
            *reachable = match self {
                Self::Literal(text) => end.checked_sub(text.len()).is_some_and(|start| {
                    begins(start) && uri.get(start..end).is_some_and(|part| *part == **text)
                }),
                Self::Segment => {
                    running = character.is_some_and(|c| !matches!(c, b'/' | b'?' | b'#'))
                        && (running || last.is_some_and(begins));
                    running
                }
                Self::Anything => {
                    running = running || last.is_some_and(begins);
                    running
                }
                Self::Optional(first) => {
                    running = running || (character == Some(*first) && last.is_some_and(begins));
                    running || begins(end)
                }
            };
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(template: &str, uri: &str) -> bool {
        Template::parse(template).unwrap().matches(uri)
    }

    #[test]
    fn a_variable_takes_what_is_within_a_segment_and_a_reserved_one_takes_anything() {
        for (template, uri) in [
            ("demo://text/{id}", "demo://text/7"),
            ("demo://text/{id}", "demo://text/a%20b"),
            ("test://template/{id}/data", "test://template/123/data"),
            ("file:///{+path}", "file:///a/b/c.txt"),
            ("a:{x}{y}", "a:bc"),
            ("a:{x}-{y}", "a:1-2-3"),
            ("doc:x{#part}", "doc:x#part"),
            ("doc:x{#part}", "doc:x"),
            ("search:{q}{?lang,page}", "search:x?lang=en&page=2"),
            ("search:{q}{?lang,page}", "search:x"),
            ("a:b", "a:b"),
            ("übe:{x}", "übe:ü"),
        ] {
            assert!(matches(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("demo://text/{id}", "demo://text/"),
            ("demo://text/{id}", "demo://text/a/b"),
            ("demo://text/{id}", "demo://blob/7"),
            ("test://template/{id}/data", "test://template/123/date"),
            ("file:///{+path}", "file:///"),
            ("a:{x}{y}", "a:b"),
            ("search:{q}{?lang}", "search:x/lang"),
            ("a:b", "a:bc"),
            ("a:b", "a:"),
        ] {
            assert!(!matches(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn what_is_no_template_or_too_long_matches_nothing() {
        for text in ["a:{", "a:}", "a:{}", "a:{x}}", &"{+x}".repeat(MOST_PARTS + 1)] {
            assert_eq!(Template::parse(text), None, "{text}");
        }
        assert!(matches("{+x}", &"a".repeat(LONGEST_URI)));
        assert!(!matches("{+x}", &"a".repeat(LONGEST_URI + 1)));
    }
}
