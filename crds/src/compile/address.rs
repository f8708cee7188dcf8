//! Pure: which URLs a target may have, and what a URL or a host name is. The daemon checks the connected address again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

use crate::address::{Reserved, reserved};

/// What is wrong with a URL that requests of ours go to; each says what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Not absolute, or of another scheme.
    #[error("is no absolute http or https URL; write it like https://mcp.example.org/mcp")]
    NotAbsolute,
    /// With a user.
    #[error("holds a user or password; remove it and write credentials under spec.credentials")]
    UserInfo,
    /// With a fragment.
    #[error("holds a fragment, which no server sees; remove # and what follows")]
    Fragment,
    /// With a port that is none.
    #[error("has no valid port; write a number from 1 to 65535, or none for the scheme's own")]
    Port,
    /// Where no request may go.
    #[error(
        "is an address of the pod itself, of its node, of a metadata service or of many; write the server's name"
    )]
    Forbidden,
    /// Readable on its way.
    #[error(
        "is plain http to a host outside the cluster; write https, or a Service's name like NAME.NAMESPACE.svc"
    )]
    PlainOutside,
}

/// What a host is, as far as it can be told without asking a name server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    Loopback,
    Forbidden,
    Cluster,
    Elsewhere,
}

/// Whether requests of ours may go to `url`: https, or http inside the cluster, or, where allowed, on this machine.
pub fn check(url: &str, allow_loopback: bool) -> Result<(), Wrong> {
    if url.contains('#') {
        return Err(Wrong::Fragment);
    }
    let uri: Uri = url.parse().map_err(|_| Wrong::NotAbsolute)?;
    let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(Wrong::NotAbsolute);
    };
    if authority.as_str().contains('@') {
        return Err(Wrong::UserInfo);
    }
    let port_is_written = authority.as_str() != authority.host();
    if port_is_written && authority.port_u16().is_none_or(|port| port == 0) {
        return Err(Wrong::Port);
    }
    match (kind(authority.host()).ok_or(Wrong::NotAbsolute)?, scheme) {
        (Host::Loopback, _) if allow_loopback => Ok(()),
        (Host::Loopback | Host::Forbidden, _) => Err(Wrong::Forbidden),
        (Host::Cluster, _) | (Host::Elsewhere, "https") => Ok(()),
        (Host::Elsewhere, _) => Err(Wrong::PlainOutside),
    }
}

/// What `host` is; none where it is no host.
fn kind(host: &str) -> Option<Host> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().ok().map(|address| address_kind(IpAddr::V6(address)));
    }
    let labels: Vec<&str> = host.split('.').collect();
    // Resolvers read 127.1, 0x7f000001 and 2130706433 as addresses too; only the full form is taken.
    let last_is_number = labels.last().is_some_and(|last| is_number(last));
    if last_is_number {
        return host.parse::<Ipv4Addr>().ok().map(|address| address_kind(IpAddr::V4(address)));
    }
    if !labels.iter().all(|label| is_label(label)) {
        return None;
    }
    Some(match labels.as_slice() {
        [.., "localhost"] => Host::Loopback,
        ["metadata", "google", "internal"] => Host::Forbidden,
        // Two labels may be a Service and its namespace, or a host of the world: `.svc` tells.
        [_] | [_, _, "svc"] | [.., "svc", "cluster", "local"] => Host::Cluster,
        _ => Host::Elsewhere,
    })
}

fn is_number(label: &str) -> bool {
    let hexadecimal =
        label.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()));
    hexadecimal || (!label.is_empty() && label.chars().all(|c| c.is_ascii_digit()))
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn address_kind(address: IpAddr) -> Host {
    match reserved(address) {
        Some(Reserved::Loopback) => Host::Loopback,
        Some(Reserved::Metadata | Reserved::LinkLocal | Reserved::NoHost) => Host::Forbidden,
        None => Host::Elsewhere,
    }
}

/// The host of an absolute URL, where it is a name.
pub(super) fn host(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    uri.host().filter(|host| is_host_name(host)).map(str::to_ascii_lowercase)
}

/// The origin of an absolute URL as browsers write it: lower case, without the scheme's own port.
pub(super) fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let authority = rest.split('/').next()?.to_ascii_lowercase();
    let own_port = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    Some(format!("{scheme}://{}", authority.strip_suffix(own_port).unwrap_or(&authority)))
}

/// Whether it is an absolute http or https URL without user, query or fragment.
pub(super) fn is_public_url(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let plain = !url.contains(['#', '?', '@', ' ']);
    plain
        && matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty())
}

/// Whether it is an origin: scheme, host, and perhaps a port.
pub(super) fn is_origin(origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let scheme_is_plain = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'));
    let authority_is_plain = !authority.is_empty()
        && authority.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '[' | ']' | '-'));
    scheme_is_plain && authority_is_plain
}

/// Whether it is a host's name, without scheme, port or path.
pub(super) fn is_host_name(host: &str) -> bool {
    (1..=253).contains(&host.len())
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Whether it is a network in CIDR notation.
pub(super) fn is_network(network: &str) -> bool {
    let Some((address, length)) = network.split_once('/') else { return false };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.bytes().all(|digit| digit.is_ascii_digit())
        && length.parse::<u8>().is_ok_and(|bits| bits <= longest)
}
