//! Pure: what is refused before a body is read (MCP 2025-11-25 transports, security; DESIGN §8).

use http::{
    HeaderMap, Method,
    header::{ACCEPT, CONTENT_TYPE, ORIGIN},
};
use mooring_crds::config::GatewayConfig;

use crate::fault::Fault;

/// What the caller takes as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// One JSON document and nothing else: it can be asked nothing meanwhile (DESIGN §4).
    Json,
    /// One JSON document here, since this answer is part of another; it takes event streams besides.
    Part,
    /// JSON or an event stream.
    JsonOrStream,
}

impl Accepts {
    /// What it takes where this answer is one part of another.
    #[must_use]
    pub fn in_part(self) -> Self {
        match self {
            Self::Json => Self::Json,
            Self::Part | Self::JsonOrStream => Self::Part,
        }
    }
}

/// Refuses a `Host` that is not ours: a name that an attacker made point here (DNS rebinding).
///
/// Loopback names and address literals pass: rebinding needs a name of the attacker's. `host` is the one that the
/// client used, see [`crate::forwarded`]; with or without a port.
///
/// # Errors
/// [`Fault::ForbiddenHost`].
pub fn check_host(gateway: &GatewayConfig, host: Option<&str>) -> Result<(), Fault> {
    let host = host.map(strip_port).ok_or(Fault::ForbiddenHost)?;
    if is_address(host) || is_loopback(host) || gateway.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    {
        return Ok(());
    }
    Err(Fault::ForbiddenHost)
}

/// Refuses an `Origin` that may not call; none at all is fine. Returns the origin to answer to.
///
/// A page on loopback may call a gateway on loopback.
///
/// # Errors
/// [`Fault::ForbiddenOrigin`].
pub fn check_origin<'h>(
    gateway: &GatewayConfig,
    host: Option<&str>,
    headers: &'h HeaderMap,
) -> Result<Option<&'h str>, Fault> {
    if !headers.contains_key(ORIGIN) {
        return Ok(None);
    }
    let origin = single(headers, &ORIGIN).ok_or(Fault::ForbiddenOrigin)?;
    let local = |text: &str| is_loopback(strip_port(text));
    let origin_host = origin.split_once("://").map_or("", |(_, rest)| rest);
    let both_local = local(origin_host) && host.is_some_and(local);
    if both_local || gateway.origins.iter().any(|own| own.eq_ignore_ascii_case(origin)) {
        return Ok(Some(origin));
    }
    Err(Fault::ForbiddenOrigin)
}

/// Reads `Accept`. Absent, or a wildcard, means JSON: only who writes `text/event-stream` gets a stream.
///
/// # Errors
/// [`Fault::NotAcceptable`], where a POST takes no JSON or a GET no stream.
pub fn check_accept(method: &Method, headers: &HeaderMap) -> Result<Accepts, Fault> {
    let mut json = !headers.contains_key(ACCEPT);
    let mut stream = false;
    for value in headers.get_all(ACCEPT) {
        // As nearly every client writes it.
        if value == "application/json, text/event-stream" {
            (json, stream) = (true, true);
            continue;
        }
        for range in value.to_str().unwrap_or_default().split(',') {
            match range.split(';').next().unwrap_or_default().trim() {
                "*/*" | "application/*" => json = true,
                kind if kind.eq_ignore_ascii_case("application/json") => json = true,
                kind if kind.eq_ignore_ascii_case("text/event-stream") => stream = true,
                _ => {}
            }
        }
    }
    match (*method == Method::GET, json, stream) {
        (true, _, true) | (false, true, true) => Ok(Accepts::JsonOrStream),
        (false, true, false) => Ok(Accepts::Json),
        (true, _, false) | (false, false, _) => Err(Fault::NotAcceptable),
    }
}

/// Refuses a body that does not say it is JSON.
///
/// # Errors
/// [`Fault::UnsupportedMediaType`].
pub fn check_content_type(headers: &HeaderMap) -> Result<(), Fault> {
    let kind = single(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Fault::UnsupportedMediaType) }
}

/// A header that is there once, or more than once with one value.
pub fn single<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.any(|other| other != first) {
        return None;
    }
    first.to_str().ok()
}

fn strip_port(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_once(']').map_or(authority, |(host, _)| host);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

fn is_loopback(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_address(host: &str) -> bool {
    host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gateway_config;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_host_is_ours_with_and_without_a_port() {
        let gateway = GatewayConfig { hosts: vec!["tools-mcp.demo.svc".to_owned()], ..gateway_config() };
        let at = |host| check_host(&gateway, Some(host));
        for host in [
            "tools-mcp.demo.svc",
            "Tools-MCP.demo.svc:80",
            "localhost",
            "127.0.0.1:8080",
            "[::1]:8080",
            "10.0.0.7",
        ] {
            assert_eq!(at(host), Ok(()), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"]
        {
            assert_eq!(at(host), Err(Fault::ForbiddenHost), "{host}");
        }
        assert_eq!(check_host(&gateway, None), Err(Fault::ForbiddenHost));
    }

    #[test]
    fn a_foreign_origin_is_refused_and_none_is_fine() {
        let gateway = GatewayConfig { origins: vec!["https://app.example".to_owned()], ..gateway_config() };
        let from =
            |host, origin| check_origin(&gateway, Some(host), &headers(&[("origin", origin)])).map(|_| ());
        assert_eq!(check_origin(&gateway, Some("tools"), &headers(&[])), Ok(None));
        assert_eq!(from("tools", "https://app.example"), Ok(()));
        assert_eq!(from("localhost:8080", "http://localhost:6274"), Ok(()));
        for (host, origin) in [
            ("tools", "http://localhost:6274"),
            ("localhost:8080", "https://evil.example"),
            ("localhost:8080", "http://localhost.evil.example"),
            ("localhost:8080", "null"),
        ] {
            assert_eq!(from(host, origin), Err(Fault::ForbiddenOrigin), "{origin} to {host}");
        }
    }

    #[test]
    fn only_who_writes_event_stream_gets_one() {
        let post = |accept| check_accept(&Method::POST, &headers(&[("accept", accept)]));
        assert_eq!(post("application/json, text/event-stream"), Ok(Accepts::JsonOrStream));
        assert_eq!(post("application/json"), Ok(Accepts::Json));
        assert_eq!(post("*/*"), Ok(Accepts::Json));
        assert_eq!(check_accept(&Method::POST, &HeaderMap::new()), Ok(Accepts::Json));
        assert_eq!(post("text/html"), Err(Fault::NotAcceptable));
        assert_eq!(post("text/event-stream"), Err(Fault::NotAcceptable));
        let get = |accept| check_accept(&Method::GET, &headers(&[("accept", accept)]));
        assert_eq!(get("text/event-stream"), Ok(Accepts::JsonOrStream));
        assert_eq!(get("application/json"), Err(Fault::NotAcceptable));
    }

    #[test]
    fn a_body_says_that_it_is_json() {
        let of = |kind| check_content_type(&headers(&[("content-type", kind)]));
        assert_eq!(of("application/json; charset=utf-8"), Ok(()));
        assert_eq!(of("text/plain"), Err(Fault::UnsupportedMediaType));
        assert_eq!(check_content_type(&HeaderMap::new()), Err(Fault::UnsupportedMediaType));
    }

    #[test]
    fn a_header_given_twice_counts_only_where_both_agree() {
        let name = http::HeaderName::from_static("mcp-protocol-version");
        let twice = |a, b| {
            single(&headers(&[("mcp-protocol-version", a), ("mcp-protocol-version", b)]), &name)
                .map(str::to_owned)
        };
        assert_eq!(twice("x", "x").as_deref(), Some("x"));
        assert_eq!(twice("x", "y"), None);
    }
}
