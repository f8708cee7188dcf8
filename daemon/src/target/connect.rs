//! How connections to targets are made: resolved, judged by address, TCP_NODELAY, TLS where the URL says so.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{HttpConnector, dns::Name},
    },
    rt::{TokioExecutor, TokioTimer},
};
use mooring_runtime::Tasks;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tower_service::Service;

use super::{
    address::{Refused, Rules, refusal},
    body::Outgoing,
    credentials::Account,
    trust,
};
use crate::fault::TargetFailure;

/// A pooled client for one target.
pub type Pool = Client<HttpsConnector<Dial>, Outgoing>;

/// Idle connections kept for one target.
pub(super) const IDLE_CONNECTIONS: usize = 256;
/// How long one is kept; shorter than servers keep theirs, Node's and uvicorn's 5 s among them.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// TCP keep-alive, so that a peer that vanished behind an open stream is noticed.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// What all targets' connections share.
#[derive(Debug, Clone)]
pub struct Connector {
    tls: Arc<rustls::ClientConfig>,
    rules: Arc<Rules>,
    /// What runs beside requests: the processes of targets among it.
    tasks: Tasks,
    account: Option<Account>,
}

/// A bundle of certificate authorities that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no certificate authority can be read")]
pub struct BadAuthorities;

/// An address that requests may not go to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is {1}")]
pub struct Forbidden(pub IpAddr, pub Refused);

impl Connector {
    /// Reads the roots of trust that the binary carries.
    ///
    /// # Errors
    /// Where the TLS library refuses its own defaults.
    pub fn new(rules: Rules) -> Result<Self, rustls::Error> {
        let tls = trust::builder()?.with_root_certificates(trust::public_roots()).with_no_client_auth();
        Ok(Self { tls: Arc::new(tls), rules: Arc::new(rules), account: None, tasks: Tasks::default() })
    }

    /// The same, with an account whose tokens targets may be asked with.
    #[must_use]
    pub fn with_account(self, account: Account) -> Self {
        Self { account: Some(account), ..self }
    }

    /// The account that this daemon runs as; none outside a cluster.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// With what runs beside requests on these tasks, whose shutdown ends it.
    #[must_use]
    pub fn on(mut self, tasks: &Tasks) -> Self {
        self.tasks = tasks.clone();
        self
    }

    /// What runs beside requests.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// As this one, but trusting the authorities of `pem` and no other.
    ///
    /// # Errors
    /// [`BadAuthorities`], where there is none in it that can be read.
    pub fn trusting(&self, pem: &[u8]) -> Result<Self, BadAuthorities> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(|_| BadAuthorities)?).map_err(|_| BadAuthorities)?;
        }
        if roots.is_empty() {
            return Err(BadAuthorities);
        }
        let tls = trust::builder().map_err(|_| BadAuthorities)?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: Arc::new(tls), ..self.clone() })
    }

    /// Whether requests may go to this machine.
    pub fn allows_loopback(&self) -> bool {
        self.rules.loopback
    }

    /// Judges an address that a URL names literally: no resolver sees it.
    ///
    /// # Errors
    /// [`Forbidden`].
    pub fn check_literal(&self, host: &str) -> Result<(), Forbidden> {
        let Ok(address) = host.trim_matches(['[', ']']).parse() else { return Ok(()) };
        refusal(address, &self.rules).map_or(Ok(()), |why| Err(Forbidden(address, why)))
    }

    /// A pool of its own for one target, so that none waits behind another's connections.
    pub fn pool(&self, connect_timeout: Duration) -> Pool {
        self.pool_with(None, None, connect_timeout)
    }

    /// The same, with TLS settings of the target's own, and to one address whatever the URL's name leads to.
    pub fn pool_with(
        &self,
        tls: Option<&Arc<rustls::ClientConfig>>,
        at: Option<SocketAddr>,
        connect_timeout: Duration,
    ) -> Pool {
        let mut http = HttpConnector::new_with_resolver(Resolver { rules: Arc::clone(&self.rules) });
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(connect_timeout));
        http.set_keepalive(Some(TCP_KEEPALIVE));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config((**tls.unwrap_or(&self.tls)).clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(Dial { http, at });
        Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(https)
    }
}

/// Finds the cause that helps: a refused address, or the innermost error.
pub(crate) fn describe(error: &hyper_util::client::legacy::Error) -> TargetFailure {
    let mut cause: &(dyn Error + 'static) = error;
    loop {
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && let Some(forbidden) = io.get_ref().and_then(|inner| inner.downcast_ref::<Forbidden>())
        {
            return TargetFailure::Forbidden(forbidden.1.to_string());
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => return TargetFailure::Unreachable(cause.to_string()),
        }
    }
}

/// Makes connections: where the URL leads to, or to one address in its place. The URL's name is Host and SNI all the same.
#[derive(Debug, Clone)]
pub struct Dial {
    http: HttpConnector<Resolver>,
    at: Option<SocketAddr>,
}

impl Service<Uri> for Dial {
    type Response = <HttpConnector<Resolver> as Service<Uri>>::Response;
    type Error = <HttpConnector<Resolver> as Service<Uri>>::Error;
    type Future = <HttpConnector<Resolver> as Service<Uri>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(context)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let at = self.at.and_then(|at| format!("http://{at}/").parse().ok());
        self.http.call(at.unwrap_or(url))
    }
}

/// Resolves names by the system and drops the addresses that are refused.
#[derive(Debug, Clone)]
pub struct Resolver {
    rules: Arc<Rules>,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let rules = Arc::clone(&self.rules);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut refused = None;
            let allowed: Vec<SocketAddr> = found
                .filter(|address| match refusal(address.ip(), &rules) {
                    None => true,
                    Some(why) => {
                        refused = Some(Forbidden(address.ip(), why));
                        false
                    }
                })
                .collect();
            match refused {
                Some(forbidden) if allowed.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::PermissionDenied, forbidden))
                }
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}
