//! Tokens while they live: each asked for once, however many requests want it, and forgotten before it expires.
//! What does the asking is given; this file has no connection.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use http::HeaderValue;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::Trouble;

/// Tokens kept for one target; callers beyond them take the places of those whose tokens end first.
const MOST_TOKENS: usize = 1024;
/// A token is not used in its last seconds: the clocks of two machines differ.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a question that nobody heard the end of is still waited for. Longer than any question takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A question for a token.
pub(super) type Issue = BoxFuture<'static, Result<Token, Trouble>>;
type Asked = Shared<BoxFuture<'static, Result<Arc<Token>, Trouble>>>;

/// A token as it stands in a request.
pub(super) struct Token {
    /// The value of `Authorization`.
    pub(super) value: HeaderValue,
    /// When it was asked for.
    pub(super) issued: Instant,
    /// Until when it is used.
    pub(super) until: Instant,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("until", &self.until).finish_non_exhaustive()
    }
}

impl Token {
    /// A token that was asked for at `issued` and lives so long. Not used beyond 80 % of a short life, nor in the last
    /// half minute of a long one.
    pub(super) fn new(value: HeaderValue, issued: Instant, lifetime: Duration) -> Self {
        let until = issued + lifetime.saturating_sub(MARGIN).max(lifetime * 4 / 5);
        Self { value, issued, until }
    }
}

/// Whose token it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The gateway's own.
    Own,
    /// The caller's whose token has this hash: the token itself is not kept.
    Caller([u8; 32]),
}

impl Key {
    /// The key of a caller's token.
    pub(super) fn of(token: &str) -> Self {
        Self::Caller(Sha256::digest(token).into())
    }
}

/// The tokens of one target.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<Key, Slot>>);

#[derive(Debug)]
struct Slot {
    asked: Asked,
    begun: Instant,
}

impl Slot {
    /// Whether it can be waited for or taken: a token that lives and was not refused, or a question under way.
    fn usable(&self, now: Instant, refused: Option<&Arc<Token>>) -> bool {
        match self.asked.peek() {
            Some(Ok(token)) => {
                token.until > now && refused.is_none_or(|refused| !Arc::ptr_eq(refused, token))
            }
            Some(Err(_)) => false,
            None => self.begun + PATIENCE > now,
        }
    }

    /// When it is worth nothing any more, as far as is known.
    fn until(&self) -> Instant {
        match self.asked.peek() {
            Some(Ok(token)) => token.until,
            Some(Err(_)) => self.begun,
            None => self.begun + PATIENCE,
        }
    }
}

impl Cache {
    /// The token of `key`, asked for with `issue` where there is none, or only the one that was `refused`.
    ///
    /// # Errors
    /// [`Trouble`]; a failure is told to all who wait, and not kept.
    pub(super) async fn token(
        &self,
        key: Key,
        refused: Option<&Arc<Token>>,
        issue: impl Fn() -> Issue,
    ) -> Result<Arc<Token>, Trouble> {
        let (asked, ours) = self.ask(key, refused, &issue);
        match asked.clone().await {
            Ok(token) => Ok(token),
            Err(trouble) => {
                self.forget(key, &asked);
                if ours {
                    return Err(trouble);
                }
                // Another request's question may have failed for its age: one of our own is worth a try.
                let (asked, _) = self.ask(key, refused, &issue);
                let answered = asked.clone().await;
                if answered.is_err() {
                    self.forget(key, &asked);
                }
                answered
            }
        }
    }

    fn ask(&self, key: Key, refused: Option<&Arc<Token>>, issue: &impl Fn() -> Issue) -> (Asked, bool) {
        let now = Instant::now();
        let mut slots = self.0.lock();
        if let Some(slot) = slots.get(&key).filter(|slot| slot.usable(now, refused)) {
            return (slot.asked.clone(), false);
        }
        if slots.len() >= MOST_TOKENS {
            slots.retain(|_, slot| slot.until() > now);
        }
        if slots.len() >= MOST_TOKENS
            && let Some(first) = slots.iter().min_by_key(|(_, slot)| slot.until()).map(|(key, _)| *key)
        {
            slots.remove(&first);
        }
        let question = issue();
        let asked = async move { question.await.map(Arc::new) }.boxed().shared();
        slots.insert(key, Slot { asked: asked.clone(), begun: now });
        (asked, true)
    }

    fn forget(&self, key: Key, asked: &Asked) {
        let mut slots = self.0.lock();
        if slots.get(&key).is_some_and(|slot| slot.asked.ptr_eq(asked)) {
            slots.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts questions; each answers a token of its number after a second.
    fn issuer(count: &Arc<AtomicUsize>, lifetime: u64) -> impl Fn() -> Issue + use<> {
        let count = Arc::clone(count);
        move || {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move {
                let issued = Instant::now();
                tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.unwrap_err();
                let value = HeaderValue::from_str(&number.to_string()).unwrap();
                Ok(Token::new(value, issued, Duration::from_secs(lifetime)))
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_ask_once_and_the_token_is_renewed_before_its_end() {
        let (cache, count) = (Cache::default(), Arc::new(AtomicUsize::new(0)));
        let issue = issuer(&count, 600);
        let all = (0..50).map(|_| cache.token(Key::Own, None, &issue));
        let tokens = futures_util::future::join_all(all).await;
        assert!(tokens.iter().all(|token| token.as_ref().unwrap().value == "1"));
        tokio::time::advance(Duration::from_secs(560)).await;
        assert_eq!(cache.token(Key::Own, None, &issue).await.unwrap().value, "1");
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(cache.token(Key::Own, None, &issue).await.unwrap().value, "2");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_token_is_replaced_once_for_all_who_were_refused() {
        let (cache, count) = (Cache::default(), Arc::new(AtomicUsize::new(0)));
        let issue = issuer(&count, 600);
        let old = cache.token(Key::Own, None, &issue).await.unwrap();
        let again = (0..9).map(|_| cache.token(Key::Own, Some(&old), &issue));
        for token in futures_util::future::join_all(again).await {
            assert_eq!(token.unwrap().value, "2");
        }
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_does_not_take_the_others_token_with_it() {
        let (cache, count) = (Cache::default(), Arc::new(AtomicUsize::new(0)));
        let issue = issuer(&count, 600);
        let first =
            tokio::time::timeout(Duration::from_millis(10), cache.token(Key::Own, None, &issue)).await;
        assert!(first.is_err());
        assert_eq!(cache.token(Key::Own, None, &issue).await.unwrap().value, "1");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_have_tokens_of_their_own_and_their_number_is_bounded() {
        let (cache, count) = (Cache::default(), Arc::new(AtomicUsize::new(0)));
        let issue = issuer(&count, 600);
        for caller in 0..MOST_TOKENS + 3 {
            cache.token(Key::of(&caller.to_string()), None, &issue).await.unwrap();
        }
        assert!(cache.0.lock().len() <= MOST_TOKENS);
        let last = Key::of(&(MOST_TOKENS + 2).to_string());
        let kept = cache.token(last, None, &issue).await.unwrap();
        assert_eq!(kept.value, (MOST_TOKENS + 3).to_string());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_and_not_kept() {
        let cache = Cache::default();
        let failing = || -> Issue { Box::pin(async { Err(Trouble::NoAccount) }) };
        assert_eq!(cache.token(Key::Own, None, failing).await.unwrap_err(), Trouble::NoAccount);
        let issue = issuer(&Arc::new(AtomicUsize::new(0)), 1);
        assert!(cache.token(Key::Own, None, issue).await.is_ok());
    }
}
