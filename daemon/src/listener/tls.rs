//! TLS of the listener: certificate and key from the gateway's secrets, taken up anew whenever these change. Open
//! connections go on with what they began with. No key leaves this file.

use std::{io, sync::Arc, time::Duration};

use mooring_crds::config::GatewayConfig;
use mooring_crds::secrets::{TLS_CERTIFICATE, TLS_KEY};
use mooring_runtime::{Readiness, Tasks, ready::Pending};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{config::secrets::Secrets, metrics::LimitMetrics};

/// How long a handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadCertificate {
    #[error("the Secret of tls.certificateRef has no {0}")]
    Missing(&'static str),
    #[error("{0} is not PEM of what it should be")]
    Pem(&'static str),
    #[error(transparent)]
    Key(#[from] rustls::Error),
}

/// Whether a listener speaks TLS, and with what.
#[derive(Debug)]
pub struct Certificates(watch::Sender<State>);

/// What the listener does with a connection.
#[derive(Debug)]
enum State {
    /// Plain HTTP.
    Plain,
    /// TLS.
    Tls {
        server: Arc<ServerConfig>,
        /// The certificate as it came, to tell whether a new one is another.
        pem: Box<[u8]>,
    },
    /// TLS, and there is no certificate yet: connections are refused.
    Missing,
}

/// How a connection is to be served.
#[derive(Debug)]
pub(super) enum Accepted {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Default for Certificates {
    /// In plain HTTP, until [`Certificates::take`] says otherwise.
    fn default() -> Self {
        Self(watch::Sender::new(State::Plain))
    }
}

impl Certificates {
    /// Takes up what a configuration says: new connections see it. Where the new certificate cannot be used, the one
    /// before it stays.
    pub fn take(&self, config: &GatewayConfig, secrets: &Secrets) {
        if !config.tls {
            self.0.send_replace(State::Plain);
            return;
        }
        let pem = secrets.get(TLS_CERTIFICATE).unwrap_or_default();
        let (known, has_one) = match &*self.0.borrow() {
            State::Tls { pem: known, .. } => (**known == *pem, true),
            State::Plain | State::Missing => (false, false),
        };
        match server(secrets) {
            Ok(_) if known => {}
            Ok(server) => {
                tracing::info!(gateway = config.name, "certificate taken");
                self.0.send_replace(State::Tls { server, pem: pem.into() });
            }
            Err(error) if has_one => {
                tracing::error!(gateway = config.name, %error, "the certificate stays as it is");
            }
            Err(error) => {
                tracing::error!(gateway = config.name, %error, "no certificate: connections are refused");
                self.0.send_replace(State::Missing);
            }
        }
    }

    /// Makes of a connection what the configuration of now says; none where it cannot be served.
    pub(super) async fn accept(&self, stream: TcpStream, metrics: &LimitMetrics) -> Option<Accepted> {
        let server = match &*self.0.borrow() {
            State::Plain => return Some(Accepted::Plain(stream)),
            State::Missing => None,
            State::Tls { server, .. } => Some(Arc::clone(server)),
        };
        let handshake = async {
            let server = server.ok_or_else(|| io::Error::other("there is no certificate"))?;
            timeout(HANDSHAKE_TIME, TlsAcceptor::from(server).accept(stream)).await?
        };
        handshake
            .await
            .inspect_err(|error| {
                tracing::debug!(%error, "handshake");
                metrics.handshakes_failed.inc();
            })
            .ok()
            .map(|stream| Accepted::Tls(Box::new(stream)))
    }

    /// Keeps the process unready for as long as there is no certificate where there must be one: from now on, and in
    /// the work that is returned.
    pub fn hold_unready(
        self: Arc<Self>,
        readiness: Readiness,
        tasks: Tasks,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mut states = self.0.subscribe();
        let missing = move |state: &State| -> Option<Pending> {
            matches!(state, State::Missing).then(|| readiness.wait_for("certificate"))
        };
        let mut pending = missing(&states.borrow_and_update());
        async move {
            while let Some(Ok(())) = tasks.drain.run_until_cancelled(states.changed()).await {
                // The name must be free before it is used again.
                drop(pending.take());
                pending = missing(&states.borrow_and_update());
            }
            drop(self);
        }
    }
}

/// Reads the chain and the key, holds them against each other, and makes a server of them: TLS 1.2 and 1.3, HTTP/1.1.
fn server(secrets: &Secrets) -> Result<Arc<ServerConfig>, BadCertificate> {
    let pem = |key| secrets.get(key).ok_or(BadCertificate::Missing(key));
    let (chain, key) = (pem(TLS_CERTIFICATE)?, pem(TLS_KEY)?);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or(BadCertificate::Pem(TLS_CERTIFICATE))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| BadCertificate::Pem(TLS_KEY))?;
    let mut server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
