//! Pure: who calls and by which name, as trusted proxies tell it: `Forwarded` (RFC 7239), else `X-Forwarded-*`. What
//! anybody else writes there is not looked at (case 038).

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, Uri, header, uri::Authority};
use ipnet::IpNet;
use mooring_crds::config::GatewayConfig;

use crate::edge::single;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Whoever is at the other end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// How it speaks to us.
    pub scheme: Scheme,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

/// A request as its client sent it, before any proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct External<'h> {
    /// The client's address, as far as trusted proxies know it.
    pub client: IpAddr,
    /// The scheme that the client used.
    pub scheme: Scheme,
    /// The host that the client used, with its port where it wrote one; none where the request has no usable `Host`.
    pub host: Option<&'h str>,
}

impl Scheme {
    /// As it stands in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("https") {
            Some(Self::Https)
        } else if text.eq_ignore_ascii_case("http") {
            Some(Self::Http)
        } else {
            None
        }
    }
}

/// Reads a request's head. Headers count only from peers in one of the `trusted` networks.
pub fn external<'h>(peer: Peer, uri: &'h Uri, headers: &'h HeaderMap, trusted: &[IpNet]) -> External<'h> {
    let own = uri.authority().map(Authority::as_str).or_else(|| single(headers, &header::HOST));
    let direct = External { client: peer.address.to_canonical(), scheme: peer.scheme, host: own };
    if !is_trusted(direct.client, trusted) {
        return direct;
    }
    if headers.contains_key(header::FORWARDED) {
        standard(direct, headers, trusted)
    } else {
        usual(direct, headers, trusted)
    }
}

/// The endpoint's URL as its clients write it: `publicURL` where that is written, else what the request says. `path` is
/// the endpoint's path here.
pub fn external_url(config: &GatewayConfig, external: &External<'_>, path: &str) -> String {
    if let Some(public) = &config.public_url {
        return public.clone();
    }
    let host = external.host.unwrap_or("localhost");
    format!("{}://{host}{path}", external.scheme.as_str())
}

/// RFC 7239 §4: each proxy appends what it received, so the last element is our peer's. Read backwards for as long as
/// the proxies are trusted; whatever stands before that is the client's own claim.
fn standard<'h>(mut known: External<'h>, headers: &'h HeaderMap, trusted: &[IpNet]) -> External<'h> {
    let values = headers.get_all(header::FORWARDED).iter().filter_map(|value| value.to_str().ok());
    let elements: Vec<&str> = values.flat_map(|value| split(value, ',')).collect();
    for element in elements.into_iter().rev() {
        let parameter = |name: &str| {
            split(element, ';').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                key.trim().eq_ignore_ascii_case(name).then(|| unquoted(value.trim()))
            })
        };
        known.scheme = parameter("proto").and_then(Scheme::parse).unwrap_or(known.scheme);
        known.host = parameter("host").filter(|host| is_host(host)).or(known.host);
        // Unknown or obfuscated (§6.2, §6.3): nobody behind it can be told from a forgery.
        let Some(client) = parameter("for").and_then(node) else { break };
        known.client = client;
        if !is_trusted(client, trusted) {
            break;
        }
    }
    known
}

/// What most proxies write instead. Of several values the last is the nearest proxy's; a client's own stand before it.
fn usual<'h>(mut known: External<'h>, headers: &'h HeaderMap, trusted: &[IpNet]) -> External<'h> {
    let last = |name: &HeaderName| -> Option<&'h str> {
        let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
        value.rsplit(',').next().map(str::trim)
    };
    known.scheme = last(&X_FORWARDED_PROTO).and_then(Scheme::parse).unwrap_or(known.scheme);
    known.host = last(&X_FORWARDED_HOST).filter(|host| is_host(host)).or(known.host);
    for value in headers.get_all(&X_FORWARDED_FOR).iter().rev() {
        for hop in value.to_str().unwrap_or_default().rsplit(',') {
            let Some(client) = node(hop.trim()) else { return known };
            known.client = client;
            if !is_trusted(client, trusted) {
                return known;
            }
        }
    }
    known
}

fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

fn is_host(host: &str) -> bool {
    host.parse::<Authority>().is_ok_and(|authority| !authority.as_str().contains('@'))
}

/// An address, with or without a port (RFC 7239 §6; some proxies write ports into `X-Forwarded-For`, too).
fn node(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().or_else(|_| text.trim_matches(['[', ']']).parse::<IpAddr>());
    let address = address.ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

/// Splits at `separator` outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
#[path = "forwarded_tests.rs"]
mod tests;
