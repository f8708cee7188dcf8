//! Pure: which addresses requests of ours may go to (DESIGN §8). Judged on the address that is connected to.

use std::net::IpAddr;

use ipnet::IpNet;
use mooring_crds::address::{Reserved, reserved};

/// What the installation makes of the fixed rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Whether loopback is fine: in `moored serve`, where targets are local processes.
    pub loopback: bool,
    /// Networks refused besides the fixed ones.
    pub refused: Vec<IpNet>,
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// By a fixed rule.
    #[error("{0}")]
    Reserved(Reserved),
    /// By the installation.
    #[error("an address of a refused network")]
    Network,
}

/// Says why `address` is refused; none where it is not.
pub fn refusal(address: IpAddr, rules: &Rules) -> Option<Refused> {
    match reserved(address) {
        Some(Reserved::Loopback) if rules.loopback => return None,
        Some(reserved) => return Some(Refused::Reserved(reserved)),
        None => {}
    }
    let address = address.to_canonical();
    rules.refused.iter().any(|net| net.contains(&address)).then_some(Refused::Network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installation_refuses_more_and_only_a_daemon_without_a_cluster_asks_its_own_machine() {
        let pod = Rules { loopback: false, refused: vec!["10.9.0.0/16".parse().unwrap()] };
        for address in ["10.9.1.1", "::ffff:10.9.1.1", "127.0.0.1", "169.254.169.254"] {
            assert!(refusal(address.parse().unwrap(), &pod).is_some(), "{address}");
        }
        assert_eq!(refusal("10.8.1.1".parse().unwrap(), &pod), None);
        let local = Rules { loopback: true, refused: Vec::new() };
        assert_eq!(refusal("127.0.0.1".parse().unwrap(), &local), None);
        assert!(refusal("169.254.169.254".parse().unwrap(), &local).is_some());
    }
}
