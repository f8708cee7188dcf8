//! Fetches a provider's keys: OpenID Connect Discovery 1.0 §4 and the JWK set that it names, or the cluster's own from
//! its API server. Goes only where requests may go (DESIGN §8), follows no redirect, and reads no more than it must.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header::ACCEPT};
use http_body_util::{BodyExt, Limited};
use mooring_crds::requests_may_go_to;
use serde::Deserialize;

use super::keys::Keys;
use crate::target::{
    body::Outgoing,
    connect::{Connector, Forbidden, Pool},
};

/// The largest document that is read, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Where a provider describes itself, below its issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";
/// Where an API server has its keys.
const CLUSTER_KEYS: &str = "/openid/v1/jwks";

/// Where keys come from.
#[derive(Clone)]
pub(super) enum Source {
    /// An OpenID Connect provider.
    Provider {
        /// Its issuer, as in tokens.
        issuer: String,
        /// Whom to trust when asking it, PEM; none means public authorities.
        ca: Option<Arc<[u8]>>,
        /// How to reach it; none where its authorities cannot be read.
        http: Option<Pool>,
        /// What is refused on the way.
        connector: Box<Connector>,
    },
    /// The cluster's API server.
    Cluster(kube::Client),
}

/// Why there are no keys. Holds nothing that a provider said but what the library tells of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// No answer in time.
    #[error("no answer in time")]
    Late,
    /// An authority's certificate cannot be read.
    #[error("the authorities of auth.oidc.caRef cannot be read")]
    Ca,
    /// A URL that cannot be asked.
    #[error("{0} is where requests may not go")]
    Url(String),
    /// An address that may not be asked.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// No connection, or one that broke.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// Another status than 200.
    #[error("{0} answered HTTP {1}")]
    Status(Uri, StatusCode),
    /// Not the document that it should be.
    #[error("{0} is not what it should be: {1}")]
    Document(String, serde_json::Error),
    /// A description of somebody else.
    #[error("it says that its issuer is {0}")]
    Issuer(String),
    /// The API server did not answer.
    #[error("the API server: {0}")]
    Cluster(#[from] kube::Error),
}

#[derive(Deserialize)]
struct Description {
    issuer: String,
    jwks_uri: String,
}

impl Source {
    /// A provider, trusted by `ca` where that is given.
    pub(super) fn provider(issuer: &str, ca: Option<&[u8]>, connector: &Connector) -> Self {
        let trusting = match ca {
            None => Some(connector.clone()),
            Some(pem) => connector.trusting(pem).ok(),
        };
        Self::Provider {
            issuer: issuer.to_owned(),
            ca: ca.map(Arc::from),
            http: trusting.map(|connector| connector.pool(CONNECT_TIME)),
            connector: Box::new(connector.clone()),
        }
    }

    /// Whether both lead to one provider in one way.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Provider { issuer, ca, .. }, Self::Provider { issuer: other, ca: other_ca, .. }) => {
                (issuer, ca) == (other, other_ca)
            }
            (Self::Cluster(_), Self::Cluster(_)) => true,
            (Self::Provider { .. }, Self::Cluster(_)) | (Self::Cluster(_), Self::Provider { .. }) => false,
        }
    }

    /// Asks for the keys. The caller bounds the wait.
    pub(super) async fn fetch(&self) -> Result<Keys, FetchError> {
        match self {
            Self::Provider { issuer, ca: _, http, connector } => {
                let http = http.as_ref().ok_or(FetchError::Ca)?;
                let at = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
                let said: Description = read(&at, &get(http, connector, &at).await?)?;
                // Discovery §4.3: exactly the issuer that was asked for.
                if said.issuer != *issuer {
                    return Err(FetchError::Issuer(said.issuer));
                }
                let keys = get(http, connector, &said.jwks_uri).await?;
                Keys::parse(issuer, &keys).map_err(|error| FetchError::Document(said.jwks_uri, error))
            }
            Self::Cluster(client) => {
                let ask =
                    |path: &str| client.request_text(Request::get(path).body(Vec::new()).unwrap_or_default());
                let said: Description = read(DISCOVERY, ask(DISCOVERY).await?.as_bytes())?;
                // Asked of the API server itself: what the description names may be outside, and need not be reachable.
                let keys = ask(CLUSTER_KEYS).await?;
                Keys::parse(&said.issuer, keys.as_bytes())
                    .map_err(|error| FetchError::Document(CLUSTER_KEYS.to_owned(), error))
            }
        }
    }
}

fn read<'d, T: Deserialize<'d>>(at: &str, document: &'d [u8]) -> Result<T, FetchError> {
    serde_json::from_slice(document).map_err(|error| FetchError::Document(at.to_owned(), error))
}

async fn get(http: &Pool, connector: &Connector, url: &str) -> Result<Bytes, FetchError> {
    let bad = || FetchError::Url(url.to_owned());
    requests_may_go_to(url, connector.allows_loopback()).map_err(|_| bad())?;
    let uri: Uri = url.parse().map_err(|_| bad())?;
    connector.check_literal(uri.host().ok_or_else(bad)?)?;
    let mut request = Request::new(Outgoing::default());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(ACCEPT, http::HeaderValue::from_static("application/json"));
    let unreachable = |error: &dyn fmt::Display| FetchError::Unreachable(error.to_string());
    let answer = http.request(request).await.map_err(|error| unreachable(&innermost(&error)))?;
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Status(uri, answer.status()));
    }
    let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| unreachable(&error))
}

/// The cause that helps.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider { issuer, .. } => f.write_str(issuer),
            Self::Cluster(_) => f.write_str("the cluster"),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}
