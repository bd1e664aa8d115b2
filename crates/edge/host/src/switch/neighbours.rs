//! Answers to neighbours that ask for the switch's addresses: ARP (RFC 826) and neighbour
//! solicitations (RFC 4861). The program sees neither.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use stateplane_switch::Port;
use stateplane_wire::checksum::Sum;

use crate::ports::MacAddress;

const TYPE: usize = 12;
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];

/// Ethernet and IPv4 addresses, as an ARP message begins.
const ARP_KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ARP: usize = 14;
const ARP_END: usize = ARP + 28;
/// Bytes of the shortest frame without its check sequence.
const SHORTEST: usize = 60;

const IPV6: usize = 14;
const ICMP: usize = IPV6 + 40;
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOLICITATION_END: usize = ICMP + 24;
/// Flags of an advertisement: solicited, and it replaces what is known.
const SOLICITED_OVERRIDE: u8 = 0x60;

/// An address of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnAddress {
    /// The port at which it is asked for; any if `None`.
    pub port: Option<Port>,
    pub address: IpAddr,
    /// The MAC address there; that of the port's interface if `None`.
    pub mac: Option<MacAddress>,
}

/// Content of an ARP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub asks: bool,
    pub sender_mac: MacAddress,
    pub sender: Ipv4Addr,
    pub target: Ipv4Addr,
}

impl Arp {
    /// The ARP message in `frame`, if it is one of Ethernet and IPv4.
    pub(super) fn of(frame: &[u8]) -> Option<Arp> {
        if frame.len() < ARP_END || frame[TYPE..ARP] != TYPE_ARP || frame[ARP..ARP + 6] != ARP_KIND
        {
            return None;
        }
        let operation = u16::from_be_bytes([frame[ARP + 6], frame[ARP + 7]]);
        (1..=2).contains(&operation).then(|| Arp {
            asks: operation == 1,
            sender_mac: array(frame, ARP + 8),
            sender: Ipv4Addr::from(array::<4>(frame, ARP + 14)),
            target: Ipv4Addr::from(array::<4>(frame, ARP + 24)),
        })
    }

    /// The frame of the message, to `to`.
    pub(super) fn frame(&self, to: MacAddress) -> Vec<u8> {
        let mut frame = Vec::with_capacity(SHORTEST);
        frame.extend_from_slice(&to);
        frame.extend_from_slice(&self.sender_mac);
        frame.extend_from_slice(&TYPE_ARP);
        frame.extend_from_slice(&ARP_KIND);
        frame.extend_from_slice(&[0, if self.asks { 1 } else { 2 }]);
        frame.extend_from_slice(&self.sender_mac);
        frame.extend_from_slice(&self.sender.octets());
        frame.extend_from_slice(&if self.asks { [0; 6] } else { to });
        frame.extend_from_slice(&self.target.octets());
        frame.resize(SHORTEST, 0);
        frame
    }
}

/// Answers for the switch's addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    own: Vec<OwnAddress>,
}

impl Neighbours {
    pub(super) fn new(own: Vec<OwnAddress>) -> Neighbours {
        Neighbours { own }
    }

    /// True if `frame` is a question for a link-layer address, which may be for the switch.
    pub(super) fn may_ask(&self, frame: &[u8]) -> bool {
        let arp = frame.get(TYPE..ARP) == Some(&TYPE_ARP);
        !self.own.is_empty() && (arp || is_solicitation(frame))
    }

    /// The answer to `frame`, which came to `port` with an interface of the address `hardware`, if
    /// it asks for an address of the switch.
    pub(super) fn answer(
        &self,
        port: Port,
        hardware: Option<MacAddress>,
        frame: &[u8],
    ) -> Option<Vec<u8>> {
        if let Some(arp) = Arp::of(frame) {
            let mac = self.mac(port, IpAddr::V4(arp.target), hardware)?;
            let answer = Arp {
                asks: false,
                sender_mac: mac,
                sender: arp.target,
                target: arp.sender,
            };
            return arp.asks.then(|| answer.frame(arp.sender_mac));
        }
        if !is_solicitation(frame) {
            return None;
        }
        let target = array(frame, ICMP + 8);
        let mac = self.mac(port, IpAddr::V6(Ipv6Addr::from(target)), hardware)?;
        advertisement(frame, target, mac)
    }

    /// The MAC address that belongs to `address` at `port`.
    fn mac(&self, port: Port, address: IpAddr, hardware: Option<MacAddress>) -> Option<MacAddress> {
        let mut own = self.own.iter();
        let found =
            own.find(|own| own.address == address && own.port.is_none_or(|its| its == port))?;
        found.mac.or(hardware)
    }
}

fn is_solicitation(frame: &[u8]) -> bool {
    frame.len() >= SOLICITATION_END
        && frame[TYPE..IPV6] == TYPE_IPV6
        && frame[IPV6 + 6] == ICMPV6
        // Only from the link: routers lower the hop limit (RFC 4861, 7.1.1).
        && frame[IPV6 + 7] == 255
        && frame[ICMP] == SOLICITATION
}

/// The answer to a solicitation for `target`, which has the address `mac`. One without a source
/// (duplicate address detection) is answered to all nodes.
fn advertisement(question: &[u8], target: [u8; 16], mac: MacAddress) -> Option<Vec<u8>> {
    let source: [u8; 16] = array(question, IPV6 + 8);
    let asks_for_itself = source == [0; 16];
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).octets();
    let (to, to_mac, flags) = if asks_for_itself {
        (
            all_nodes,
            [0x33, 0x33, 0, 0, 0, 1],
            SOLICITED_OVERRIDE & 0x20,
        )
    } else {
        (source, array(question, 6), SOLICITED_OVERRIDE)
    };
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
    message.extend_from_slice(&target);
    // Option 2, of 8 bytes: the target's link-layer address.
    message.extend_from_slice(&[2, 1]);
    message.extend_from_slice(&mac);
    let length = message.len() as u16;
    let sum = Sum::new()
        .over(&target)
        .over(&to)
        .over(&u32::from(length).to_be_bytes())
        .over(&[0, 0, 0, ICMPV6])
        .over(&message)
        .finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = Vec::with_capacity(ICMP + message.len());
    frame.extend_from_slice(&to_mac);
    frame.extend_from_slice(&mac);
    frame.extend_from_slice(&TYPE_IPV6);
    frame.extend_from_slice(&[0x60, 0, 0, 0]);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[ICMPV6, 255]);
    frame.extend_from_slice(&target);
    frame.extend_from_slice(&to);
    frame.extend_from_slice(&message);
    Some(frame)
}

fn array<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&frame[at..at + N]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MacAddress = [2, 0, 0, 0, 0, 1];
    const PEER: MacAddress = [2, 0, 0, 0, 0, 9];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const ASKER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn neighbours() -> Neighbours {
        let link: Ipv6Addr = "fe80::1".parse().unwrap();
        Neighbours::new(vec![
            OwnAddress {
                port: Some(2),
                address: ADDRESS.into(),
                mac: Some(OWN),
            },
            OwnAddress {
                port: None,
                address: link.into(),
                mac: None,
            },
        ])
    }

    fn question(target: Ipv4Addr) -> Vec<u8> {
        let asked = Arp {
            asks: true,
            sender_mac: PEER,
            sender: ASKER,
            target,
        };
        asked.frame([0xff; 6])
    }

    #[test]
    fn own_addresses_are_told_at_their_ports() {
        let answer = neighbours().answer(2, None, &question(ADDRESS)).unwrap();
        assert_eq!(answer[..6], PEER);
        let told = Arp::of(&answer).unwrap();
        assert_eq!((told.asks, told.sender_mac), (false, OWN));
        assert_eq!((told.sender, told.target), (ADDRESS, ASKER));
        assert_eq!(neighbours().answer(1, None, &question(ADDRESS)), None);
        assert_eq!(neighbours().answer(2, None, &question(ASKER)), None);
        // An answer is not answered.
        assert_eq!(neighbours().answer(2, None, &answer), None);
    }

    #[test]
    fn short_and_foreign_frames_are_left_alone() {
        let question = question(ADDRESS);
        for length in 0..ARP_END {
            assert_eq!(neighbours().answer(2, None, &question[..length]), None);
        }
        let mut other = question.clone();
        other[ARP + 1] = 6;
        assert_eq!(neighbours().answer(2, None, &other), None);
    }

    fn solicitation(source: Ipv6Addr) -> Vec<u8> {
        let target: Ipv6Addr = "fe80::1".parse().unwrap();
        let mut frame = Vec::new();
        frame.extend_from_slice(&[0x33, 0x33, 0xff, 0, 0, 1]);
        frame.extend_from_slice(&PEER);
        frame.extend_from_slice(&TYPE_IPV6);
        frame.extend_from_slice(&[0x60, 0, 0, 0, 0, 24, ICMPV6, 255]);
        frame.extend_from_slice(&source.octets());
        frame.extend_from_slice(&target.octets());
        frame.extend_from_slice(&[SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend_from_slice(&target.octets());
        frame
    }

    #[test]
    fn solicitations_get_the_address_of_the_interface() {
        let asker: Ipv6Addr = "fe80::9".parse().unwrap();
        let answer = neighbours().answer(7, Some(OWN), &solicitation(asker));
        let answer = answer.unwrap();
        assert_eq!(answer[..6], PEER);
        assert_eq!(answer[IPV6 + 24..IPV6 + 40], asker.octets());
        assert_eq!(answer[ICMP], ADVERTISEMENT);
        assert_eq!(answer[ICMP + 4], SOLICITED_OVERRIDE);
        assert_eq!(answer[ICMP + 26..], OWN);
        // The sum over what was sent, its own field included, is 0.
        let sum = Sum::new()
            .over(&answer[IPV6 + 8..IPV6 + 40])
            .over(&[0, 0, 0, 32, 0, 0, 0, ICMPV6])
            .over(&answer[ICMP..])
            .finish();
        assert_eq!(sum, 0);
    }

    #[test]
    fn who_has_no_address_yet_is_answered_at_all_nodes() {
        let question = solicitation(Ipv6Addr::UNSPECIFIED);
        let answer = neighbours().answer(7, Some(OWN), &question).unwrap();
        assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
        assert_eq!(answer[ICMP + 4], 0x20);
        // From beyond a router nobody solicits.
        let mut routed = question;
        routed[IPV6 + 7] = 254;
        assert_eq!(neighbours().answer(7, Some(OWN), &routed), None);
    }
}
