//! A listener with certificates made here: what it shows, when it shows another one, and whom it turns away.

use std::{collections::BTreeMap, net::SocketAddr};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    pki_types::ServerName,
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{TlsConnector, client};

use super::*;
use crate::{
    gateway::Gateway,
    listener::{Routes, serve},
    testing::{gateway_config, shared},
};

/// A certificate for localhost, and the secrets that hold it.
fn certificate() -> (CertificateDer<'static>, Secrets) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (cert.der().clone(), secrets(&cert.pem(), &signing_key.serialize_pem()))
}

fn secrets(certificate: &str, key: &str) -> Secrets {
    let pairs = [(TLS_CERTIFICATE, certificate), (TLS_KEY, key)];
    Secrets::new(BTreeMap::from(pairs.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))))
}

fn config() -> GatewayConfig {
    GatewayConfig { tls: true, ..gateway_config() }
}

async fn listening() -> (Arc<Gateway>, SocketAddr) {
    let shared = shared();
    let tasks = shared.tasks.clone();
    let gateway = Gateway::start(config(), Secrets::default(), shared);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tasks.spawn(serve(socket, Routes::one(Arc::clone(&gateway)), tasks.clone()));
    (gateway, address)
}

/// Connects, trusting this certificate alone.
async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
) -> io::Result<client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Sends a request that is refused, and returns the answer's status line.
async fn ask(stream: &mut client::TlsStream<TcpStream>) -> String {
    stream.write_all(b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut read = vec![0; 4096];
    let length = stream.read(&mut read).await.unwrap();
    let text = String::from_utf8_lossy(&read[..length]).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_open_ones_go_on() {
    let (gateway, address) = listening().await;
    let ((old, old_secrets), (new, new_secrets)) = (certificate(), certificate());
    gateway.certificates.take(&config(), &old_secrets);
    let mut open = connect(address, &old, &TLS13).await.unwrap();
    assert_eq!(open.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_ref()));
    assert_eq!(ask(&mut open).await, "HTTP/1.1 400 Bad Request");
    gateway.certificates.take(&config(), &new_secrets);
    assert_eq!(ask(&mut open).await, "HTTP/1.1 400 Bad Request");
    assert!(connect(address, &old, &TLS13).await.is_err(), "the old one is not shown any more");
    let mut fresh = connect(address, &new, &TLS12).await.unwrap();
    assert_eq!(ask(&mut fresh).await, "HTTP/1.1 400 Bad Request");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_leaves_the_one_before_it() {
    let (gateway, address) = listening().await;
    let ((good, good_secrets), (_, other_secrets)) = (certificate(), certificate());
    let of = |secrets: &Secrets, key| String::from_utf8(secrets.get(key).unwrap().to_vec()).unwrap();
    gateway.certificates.take(&config(), &good_secrets);
    for bad in [
        Secrets::default(),
        secrets("no PEM", "no PEM"),
        secrets(&of(&good_secrets, TLS_CERTIFICATE), "no PEM"),
        // The key of another certificate.
        secrets(&of(&good_secrets, TLS_CERTIFICATE), &of(&other_secrets, TLS_KEY)),
    ] {
        assert!(server(&bad).is_err(), "{bad:?}");
        gateway.certificates.take(&config(), &bad);
        assert!(connect(address, &good, &TLS13).await.is_ok(), "{bad:?}");
    }
}

#[tokio::test]
async fn without_a_certificate_connections_are_refused_and_the_process_is_unready_until_there_is_one() {
    let (gateway, address) = listening().await;
    let (readiness, tasks) = (Readiness::default(), gateway.shared.tasks.clone());
    tasks.spawn(Arc::clone(&gateway.certificates).hold_unready(readiness.clone(), tasks.clone()));
    assert_eq!(readiness.missing().as_deref(), Some("waiting for certificate"));
    let (good, good_secrets) = certificate();
    assert!(connect(address, &good, &TLS13).await.is_err());
    let failed = &gateway.metrics.limits.handshakes_failed;
    assert_eq!(failed.get(), 1);
    gateway.certificates.take(&config(), &good_secrets);
    assert!(connect(address, &good, &TLS13).await.is_ok());
    let ready = async {
        while readiness.missing().is_some() {
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(Duration::from_secs(10), ready).await.is_ok(), "it stayed unready");
}

// Case 009.
#[tokio::test]
async fn a_client_that_is_no_tls_client_leaves_nothing_behind() {
    let (gateway, address) = listening().await;
    let (good, good_secrets) = certificate();
    gateway.certificates.take(&config(), &good_secrets);
    let idle = gateway.shared.tasks.running();
    for _ in 0..200 {
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        // It may be reset: what was sent is not read to its end.
        let read = plain.read_to_end(&mut answer).await;
        assert!(read.is_err() || !answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let ended = async {
        while gateway.shared.tasks.running() > idle {
            tokio::task::yield_now().await;
        }
    };
    assert!(timeout(Duration::from_secs(10), ended).await.is_ok(), "connections are still served");
    assert_eq!(gateway.metrics.limits.handshakes_failed.get(), 200);
    assert!(connect(address, &good, &TLS13).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_come_is_given_up() {
    let certificates = Certificates::default();
    certificates.take(&config(), &certificate().1);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = TcpStream::connect(socket.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = socket.accept().await.unwrap();
    let metrics = crate::metrics::Metrics::new().unwrap().gateway("tools");
    assert!(certificates.accept(accepted, &metrics.limits).await.is_none());
    assert_eq!(metrics.limits.handshakes_failed.get(), 1);
    drop(silent);
}
