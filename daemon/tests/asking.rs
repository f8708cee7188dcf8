//! How a target is asked, over real connections: with a caller's token exchanged, and over TLS that the test's own
//! authority vouches for. What needs no such peer is tested beside the code.
#![expect(clippy::unwrap_used, reason = "a test panics")]

use std::{collections::BTreeMap, convert::Infallible, net::SocketAddr, sync::Arc};

use e2e::{
    scripted::{Script, ScriptedServer},
    token_endpoint::TokenEndpoint,
};
use http::{Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use moored::{
    config::secrets::Secrets,
    metrics::Metrics,
    target::{OnBehalf, Target, Wire, address::Rules, connect::Connector, exchange::NoAnswer, unary},
};
use mooring_crds::config::{CredentialsConfig, TargetConfig, TlsConfig, TokenClient};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

fn target(url: String, change: impl FnOnce(&mut TargetConfig), secrets: &[(&str, String)]) -> Arc<Target> {
    let mut config =
        TargetConfig { url, alias: "a".to_owned(), uid: "a".to_owned(), ..TargetConfig::default() };
    change(&mut config);
    let values: BTreeMap<_, _> =
        secrets.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into_bytes())).collect();
    let connector = Connector::new(Rules { loopback: true, refused: Vec::new() }).unwrap();
    let metrics = Metrics::new().unwrap().target("tools", "a");
    Target::new(config, &Secrets::new(values), &connector, metrics).unwrap()
}

async fn ask(target: &Target, token: Option<&str>) -> Result<String, String> {
    let of = Arc::new(OnBehalf { token: token.map(Into::into), ..OnBehalf::default() });
    let reply = unary::ask(target, &Wire::first(&of), "ping", "{}").await;
    reply.map(|reply| reply.result.get().to_owned()).map_err(|none: NoAnswer| none.failure().to_string())
}

#[tokio::test]
async fn a_callers_token_is_exchanged_once_and_never_reaches_the_target() {
    let (server, endpoint) =
        (ScriptedServer::start(Script::default()).await, TokenEndpoint::start().await.unwrap());
    server.change(|script| script.sessions = e2e::scripted::Sessions::Withheld);
    let client = TokenClient {
        token_url: endpoint.url(),
        client_id: "id".to_owned(),
        client_secret: "secret".to_owned(),
        audience: Some("a".to_owned()),
        ..TokenClient::default()
    };
    let secrets = [("id", "me".to_owned()), ("secret", "s".to_owned())];
    let exchange = |config: &mut TargetConfig| {
        config.credentials = Some(CredentialsConfig::TokenExchange(client));
    };
    let target = target(server.url(), exchange, &secrets);
    for caller in ["alices", "bobs", "alices"] {
        assert_eq!(ask(&target, Some(caller)).await, Ok("{}".to_owned()));
    }
    let sent: Vec<_> =
        server.requests().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-1"]);
    let forms: Vec<_> = endpoint.asked().into_iter().map(|asked| asked.form).collect();
    assert_eq!(forms.len(), 2, "{forms:?}");
    assert!(
        forms[0].contains("subject_token=alices&") && forms[1].contains("subject_token=bobs&"),
        "{forms:?}"
    );
    assert!(!format!("{:?}", server.requests()).contains("alices"));

    let nobody = ask(&target, None).await.unwrap_err();
    assert!(nobody.contains("in its caller's name"), "{nobody}");
    assert_eq!(server.requests().len(), 3, "without a caller nothing is asked");
}

/// An authority of the test's own.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key, PEM, in one.
fn certificate(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    certificate.pem() + &key.serialize_pem()
}

/// A server that answers every request alike, over TLS, to whom the authority vouches for. Ends with the tasks.
async fn serve(tasks: &mut JoinSet<()>, authority: &CertifiedIssuer<'static, KeyPair>) -> SocketAddr {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let pem = certificate(authority, "localhost");
    let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that is not vouched for is one that the test expects to fail.
            let Ok(stream) = acceptor.accept(socket).await else { continue };
            let service = service_fn(|_| async {
                let body = Full::new(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
                let response = Response::builder().header(CONTENT_TYPE, "application/json").body(body);
                Ok::<_, Infallible>(response.unwrap())
            });
            drop(
                http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service).await,
            );
        }
    });
    address
}

#[tokio::test]
async fn a_server_is_trusted_by_its_bundle_alone_and_is_shown_the_certificate() {
    let (ours, other, mut tasks) = (authority("ours"), authority("other"), JoinSet::new());
    let address = serve(&mut tasks, &ours).await;
    let url = || format!("https://localhost:{}/mcp", address.port());
    let with = |ca: Option<&str>, pair: Option<&str>| {
        let tls = TlsConfig { ca: ca.map(str::to_owned), client_certificate: pair.map(str::to_owned) };
        let secrets = [
            ("ours", ours.pem()),
            ("others", other.pem()),
            ("pair", certificate(&ours, "gateway")),
            ("foreign pair", certificate(&other, "gateway")),
            ("nothing", "no certificate".to_owned()),
        ];
        target(url(), |config| config.tls = tls, &secrets)
    };
    assert_eq!(ask(&with(Some("ours"), Some("pair")), None).await, Ok("{}".to_owned()));
    for (ca, pair, says) in [
        (None, Some("pair"), "UnknownIssuer"),
        (Some("others"), Some("pair"), "UnknownIssuer"),
        (Some("missing"), None, "the CA bundle"),
        (Some("nothing"), None, "the CA bundle holds no certificate"),
        (Some("ours"), Some("nothing"), "the client certificate is no PEM"),
    ] {
        let said = ask(&with(ca, pair), None).await.unwrap_err();
        assert!(said.contains(says), "{ca:?} {pair:?}: {said}");
    }
    for pair in [None, Some("foreign pair")] {
        let said = ask(&with(Some("ours"), pair), None).await.unwrap_err();
        assert!(said.contains("cannot be reached"), "{pair:?}: {said}");
    }
}
