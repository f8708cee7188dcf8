//! The metadata of a gateway as a protected resource (RFC 9728 §3): for anybody, without credentials, from any origin.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    },
    request::Parts,
};
use hyper::body::Incoming;

use super::{account, refuse};
use mooring_crds::config::GatewayConfig;

use crate::{
    auth::resource,
    body::Answer,
    edge,
    fault::Fault,
    forwarded::{self, External, Peer},
    gateway::Gateway,
    relay::json_response,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Answers a request for the metadata of the endpoint at `path`.
pub fn metadata(
    gateway: &Arc<Gateway>,
    request: Request<Incoming>,
    path: &str,
    peer: Peer,
) -> Response<Answer> {
    let (head, _) = request.into_parts();
    let snapshot = gateway.snapshot();
    let external = forwarded::external(peer, &head.uri, &head.headers, &snapshot.proxies);
    let mut account = account(gateway, &head, &external);
    let mut response = match answer(&snapshot.config, &head, &external, path) {
        Ok(response) => response,
        Err(fault) => {
            let response = refuse(&fault, None);
            account.fault = Some(fault);
            response
        }
    };
    // Read by pages that have no token yet, of origins that nobody can list.
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    account.status = Some(response.status());
    response.map(|body| body.accounted(account))
}

fn answer(
    config: &GatewayConfig,
    head: &Parts,
    external: &External<'_>,
    path: &str,
) -> Result<Response<Answer>, Fault> {
    // It is made of the Host where no public URL is configured: one that is not ours must not get into it.
    edge::check_host(config, external.host)?;
    match head.method {
        Method::GET | Method::HEAD => {
            let resource = resource::external_url(config, external, path).ok_or(Fault::ForbiddenHost)?;
            let document = resource::metadata(&config.auth, &resource).to_string();
            Ok(json_response(Answer::whole(Bytes::from(document))))
        }
        Method::OPTIONS => Ok(empty(StatusCode::NO_CONTENT)),
        _ => Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(ALLOW, METHODS);
    response
}
