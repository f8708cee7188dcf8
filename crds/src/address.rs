//! Pure: addresses that no request to a target may go to. Judged twice: in a URL, and on the address connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reserved {
    /// The machine, or the pod, itself.
    #[error("a loopback address")]
    Loopback,
    /// Where clouds answer with credentials.
    #[error("a metadata service")]
    Metadata,
    /// Of the link: the node, and what answers there for clouds.
    #[error("a link-local address")]
    LinkLocal,
    /// Nobody's, or many's.
    #[error("not a host's address")]
    NoHost,
}

/// Metadata services of clouds that are outside link-local.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// What is wrong with `address`; none where nothing is. An IPv4 address in IPv6's clothes is judged as what it is.
pub fn reserved(address: IpAddr) -> Option<Reserved> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Some(Reserved::Loopback);
    }
    if METADATA.contains(&address) {
        return Some(Reserved::Metadata);
    }
    let (link_local, no_host) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.is_broadcast() || v4.octets().first() == Some(&0)),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.is_unspecified() || embeds_v4(v6)),
    };
    if link_local {
        return Some(Reserved::LinkLocal);
    }
    (no_host || address.is_multicast()).then_some(Reserved::NoHost)
}

/// Forms of IPv6 that carry an IPv4 address past the rules for it: IPv4-compatible and NAT64.
fn embeds_v4(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] => (high, low) != (0, 1),
        [0x64, 0xff9b, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_goes_to_the_pod_its_node_a_metadata_service_or_many() {
        for (address, want) in [
            ("127.0.0.1", Reserved::Loopback),
            ("127.9.9.9", Reserved::Loopback),
            ("::1", Reserved::Loopback),
            ("::ffff:127.0.0.1", Reserved::Loopback),
            ("169.254.169.254", Reserved::LinkLocal),
            ("::ffff:169.254.169.254", Reserved::LinkLocal),
            ("fe80::1", Reserved::LinkLocal),
            ("fd00:ec2::254", Reserved::Metadata),
            ("168.63.129.16", Reserved::Metadata),
            ("192.0.0.192", Reserved::Metadata),
            ("0.0.0.0", Reserved::NoHost),
            ("0.1.2.3", Reserved::NoHost),
            ("::", Reserved::NoHost),
            ("::7f00:1", Reserved::NoHost),
            ("64:ff9b::7f00:1", Reserved::NoHost),
            ("224.0.0.1", Reserved::NoHost),
            ("ff02::1", Reserved::NoHost),
            ("255.255.255.255", Reserved::NoHost),
        ] {
            assert_eq!(reserved(address.parse().unwrap()), Some(want), "{address}");
        }
        for address in ["10.96.0.1", "192.0.2.7", "2001:db8::1", "fd00::1"] {
            assert_eq!(reserved(address.parse().unwrap()), None, "{address}");
        }
    }
}
