//! Tests of whole providers, asked over real connections: two side by side, each with rules of its own, and one that
//! only a bundle of the manifest's vouches for.

use std::{collections::BTreeMap, convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mooring_crds::config::{OidcConfig, ServiceAccountConfig};
use mooring_runtime::Clock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::testing::shared;

/// The issuer of the cluster: its tokens name it, and nobody is asked there.
const CLUSTER: &str = "https://kubernetes.default.svc.cluster.local";
const CA: &str = "oidc.ca";

/// What a provider answers to every question: who it is, and its keys.
fn said(path: &str, issuer: &str, keys: &Value) -> String {
    let description = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
    if path.ends_with("openid-configuration") { description.to_string() } else { keys.to_string() }
}

/// A provider of `signer`'s key, in plain HTTP or as `tls` says. Its issuer is where it is, unless it has a name of its
/// own. Ends with the tasks.
async fn provider(
    tasks: &mut JoinSet<()>,
    signer: &Signer,
    named: Option<&'static str>,
    tls: Option<TlsAcceptor>,
) -> (SocketAddr, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let issuer = named.map_or_else(|| format!("{scheme}://localhost:{}", address.port()), str::to_owned);
    let (keys, at) = (json!({"keys": [signer.jwk()]}), issuer.clone());
    tasks.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let answer = service_fn(|request: Request<Incoming>| {
                let body = said(request.uri().path(), &at, &keys);
                async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body)))) }
            });
            let mut connection = http1::Builder::new();
            connection.keep_alive(false);
            match &tls {
                None => drop(connection.serve_connection(TokioIo::new(socket), answer).await),
                Some(tls) => {
                    // Who does not trust us leaves, which is what some tests are about.
                    let Ok(stream) = tls.accept(socket).await else { continue };
                    drop(connection.serve_connection(TokioIo::new(stream), answer).await);
                }
            }
        }
    });
    (address, issuer)
}

fn oidc(issuer: &str, ca: Option<&str>) -> OidcConfig {
    OidcConfig {
        issuer: issuer.to_owned(),
        audiences: vec!["people".to_owned()],
        required_scopes: vec!["tools".to_owned()],
        ca: ca.map(str::to_owned),
        ..OidcConfig::default()
    }
}

fn person(issuer: &str) -> Value {
    json!({"iss": issuer, "sub": "alice", "aud": "people", "scope": "tools", "exp": 4_000_000_000_u64})
}

fn account(issuer: &str) -> Value {
    json!({
        "iss": issuer, "sub": "system:serviceaccount:ci:bot", "aud": "robots", "exp": 4_000_000_000_u64,
        "kubernetes.io": {"namespace": "ci", "serviceaccount": {"name": "bot", "uid": "u1"}},
    })
}

async fn told(authenticator: &Authenticator, token: &str) -> Result<Principal, Fault> {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]);
    let caller = authenticator.authenticate(&headers, Clock::system().now()).await?;
    Ok(caller.principal)
}

#[tokio::test]
async fn two_issuers_are_taken_side_by_side_each_by_its_own_rules_and_none_speaks_for_the_other() {
    let (ours, clusters) = (signer(Algorithm::ES256, "one"), signer(Algorithm::ES256, "two"));
    let mut tasks = JoinSet::new();
    let (_, issuer) = provider(&mut tasks, &ours, None, None).await;
    let (api, _) = provider(&mut tasks, &clusters, Some(CLUSTER), None).await;
    let client = kube::Config::new(format!("http://{api}").parse().unwrap());
    let mut shared = shared();
    shared.cluster = Some(Cluster(kube::Client::try_from(client).unwrap()));
    let accounts = ServiceAccountConfig {
        audiences: vec!["robots".to_owned()],
        allowed: vec![("ci".to_owned(), String::new())],
    };
    let auth = AuthConfig {
        oidc: Some(oidc(&issuer, None)),
        service_account: Some(accounts),
        ..AuthConfig::default()
    };
    let both = Authenticator::new(&auth, &Secrets::default(), None, &shared);

    let alice = Principal::Oidc { issuer: issuer.as_str().into(), subject: "alice".into() };
    assert_eq!(told(&both, &ours.token(&person(&issuer))).await.unwrap(), alice);
    let bot = Principal::ServiceAccount { namespace: "ci".into(), name: "bot".into(), uid: "u1".into() };
    assert_eq!(told(&both, &clusters.token(&account(CLUSTER))).await.unwrap(), bot);
    assert_eq!(both.cluster_issuer().as_deref(), Some(CLUSTER));

    // What one asks for is not enough for the other, and not asked of the other.
    let unscoped = {
        let mut claims = person(&issuer);
        claims["scope"] = json!("other");
        told(&both, &ours.token(&claims)).await
    };
    assert!(matches!(unscoped, Err(Fault::InsufficientScope)), "{unscoped:?}");
    for (signer, claims) in [
        // For the other's audience, or of the other's kind.
        (
            &ours,
            json!({"iss": issuer, "sub": "alice", "aud": "robots", "scope": "tools", "exp": 4_000_000_000_u64}),
        ),
        (&clusters, json!({"iss": CLUSTER, "sub": "alice", "aud": "robots", "exp": 4_000_000_000_u64})),
        // In the other's name, whatever else it says.
        (&ours, account(CLUSTER)),
        (&clusters, person(&issuer)),
        // Under the other's key id as well.
        (&Signer { id: "two", ..signer_like(&ours) }, account(CLUSTER)),
        (&Signer { id: "one", ..signer_like(&clusters) }, person(&issuer)),
        // In nobody's.
        (&ours, person("https://elsewhere.example")),
    ] {
        let refused = told(&both, &signer.token(&claims)).await;
        assert!(matches!(refused, Err(Fault::InvalidToken(_))), "{claims}: {refused:?}");
    }
}

/// The same key again.
fn signer_like(of: &Signer) -> Signer {
    Signer { key: of.key.clone(), algorithm: of.algorithm, id: of.id }
}

/// An authority of the test's own.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Shows a certificate for localhost that `authority` vouches for.
fn acceptor(authority: &CertifiedIssuer<'static, KeyPair>) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let chain: Vec<CertificateDer<'_>> = vec![params.signed_by(&key, authority).unwrap().der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(tls))
}

#[tokio::test]
async fn a_provider_that_only_ca_ref_vouches_for_is_asked_and_without_it_has_no_keys() {
    let (key, ours, other) = (signer(Algorithm::ES256, "one"), authority("ours"), authority("other"));
    let mut tasks = JoinSet::new();
    let (_, issuer) = provider(&mut tasks, &key, None, Some(acceptor(&ours))).await;
    let token = key.token(&person(&issuer));
    let shared = shared();
    let trusting = |ca: Option<&str>, bundle: &str| {
        let auth = AuthConfig { oidc: Some(oidc(&issuer, ca)), ..AuthConfig::default() };
        let secrets = Secrets::new(BTreeMap::from([(CA.to_owned(), bundle.as_bytes().to_vec())]));
        Authenticator::new(&auth, &secrets, None, &shared)
    };
    let alice = Principal::Oidc { issuer: issuer.as_str().into(), subject: "alice".into() };
    let (ours, other) = (ours.pem(), other.pem());
    assert_eq!(told(&trusting(Some(CA), &ours), &token).await.unwrap(), alice);
    // Without it, with another's, with none behind the name, and with what is no bundle.
    for (ca, bundle) in
        [(None, &*ours), (Some(CA), &*other), (Some("missing"), &*ours), (Some(CA), "no certificate")]
    {
        let refused = told(&trusting(ca, bundle), &token).await;
        assert!(matches!(refused, Err(Fault::KeysAway)), "{ca:?}: {refused:?}");
    }
}
