//! Interfaces that the host itself uses: a switch that takes all frames of one cuts the host off.

use super::{Access, PortError, PortSpec};
use std::fs;
use std::net::IpAddr;

/// Checks that the host does not use the interface of `spec`, if the port would take its frames
/// from the host's network stack. AF_PACKET leaves the stack its copy of each frame, and captures
/// and TAP devices are of no use to it.
///
/// Addresses of IPv6 links (RFC 4291 §2.5.6) do not count: each interface that is up has one.
///
/// # Errors
///
/// [`PortError::InUse`] with the interface's addresses and routes.
pub fn check_unused(spec: &PortSpec) -> Result<(), PortError> {
    let PortSpec::Interface { name, access } = spec else {
        return Ok(());
    };
    if *access == Access::Packet {
        return Ok(());
    }
    let addresses = addresses_of(name);
    let default_route = has_default_route(name);
    if addresses.is_empty() && !default_route {
        return Ok(());
    }
    Err(PortError::InUse {
        name: name.clone(),
        addresses,
        default_route,
    })
}

/// Addresses of the interface, without those of its link.
fn addresses_of(name: &str) -> Vec<IpAddr> {
    let Ok(all) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let own = all.filter(|interface| interface.interface_name == name);
    let addresses = own.filter_map(|interface| {
        let address = interface.address?;
        if let Some(address) = address.as_sockaddr_in() {
            return Some(IpAddr::V4(address.ip()));
        }
        let address = address.as_sockaddr_in6()?.ip();
        (!address.is_unicast_link_local()).then_some(IpAddr::V6(address))
    });
    addresses.collect()
}

/// True if a default route of IPv4 or IPv6 leaves by the interface (`proc_net(5)`).
fn has_default_route(name: &str) -> bool {
    let v4 = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let v6 = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    v4.lines().any(|line| is_default_v4(line, name))
        || v6.lines().any(|line| is_default_v6(line, name))
}

/// True for the line of a default route by `name`: interface, destination, gateway, flags, use,
/// references, metric, mask.
fn is_default_v4(line: &str, name: &str) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    matches!(fields[..], [of, "00000000", _, _, _, _, _, "00000000", ..] if of == name)
}

/// True for the line of a default route by `name`: destination, its prefix length, source, its
/// prefix length, next hop, metric, references, use, flags, interface. A route that rejects
/// (`RTF_REJECT`, 0x200) is none.
fn is_default_v6(line: &str, name: &str) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [destination, "00", _, _, _, _, _, _, flags, of] = fields[..] else {
        return false;
    };
    let rejects = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 0x200 != 0);
    of == name && !rejects && destination.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(access: Access) -> PortSpec {
        PortSpec::Interface {
            name: "lo".to_owned(),
            access,
        }
    }

    #[test]
    fn an_interface_with_an_address_is_the_hosts() {
        for access in [Access::Best, Access::Xdp] {
            let error = check_unused(&port(access)).unwrap_err();
            let said = error.to_string();
            assert_eq!(error.code(), "H208");
            for part in ["`lo`", "127.0.0.1", "packet:lo", "--take-over"] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        check_unused(&port(Access::Packet)).unwrap();
        check_unused(&PortSpec::Tap("lo".to_owned())).unwrap();
        check_unused(&PortSpec::interface("nosuchinterface0")).unwrap();
    }

    #[test]
    fn default_routes_are_found_by_their_interface() {
        let v4 = "eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        assert!(is_default_v4(v4, "eth0"));
        assert!(!is_default_v4(v4, "eth1"));
        let subnet = "eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0";
        assert!(!is_default_v4(subnet, "eth0"));
        let zeros = "0".repeat(32);
        let v6 = |length: &str, flags: &str| {
            format!("{zeros} {length} {zeros} 00 fe80 00000400 00000001 00000000 {flags} eth0")
        };
        assert!(is_default_v6(&v6("00", "00000003"), "eth0"));
        assert!(!is_default_v6(&v6("00", "00000003"), "lo"));
        assert!(!is_default_v6(&v6("40", "00000003"), "eth0"));
        assert!(!is_default_v6(&v6("00", "00200200"), "eth0"));
    }
}
