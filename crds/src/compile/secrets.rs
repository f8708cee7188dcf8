//! Pure: what a gateway and its targets authenticate and trust with, as the configuration names it, and where each
//! value comes from. Sees no value.

use kube::ResourceExt;

use super::attach::uid;
use crate::config::{CredentialsConfig, TlsConfig, TokenClient};
use crate::credentials::{ClientCredentials, Credentials, SecretHeader, ServiceAccountToken, TokenExchange};
use crate::reference::{CaKind, CaReference, SecretReference};
use crate::secrets::{self, SecretSource, SourceKind};
use crate::server::Server;
use crate::{MCPGateway, MCPTarget};

/// What a token of the gateway's own account lives where nothing is written, in seconds.
const ACCOUNT_TOKEN_SECONDS: u32 = 3600;

/// The values that a gateway itself needs.
pub fn sources_of_gateway(gateway: &MCPGateway) -> Vec<SecretSource> {
    let namespace = gateway.namespace().unwrap_or_default();
    let from = |key: &str, name: &str, entry: &str| SecretSource {
        key: key.to_owned(),
        target: None,
        kind: SourceKind::Secret,
        namespace: namespace.clone(),
        name: name.to_owned(),
        entries: vec![entry.to_owned()],
        field: "spec.tls.certificateRef",
    };
    let mut sources = Vec::new();
    if let Some(CaReference { kind, name, key }) =
        gateway.spec.auth.oidc.as_ref().and_then(|oidc| oidc.ca_ref.as_ref())
    {
        let field = "spec.auth.oidc.caRef";
        sources.push(SecretSource { kind: source_kind(*kind), field, ..from(secrets::OIDC_CA, name, key) });
    }
    if let Some(tls) = &gateway.spec.tls {
        let SecretReference { name } = &tls.certificate_ref;
        sources.push(from(secrets::TLS_CERTIFICATE, name, "tls.crt"));
        sources.push(from(secrets::TLS_KEY, name, "tls.key"));
    }
    sources
}

/// The values that a target needs, whatever becomes of it at its gateways.
pub fn sources_of_target(target: &MCPTarget) -> Vec<SecretSource> {
    of_target(target, &uid(target)).sources
}

/// What a target is asked with and trusted by.
#[derive(Debug, Default)]
pub(super) struct TargetSecrets {
    pub(super) credentials: Option<CredentialsConfig>,
    pub(super) tls: TlsConfig,
    pub(super) sources: Vec<SecretSource>,
}

/// Reads `spec.credentials` and `spec.server` of a target that `accept_target` has taken.
pub(super) fn of_target(target: &MCPTarget, uid: &str) -> TargetSecrets {
    let mut found =
        Collecting { uid, namespace: target.namespace().unwrap_or_default(), sources: Vec::new() };
    let credentials = target.spec.credentials.as_ref().map(|written| found.credentials(written));
    let tls = found.tls(&target.spec.server);
    TargetSecrets { credentials, tls, sources: found.sources }
}

struct Collecting<'a> {
    uid: &'a str,
    namespace: String,
    sources: Vec<SecretSource>,
}

impl Collecting<'_> {
    /// Notes where the value of `key` comes from, and gives the key back.
    fn note(
        &mut self,
        key: String,
        kind: SourceKind,
        (name, entries): (&str, &[&str]),
        field: &'static str,
    ) -> String {
        self.sources.push(SecretSource {
            key: key.clone(),
            target: Some(self.uid.to_owned()),
            kind,
            namespace: self.namespace.clone(),
            name: name.to_owned(),
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            field,
        });
        key
    }

    fn credentials(&mut self, written: &Credentials) -> CredentialsConfig {
        // Whichever member is there: that it is the one of the type's name has been seen.
        let Credentials { kind: _, headers, client_credentials, token_exchange, service_account_token } =
            written;
        if let Some(ClientCredentials { token_url, client_secret_ref, scopes, audience }) = client_credentials
        {
            let client = self.token_client(token_url, client_secret_ref, scopes, audience.as_ref());
            return CredentialsConfig::ClientCredentials(client);
        }
        if let Some(TokenExchange { token_url, client_secret_ref, audience, scopes }) = token_exchange {
            let client = self.token_client(token_url, client_secret_ref, scopes, audience.as_ref());
            return CredentialsConfig::TokenExchange(client);
        }
        if let Some(ServiceAccountToken { audience, expiration_seconds }) = service_account_token {
            return CredentialsConfig::ServiceAccountToken {
                audience: audience.clone(),
                expiration_seconds: expiration_seconds.map_or(ACCOUNT_TOKEN_SECONDS, i32::unsigned_abs),
            };
        }
        let headers = headers.iter().map(|SecretHeader { name, secret_ref }| {
            let name = name.to_ascii_lowercase();
            let key = secrets::header(self.uid, &name);
            let at = (secret_ref.name.as_str(), [secret_ref.key.as_str()]);
            (name, self.note(key, SourceKind::Secret, (at.0, &at.1), "spec.credentials.headers"))
        });
        CredentialsConfig::Headers { headers: headers.collect() }
    }

    fn token_client(
        &mut self,
        token_url: &str,
        SecretReference { name }: &SecretReference,
        scopes: &[String],
        audience: Option<&String>,
    ) -> TokenClient {
        let field = "spec.credentials.*.clientSecretRef";
        let (id, secret) = (secrets::client_id(self.uid), secrets::client_secret(self.uid));
        TokenClient {
            token_url: token_url.to_owned(),
            client_id: self.note(id, SourceKind::Secret, (name, &["client_id"]), field),
            client_secret: self.note(secret, SourceKind::Secret, (name, &["client_secret"]), field),
            scopes: scopes.to_vec(),
            audience: audience.cloned(),
        }
    }

    fn tls(&mut self, server: &Server) -> TlsConfig {
        let Server { kind: _, url, service, container: _ } = server;
        let url_ca = url.as_ref().and_then(|url| Some((url.ca_ref.as_ref()?, "spec.server.url.caRef")));
        let service_ca = service
            .as_ref()
            .and_then(|service| Some((service.ca_ref.as_ref()?, "spec.server.service.caRef")));
        let ca = url_ca.or(service_ca).map(|(CaReference { kind, name, key }, field)| {
            self.note(secrets::ca(self.uid), source_kind(*kind), (name, &[key]), field)
        });
        let certificate = url.as_ref().and_then(|url| url.client_certificate_ref.as_ref());
        let client_certificate = certificate.map(|SecretReference { name }| {
            let pair = (name.as_str(), ["tls.crt", "tls.key"]);
            let field = "spec.server.url.clientCertificateRef";
            let key = secrets::client_certificate(self.uid);
            self.note(key, SourceKind::Secret, (pair.0, &pair.1), field)
        });
        TlsConfig { ca, client_certificate }
    }
}

const fn source_kind(kind: CaKind) -> SourceKind {
    match kind {
        CaKind::ConfigMap => SourceKind::ConfigMap,
        CaKind::Secret => SourceKind::Secret,
    }
}
