//! Pure: the resources that a session's client has subscribed to, by target, so that a target session which is begun in
//! another's place can be told of them. Bounded: of more than are kept it is not told.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// Subscriptions of one session that are kept.
const MOST: usize = 256;
/// Bytes of their URIs.
const MOST_BYTES: usize = 64 << 10;

/// What one session has subscribed to.
#[derive(Debug, Default)]
pub struct Subscribed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The target's uid and the URI.
    of: BTreeSet<(Box<str>, Box<str>)>,
    bytes: usize,
}

impl Subscribed {
    /// Notes that the target of this uid has taken a subscription; nothing, where enough are kept.
    pub fn add(&self, uid: &str, uri: &str) {
        let mut kept = self.0.lock();
        if kept.of.len() < MOST
            && kept.bytes + uri.len() <= MOST_BYTES
            && kept.of.insert((uid.into(), uri.into()))
        {
            kept.bytes += uri.len();
        }
    }

    /// Notes that one is taken back.
    pub fn remove(&self, uid: &str, uri: &str) {
        let mut kept = self.0.lock();
        if kept.of.remove(&(uid.into(), uri.into())) {
            kept.bytes -= uri.len();
        }
    }

    /// Whether it was taken and not taken back.
    pub fn holds(&self, uid: &str, uri: &str) -> bool {
        self.0.lock().of.contains(&(uid.into(), uri.into()))
    }

    /// All that are kept of this target.
    pub fn at(&self, uid: &str) -> Vec<Box<str>> {
        let kept = self.0.lock();
        kept.of.iter().filter(|(at, _)| **at == *uid).map(|(_, uri)| uri.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_told_of_its_own_and_of_nothing_that_was_taken_back() {
        let all = Subscribed::default();
        for (uid, uri) in [("a", "x://1"), ("a", "x://2"), ("b", "x://1"), ("a", "x://2")] {
            all.add(uid, uri);
        }
        all.remove("a", "x://1");
        all.remove("b", "x://2");
        assert_eq!((all.at("a"), all.at("b")), (vec!["x://2".into()], vec!["x://1".into()]));
        assert!(all.holds("a", "x://2") && !all.holds("a", "x://1"));
    }

    #[test]
    fn they_are_bounded_in_number_and_in_bytes_and_room_comes_back() {
        let all = Subscribed::default();
        for number in 0..=MOST {
            all.add("a", &number.to_string());
        }
        assert_eq!(all.at("a").len(), MOST);
        all.remove("a", "7");
        all.add("a", &"x".repeat(MOST_BYTES));
        assert_eq!(all.at("a").len(), MOST - 1, "its URI is too long beside the others");
        all.add("a", "x://short");
        assert_eq!(all.at("a").len(), MOST);
    }
}
