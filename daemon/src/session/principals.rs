//! Pure: how many sessions each principal has on this replica, those that are just being stored among them. Knows no
//! session, only numbers.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::record::Principal;
use crate::fault::Fault;

/// The sessions of each principal, counted.
#[derive(Debug, Default)]
pub struct Principals(Mutex<HashMap<Principal, u32>>);

/// A session that is being stored. It counts already, so that two that race for the last place do not both get it;
/// dropped without [`Self::keep`], it never was.
#[derive(Debug)]
pub struct Reserved<'p> {
    principals: &'p Principals,
    principal: Option<Principal>,
}

impl Principals {
    /// Counts a session that is about to be stored.
    ///
    /// # Errors
    /// [`Fault::TooManySessions`], where the principal has `most` already.
    pub fn reserve(&self, principal: &Principal, most: Option<u32>) -> Result<Reserved<'_>, Fault> {
        let mut counts = self.0.lock();
        let count = counts.get(principal).copied().unwrap_or(0);
        if let Some(most) = most.filter(|most| count >= *most) {
            return Err(Fault::TooManySessions(most));
        }
        counts.insert(principal.clone(), count.saturating_add(1));
        Ok(Reserved { principals: self, principal: Some(principal.clone()) })
    }

    /// Counts a session that there is already, whatever the limit: another replica began it.
    pub fn enter(&self, principal: &Principal) {
        let mut counts = self.0.lock();
        let count = counts.entry(principal.clone()).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// Counts a session out.
    pub fn leave(&self, principal: &Principal) {
        let mut counts = self.0.lock();
        match counts.get_mut(principal) {
            Some(count) if *count > 1 => *count -= 1,
            // Nothing is kept of who has no session.
            Some(_) => drop(counts.remove(principal)),
            None => {}
        }
    }
}

impl Reserved<'_> {
    /// The session is stored: it counts until [`Principals::leave`].
    pub fn keep(mut self) {
        self.principal = None;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(principal) = self.principal.take() {
            self.principals.leave(&principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(subject: &str) -> Principal {
        Principal::Oidc { issuer: "https://id.example".into(), subject: subject.into() }
    }

    #[test]
    fn the_one_over_the_limit_is_refused_and_another_principal_is_not() {
        let (principals, alice) = (Principals::default(), of("alice"));
        let (first, second) =
            (principals.reserve(&alice, Some(2)).unwrap(), principals.reserve(&alice, Some(2)).unwrap());
        assert_eq!(principals.reserve(&alice, Some(2)).unwrap_err(), Fault::TooManySessions(2));
        assert!(principals.reserve(&of("bob"), Some(2)).is_ok());
        first.keep();
        drop(second);
        assert!(principals.reserve(&alice, Some(2)).is_ok(), "what was not stored does not count");
        principals.enter(&alice);
        assert!(principals.reserve(&alice, Some(2)).is_err());
        principals.leave(&alice);
        assert!(principals.reserve(&alice, Some(2)).is_ok());
        assert!(principals.reserve(&alice, None).is_ok());
    }

    #[test]
    fn nothing_is_kept_of_who_has_no_session() {
        let principals = Principals::default();
        for subject in ["alice", "bob"] {
            drop(principals.reserve(&of(subject), Some(1)));
            principals.enter(&of(subject));
            principals.leave(&of(subject));
            principals.leave(&of(subject));
        }
        assert!(principals.0.lock().is_empty());
    }
}
