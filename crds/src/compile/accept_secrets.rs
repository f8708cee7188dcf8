//! Pure: whether credentials and header lists of a target can be served, and what to write where they cannot.

use super::accept::{ensure, invalid};
use super::{Platform, Refusal, address};
use crate::MCPTarget;
use crate::credentials::{Credentials, CredentialsType};
use crate::propagation::{self, PropagatedHeaders};
use crate::rule;
use crate::server::Scheme;

/// The most headers or parameters of each list.
const MOST_HEADERS: usize = 10;

/// Whether what the target says of credentials, trust and headers can be served.
pub(super) fn accept(target: &MCPTarget, platform: &Platform) -> Result<(), Refusal> {
    let spec = &target.spec;
    if let Some(written) = &spec.credentials {
        credentials(written, platform)?;
    }
    if let Some(written) = &spec.headers {
        headers(written)?;
    }
    let plain_url = spec.server.url.as_ref().is_some_and(|url| {
        (url.ca_ref.is_some() || url.client_certificate_ref.is_some())
            && !url.address.to_ascii_lowercase().starts_with("https:")
    });
    let plain_service = spec
        .server
        .service
        .as_ref()
        .is_some_and(|service| service.ca_ref.is_some() && service.scheme == Scheme::HTTP);
    ensure(!plain_url && !plain_service, rule::TLS_NEEDS_HTTPS)
}

fn credentials(written: &Credentials, platform: &Platform) -> Result<(), Refusal> {
    let Credentials { kind, headers, client_credentials, token_exchange, service_account_token } = written;
    let is = |of: CredentialsType| *kind == of;
    ensure(headers.is_empty() != is(CredentialsType::Headers), rule::CREDENTIALS_HEADERS)?;
    ensure(client_credentials.is_some() == is(CredentialsType::ClientCredentials), rule::CREDENTIALS_CLIENT)?;
    ensure(token_exchange.is_some() == is(CredentialsType::TokenExchange), rule::CREDENTIALS_EXCHANGE)?;
    ensure(
        service_account_token.is_some() == is(CredentialsType::ServiceAccountToken),
        rule::CREDENTIALS_ACCOUNT,
    )?;
    ensure(headers.len() <= MOST_HEADERS, rule::MOST_CREDENTIALS)?;
    let mut seen: Vec<String> = Vec::new();
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        ensure(is_header_name(&name), rule::HEADER_NAME)?;
        ensure(name != propagation::SESSION_ID, rule::SESSION_ID_HEADER)?;
        ensure(!propagation::is_routing(&name), rule::ROUTING_HEADER)?;
        if seen.contains(&name) {
            return Err(invalid(format!(
                "spec.credentials.headers names the header {name} twice; remove one"
            )));
        }
        seen.push(name);
    }
    let urls = client_credentials.iter().map(|client| &client.token_url);
    for url in urls.chain(token_exchange.iter().map(|exchange| &exchange.token_url)) {
        ensure(!url.contains(['#', '@', ' ']), rule::TOKEN_URL)?;
        if let Err(wrong) = address::check(url, platform.allow_loopback) {
            return Err(match wrong {
                address::Wrong::NotAbsolute => invalid(rule::TOKEN_URL),
                address::Wrong::UserInfo
                | address::Wrong::Fragment
                | address::Wrong::Port
                | address::Wrong::Forbidden
                | address::Wrong::PlainOutside => invalid(format!("spec.credentials.*.tokenURL {wrong}")),
            });
        }
    }
    let audience = service_account_token.as_ref().map(|token| token.audience.as_str());
    ensure(!audience.is_some_and(is_api_server), rule::TOKEN_AUDIENCE)
}

/// Whether an audience is one that API servers take tokens for: by its Service's name, as installers set it, or k3s'.
fn is_api_server(audience: &str) -> bool {
    let audience = audience.to_ascii_lowercase();
    let url = |scheme: &str| audience.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("kubernetes"));
    let name = audience.strip_prefix("kubernetes");
    let name = name.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '/']));
    audience == "k3s" || name || url("https://") || url("http://")
}

fn headers(written: &PropagatedHeaders) -> Result<(), Refusal> {
    let PropagatedHeaders { allowed_request, allowed_response, allowed_query_parameters } = written;
    let lists = [allowed_request, allowed_response, allowed_query_parameters];
    ensure(lists.iter().all(|list| list.len() <= MOST_HEADERS), rule::MOST_PROPAGATED)?;
    let lower = |list: &[String]| list.iter().map(|name| name.to_ascii_lowercase()).collect::<Vec<_>>();
    let (request, response) = (lower(allowed_request), lower(allowed_response));
    let mut all = request.iter().chain(&response);
    ensure(all.clone().all(|name| name != propagation::SESSION_ID), rule::SESSION_ID_HEADER)?;
    ensure(all.all(|name| is_header_name(name)), rule::PROPAGATED_NAME)?;
    ensure(!request.iter().any(|name| propagation::never_to_target(name)), rule::REQUEST_HEADERS)?;
    ensure(!response.iter().any(|name| propagation::never_to_client(name)), rule::RESPONSE_HEADERS)?;
    ensure(allowed_query_parameters.iter().all(|name| !name.is_empty()), rule::PROPAGATED_NAME)
}

fn is_header_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.parse::<http::HeaderName>().is_ok()
}
