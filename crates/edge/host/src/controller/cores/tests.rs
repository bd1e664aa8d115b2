use super::*;
use stateplane_multicast_groups::{Follower, Switch};
use std::net::Ipv4Addr;

const CONTROLLER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 20), 4795);

/// Address of the program of switch `number`.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + number)
}

fn systems() -> Systems {
    let switch = |number| Switch {
        number,
        address: address(number),
        domain: number,
    };
    let switches = (1..=3).map(switch).collect();
    let settings = multicast::Settings::new(CONTROLLER, switches, 1, 3);
    Systems {
        chains: None,
        groups: None,
        multicast: Some(settings),
    }
}

/// A switch of multicast is a peer under its number, by the address of its program and by that of
/// its process, and speaks for no other switch.
#[test]
fn a_switch_of_multicast_speaks_for_itself_alone() {
    let systems = systems();
    let beat = Follower::new(1, 7).beat(Vec::new(), []);
    let process = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 1), 40_000);
    assert!(is_own(&systems, 1, process, &beat));
    assert!(!is_own(&systems, 2, process, &beat));
    let said = [1; 72];
    let program = SocketAddrV4::new(address(1), MULTICAST_PORT);
    assert!(is_own(&systems, 1, program, &said));
    assert!(!is_own(&systems, 2, program, &said));
    // Hosts have the numbers that their keys say.
    let host = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 11), MULTICAST_PORT);
    assert!(is_own(&systems, 11, host, &said));
}
