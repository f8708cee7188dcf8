//! One question to a token endpoint and its answer, bounded in time and size. Follows no redirect.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Limited};
use mooring_crds::config::TokenClient;
use tokio::time::{Instant, timeout};

use super::{Trouble, cache::Token, grant};
use crate::{
    config::secrets::Secrets,
    fault::TargetFailure,
    target::{
        body::Outgoing,
        connect::{Connector, Pool, describe},
    },
};

/// How long a token endpoint may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection to one may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The largest answer of one.
const ANSWER_BYTES: usize = 64 << 10;

/// A token endpoint and what we are there.
pub(super) struct TokenEndpoint {
    client: TokenClient,
    uri: Uri,
    authorization: HeaderValue,
    pool: Pool,
}

impl fmt::Debug for TokenEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenEndpoint").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl TokenEndpoint {
    pub(super) fn new(
        client: &TokenClient,
        secrets: &Secrets,
        connector: &Connector,
    ) -> Result<Self, Trouble> {
        let uri: Uri =
            client.token_url.parse().map_err(|_| Trouble::Unusable("the token endpoint's URL is none"))?;
        let host = uri.host().ok_or(Trouble::Unusable("the token endpoint's URL has no host"))?;
        connector.check_literal(host).map_err(|forbidden| Trouble::Unreachable(forbidden.to_string()))?;
        let id = secrets.get(&client.client_id).ok_or(Trouble::Missing("the client_id"))?;
        let secret = secrets.get(&client.client_secret).ok_or(Trouble::Missing("the client_secret"))?;
        let authorization = grant::basic(id, secret)?;
        let pool = connector.pool(CONNECT_TIME);
        Ok(Self { client: client.clone(), uri, authorization, pool })
    }

    /// A token of our own.
    pub(super) async fn client_credentials(&self) -> Result<Token, Trouble> {
        self.ask(grant::form(&self.client, None)).await
    }

    /// A token in the name of whom `subject` was issued to.
    pub(super) async fn exchange(&self, subject: &str) -> Result<Token, Trouble> {
        self.ask(grant::form(&self.client, Some(subject))).await
    }

    async fn ask(&self, form: String) -> Result<Token, Trouble> {
        let issued = Instant::now();
        let asking = async {
            let mut request = Request::new(Outgoing::from(Bytes::from(form)));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = self.uri.clone();
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, self.authorization.clone());
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let answer = self.pool.request(request).await.map_err(|error| unreachable(&error))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await;
            let body = body.map_err(|_| Trouble::Answer("something that breaks off or is too large"))?;
            grant::read(head.status, &body.to_bytes())
        };
        let (value, lifetime) =
            timeout(PATIENCE, asking).await.unwrap_or(Err(Trouble::Timeout(PATIENCE.as_secs())))?;
        Ok(Token::new(value, issued, lifetime))
    }
}

fn unreachable(error: &hyper_util::client::legacy::Error) -> Trouble {
    let failure = describe(error);
    let (TargetFailure::Unreachable(why) | TargetFailure::Forbidden(why)) = &failure else {
        return Trouble::Unreachable(failure.to_string());
    };
    Trouble::Unreachable(why.clone())
}
