//! Pure: how a target is trusted, and what it is shown of us: TLS settings from the PEM texts that Secrets hold.

use std::sync::Arc;

use mooring_crds::config::TlsConfig;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::credentials::Trouble;
use crate::config::secrets::Secrets;

/// The settings for connections to a target; none where it is trusted as everybody is.
///
/// # Errors
/// [`Trouble`], where a value is missing or is not what it should be.
pub fn settings(config: &TlsConfig, secrets: &Secrets) -> Result<Option<Arc<ClientConfig>>, Trouble> {
    let TlsConfig { ca, client_certificate } = config;
    if ca.is_none() && client_certificate.is_none() {
        return Ok(None);
    }
    let value = |key: &str, missing| secrets.get(key).ok_or(Trouble::Missing(missing));
    let roots = match ca {
        None => public_roots(),
        Some(key) => bundle(value(key, "the CA bundle")?)?,
    };
    let builder = builder().map_err(|_| Trouble::Unusable("the TLS library refuses its own defaults"))?;
    let builder = builder.with_root_certificates(roots);
    let settings = match client_certificate {
        None => builder.with_no_client_auth(),
        Some(key) => {
            let pem = value(key, "the client certificate")?;
            let chain = certificates(pem).filter(|chain| !chain.is_empty());
            let chain = chain.ok_or(Trouble::Unusable("the client certificate is no PEM"))?;
            let key = PrivateKeyDer::from_pem_slice(pem)
                .map_err(|_| Trouble::Unusable("the client certificate's key is no PEM"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|_| Trouble::Unusable("the client certificate and its key do not belong together"))?
        }
    };
    Ok(Some(Arc::new(settings)))
}

/// The settings' beginning, the same for all.
///
/// # Errors
/// Where the TLS library refuses its own defaults.
pub fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// The public authorities, as the binary carries them.
pub fn public_roots() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

/// The authorities of a bundle, and no others.
fn bundle(pem: &[u8]) -> Result<RootCertStore, Trouble> {
    let mut roots = RootCertStore::empty();
    let certificates = certificates(pem).ok_or(Trouble::Unusable("the CA bundle is no PEM"))?;
    for certificate in certificates {
        roots.add(certificate).map_err(|_| Trouble::Unusable("the CA bundle holds what is no authority"))?;
    }
    if roots.is_empty() { Err(Trouble::Unusable("the CA bundle holds no certificate")) } else { Ok(roots) }
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()
}
