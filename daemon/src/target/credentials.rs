//! What a gateway authenticates with at a target (`spec.credentials`). Never shows a value.
//!
//! A client's own token never reaches a target (DESIGN §8): a token exchange shows it to the token endpoint alone.

mod account;
mod cache;
mod endpoint;
pub(crate) mod grant;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use mooring_crds::config::{CredentialsConfig, TargetConfig};
use tokio::time::Instant;

pub use self::account::Account;
use self::{
    account::AccountTokens,
    cache::{Cache, Issue, Key, Token},
    endpoint::TokenEndpoint,
};
use super::{OnBehalf, connect::Connector};
use crate::config::secrets::Secrets;

/// Why a request to a target could not be authenticated. No text of it holds a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A value that the configuration names is not there.
    #[error("a value that it is asked with is missing: {0}")]
    Missing(&'static str),
    /// A value is there and cannot be used.
    #[error("a value that it is asked with cannot be used: {0}")]
    Unusable(&'static str),
    /// The caller's token is needed, and there is none.
    #[error("it is asked in its caller's name, and this request has no caller with a token")]
    NoCaller,
    /// There is no ServiceAccount to ask in the name of.
    #[error("it is asked with a token of the gateway's ServiceAccount, and there is none outside a cluster")]
    NoAccount,
    /// The token endpoint cannot be reached.
    #[error("the token endpoint cannot be reached: {0}")]
    Unreachable(String),
    /// The token endpoint was silent for so many seconds.
    #[error("the token endpoint did not answer within {0} s")]
    Timeout(u64),
    /// The token endpoint refused, by this code (RFC 6749 §5.2) or status.
    #[error("the token endpoint refused: {0}")]
    Refused(String),
    /// The token endpoint answered something else than a token.
    #[error("the token endpoint answered {0}")]
    Answer(&'static str),
}

/// What a target is asked with.
#[derive(Debug)]
pub struct Credentials(Kind);

#[derive(Debug)]
enum Kind {
    Nothing,
    Headers(HeaderMap),
    Tokens(Tokens),
    Broken(Trouble),
}

/// What was added to a request, to tell whether it is worth a second try.
#[derive(Debug)]
pub struct Shown {
    token: Arc<Token>,
    since: Instant,
}

impl Credentials {
    /// What `config` asks for, of the values in `secrets`. What is missing or unusable is said by every request.
    pub fn new(config: &TargetConfig, secrets: &Secrets, connector: &Connector) -> Self {
        Self(match &config.credentials {
            None => Kind::Nothing,
            Some(written) => kind(written, secrets, connector).unwrap_or_else(Kind::Broken),
        })
    }

    /// Credentials of a target that cannot be asked at all.
    pub fn broken(trouble: Trouble) -> Self {
        Self(Kind::Broken(trouble))
    }

    /// The tokens, where it is asked with such: they are waited for, and may have to be renewed.
    pub fn tokens(&self) -> Option<&Tokens> {
        match &self.0 {
            Kind::Tokens(tokens) => Some(tokens),
            Kind::Nothing | Kind::Headers(_) | Kind::Broken(_) => None,
        }
    }

    /// Adds what needs no waiting.
    ///
    /// # Errors
    /// [`Trouble`], where the target cannot be asked at all.
    pub fn add(&self, headers: &mut HeaderMap) -> Result<(), Trouble> {
        match &self.0 {
            Kind::Nothing | Kind::Tokens(_) => Ok(()),
            Kind::Headers(own) => {
                for (name, value) in own {
                    headers.insert(name, value.clone());
                }
                Ok(())
            }
            Kind::Broken(trouble) => Err(trouble.clone()),
        }
    }
}

impl Shown {
    /// Whether the token is older than the request: the target may know better than we that it is worth nothing.
    pub fn is_old(&self) -> bool {
        self.token.issued < self.since
    }
}

/// Tokens and where they come from.
#[derive(Debug)]
pub struct Tokens {
    issuer: Issuer,
    cache: Cache,
}

#[derive(Debug)]
enum Issuer {
    Client(Arc<TokenEndpoint>),
    Exchange(Arc<TokenEndpoint>),
    Account(Arc<AccountTokens>),
}

impl Tokens {
    /// Adds the token of a request on behalf of `of`: another one than was `refused`. Waits for it, within a bound.
    ///
    /// # Errors
    /// [`Trouble`].
    pub async fn add(
        &self,
        of: &OnBehalf,
        headers: &mut HeaderMap,
        refused: Option<&Shown>,
    ) -> Result<Shown, Trouble> {
        let since = Instant::now();
        let token = self.token(of, refused.map(|shown| &shown.token)).await?;
        headers.insert(AUTHORIZATION, token.value.clone());
        Ok(Shown { token, since })
    }

    async fn token(&self, of: &OnBehalf, refused: Option<&Arc<Token>>) -> Result<Arc<Token>, Trouble> {
        match &self.issuer {
            Issuer::Client(endpoint) => {
                let issue = || -> Issue {
                    let endpoint = Arc::clone(endpoint);
                    Box::pin(async move { endpoint.client_credentials().await })
                };
                self.cache.token(Key::Own, refused, issue).await
            }
            Issuer::Exchange(endpoint) => {
                let subject = of.token.as_ref().ok_or(Trouble::NoCaller)?;
                let issue = || -> Issue {
                    let (endpoint, subject) = (Arc::clone(endpoint), Arc::clone(subject));
                    Box::pin(async move { endpoint.exchange(&subject).await })
                };
                self.cache.token(Key::of(subject), refused, issue).await
            }
            Issuer::Account(account) => {
                let issue = || -> Issue {
                    let account = Arc::clone(account);
                    Box::pin(async move { account.token().await })
                };
                self.cache.token(Key::Own, refused, issue).await
            }
        }
    }
}

fn kind(written: &CredentialsConfig, secrets: &Secrets, connector: &Connector) -> Result<Kind, Trouble> {
    let tokens = |issuer| Kind::Tokens(Tokens { issuer, cache: Cache::default() });
    Ok(match written {
        CredentialsConfig::Headers { headers } => {
            let own = headers.iter().map(|(name, key)| header(name, secrets.get(key)));
            Kind::Headers(own.collect::<Result<_, _>>()?)
        }
        CredentialsConfig::ClientCredentials(client) => {
            tokens(Issuer::Client(Arc::new(TokenEndpoint::new(client, secrets, connector)?)))
        }
        CredentialsConfig::TokenExchange(client) => {
            tokens(Issuer::Exchange(Arc::new(TokenEndpoint::new(client, secrets, connector)?)))
        }
        CredentialsConfig::ServiceAccountToken { audience, expiration_seconds } => {
            let account = connector.account().ok_or(Trouble::NoAccount)?;
            tokens(Issuer::Account(Arc::new(AccountTokens::new(account, audience, *expiration_seconds))))
        }
    })
}

fn header(name: &str, value: Option<&[u8]>) -> Result<(HeaderName, HeaderValue), Trouble> {
    let name = name.parse().map_err(|_| Trouble::Unusable("a header's name is none"))?;
    let value = value.ok_or(Trouble::Missing("a header's"))?;
    // Files and `kubectl create secret --from-file` leave a line break behind.
    let mut value = HeaderValue::from_bytes(value.trim_ascii())
        .map_err(|_| Trouble::Unusable("a header's value holds a line break or another control character"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::{shared, target_config};

    fn with(header: &str, secrets: &[(&str, &[u8])]) -> Credentials {
        let credentials =
            CredentialsConfig::Headers { headers: BTreeMap::from([(header.to_owned(), "k".to_owned())]) };
        let config = TargetConfig { credentials: Some(credentials), ..target_config("a") };
        let values = secrets.iter().map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect();
        Credentials::new(&config, &Secrets::new(values), &shared().connector)
    }

    fn shown(credentials: &Credentials) -> Result<HeaderMap, Trouble> {
        let mut headers = HeaderMap::new();
        credentials.add(&mut headers).map(|()| headers)
    }

    #[test]
    fn a_header_is_sent_without_the_line_break_that_files_end_with_and_is_never_shown() {
        let credentials = with("x-api-key", &[("k", b"hunter2\n")]);
        let headers = shown(&credentials).unwrap();
        assert_eq!(headers.get("x-api-key").unwrap(), "hunter2");
        let text = format!("{credentials:?} {headers:?}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_value_that_is_missing_or_unusable_is_said_by_each_request() {
        assert_eq!(shown(&with("a", &[])), Err(Trouble::Missing("a header's")));
        let broken = shown(&with("a", &[("k", b"two\nlines")])).unwrap_err();
        assert!(matches!(broken, Trouble::Unusable(_)) && !broken.to_string().contains("two"), "{broken}");
    }
}
