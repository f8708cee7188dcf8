//! Pure: patterns of names, in which `*` stands for any characters and `?` for one. Nothing else is special.

/// Whether `pattern` matches the whole of `text`. Takes time in proportion to the product of both lengths at most,
/// however many stars a pattern has; upper and lower case differ.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // Behind the last star, and what of the text it has not swallowed: where to go on once something differs.
    let mut star: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let left = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                star = Some((pattern.clone(), left.clone()));
                text = left;
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            (_, _) => {
                let Some((behind, swallowed)) = &mut star else { return false };
                if swallowed.next().is_none() {
                    return false;
                }
                (pattern, text) = (behind.clone(), swallowed.clone());
            }
        }
    }
}

/// Whether any of `patterns` matches `text`.
pub fn any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition, without regard to time.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|taken| naive(rest, text.get(taken..).unwrap())),
            [first, rest @ ..] => {
                text.split_first().is_some_and(|(c, text)| (*first == '?' || first == c) && naive(rest, text))
            }
        }
    }

    #[test]
    fn stars_and_question_marks_stand_for_characters_and_nothing_else_is_special() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "anything"),
            ("get_*", "get_"),
            ("get_*", "get_sum"),
            ("*_sum", "get_sum_sum"),
            ("a*b*c", "aXbbYc"),
            ("get-?", "get-ü"),
            ("", ""),
            ("[a]", "[a]"),
            ("a.c", "a.c"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "x"),
            ("get_*", "GET_sum"),
            ("get_*", "forget_sum"),
            ("*_sum", "get_sum2"),
            ("?", ""),
            ("get-?", "get-ab"),
            ("a.c", "abc"),
            ("[a]", "a"),
            ("a*b*c", "aXcYb"),
            ("x", ""),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn every_short_pattern_matches_what_the_definition_says() {
        let words = |alphabet: &[char]| -> Vec<Vec<char>> {
            let mut all = vec![Vec::new()];
            let mut last = all.clone();
            for _ in 0..4 {
                last = last
                    .iter()
                    .flat_map(|word: &Vec<char>| alphabet.iter().map(|c| [word.as_slice(), &[*c]].concat()))
                    .collect();
                all.extend(last.iter().cloned());
            }
            all
        };
        for pattern in words(&['a', 'b', '*', '?']) {
            for text in words(&['a', 'b']) {
                let (p, t): (String, String) = (pattern.iter().collect(), text.iter().collect());
                assert_eq!(matches(&p, &t), naive(&pattern, &text), "{p} {t}");
            }
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let (pattern, text) = ("*a".repeat(100) + "b", "a".repeat(10_000));
        assert!(!matches(&pattern, &text));
    }

    #[test]
    fn one_of_many_is_enough() {
        let patterns = ["x".to_owned(), "get_*".to_owned()];
        assert!(any(&patterns, "get_sum"));
        assert!(!any(&patterns, "put_sum"));
        assert!(!any(&[], "get_sum"));
    }
}
