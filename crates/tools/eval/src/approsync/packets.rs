//! Packets with the keys that sketches count: drawn ones, and those of captures.

use super::traffic::Traffic;
use crate::error::EvalError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_hazards::Flow;
use stateplane_host::ports::read_packets;
use stateplane_sketch::{Key, coefficient};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::{checksum, ethernet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// Captures whose packets are counted.
pub(super) const CAPTURES: [&str; 3] = [
    "mixed-one-way.pcap",
    "mixed-two-way-snap96.pcap",
    "syn-flood.pcap",
];

/// Bytes of a frame: headers of Ethernet, IPv4 and TCP.
const FRAME: usize = 54;
const IPV4: usize = 14;
const SEGMENT: usize = 34;

/// One of so many drawn packets is from or to a host with many partners, of which there are so many;
/// a host has at most so many partners.
const SPREAD_ONE_IN: u32 = 8;
const SPREADERS: f64 = 64.0;
const PARTNERS: u64 = 1024;

/// Seed of the addresses of drawn flows.
const ADDRESSES: u64 = 0x666c_6f77;

/// A packet as the programs of `apps` see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) protocol: u8,
    /// Of source and destination; 0 of protocols without.
    pub(super) ports: (u16, u16),
}

impl Packet {
    /// Its flow of five fields.
    pub(super) fn flow(&self) -> Key {
        let (from, to) = self.ports;
        Key::flow(self.source, self.destination, self.protocol, from, to)
    }

    /// Its source.
    pub(super) fn source(&self) -> Key {
        Key::address(self.source)
    }

    /// Its destination.
    pub(super) fn destination(&self) -> Key {
        Key::address(self.destination)
    }

    /// Its source and destination.
    pub(super) fn pair(&self) -> Key {
        Key::pair(self.source, self.destination)
    }

    /// Writes its frame, whose IPv4 header has a right checksum.
    pub(super) fn frame(&self, frame: &mut Vec<u8>) {
        frame.clear();
        frame.resize(FRAME, 0);
        frame[12..IPV4].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
        let header = &mut frame[IPV4..SEGMENT];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&((FRAME - IPV4) as u16).to_be_bytes());
        header[8] = 64;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let sum = checksum::of(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let (from, to) = self.ports;
        frame[SEGMENT..SEGMENT + 2].copy_from_slice(&from.to_be_bytes());
        frame[SEGMENT + 2..SEGMENT + 4].copy_from_slice(&to.to_be_bytes());
    }

    /// The packet of a datagram, of which the first bytes may be all that was kept; `None` if it is not
    /// of IPv4.
    fn of_ip(bytes: &[u8]) -> Option<Self> {
        let flow = Flow::of_ip(bytes)?;
        let rest = flow.rest?;
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (flow.source, rest.destination) else {
            return None;
        };
        let has_ports = matches!(rest.protocol, PROTOCOL_TCP | PROTOCOL_UDP);
        Some(Self {
            source,
            destination,
            protocol: rest.protocol,
            ports: if has_ports { rest.ports } else { (0, 0) },
        })
    }

    /// The first packet of the flow of a number.
    pub(super) fn numbered(number: u32) -> Self {
        let bits = coefficient(ADDRESSES, number.into());
        Self {
            source: Ipv4Addr::from_bits(0x0a00_0000 | bits as u32 & 0xff_ffff),
            destination: Ipv4Addr::from_bits(0xac10_0000 | (bits >> 24) as u32 & 0xf_ffff),
            protocol: PROTOCOL_UDP,
            ports: ((bits >> 44) as u16, 4_000),
        }
    }

    /// A packet from or to a host with many partners, the fewer the more hosts come before it.
    fn spread(random: &mut SmallRng) -> Self {
        let host = SPREADERS.powf(random.random::<f64>()) as u32;
        let partner = random.random_range(0..PARTNERS);
        let bits = coefficient(ADDRESSES + u64::from(host), partner) as u32;
        let own = Ipv4Addr::from_bits(0x0b00_0000 | host);
        let other = Ipv4Addr::from_bits(0x0c00_0000 | bits & 0xff_ffff);
        let (source, destination) = match random.random_range(0..2) {
            0 => (own, other),
            _ => (other, own),
        };
        Self {
            source,
            destination,
            protocol: PROTOCOL_UDP,
            ports: (5_000, 5_000),
        }
    }
}

/// A source of packets that does not end: equal seeds give equal packets.
pub(super) enum Source {
    /// Packets of flows by Zipf's law.
    Drawn {
        traffic: Traffic,
        random: SmallRng,
        /// Some are of hosts with many partners.
        spreads: bool,
    },
    /// Packets of a capture, again and again.
    Captured { packets: Vec<Packet>, next: usize },
}

impl Source {
    /// Packets of so many flows, some of hosts with many partners if it `spreads`.
    pub(super) fn drawn(flows: u32, seed: u64, spreads: bool) -> Self {
        Self::Drawn {
            traffic: Traffic::new(flows, seed),
            random: SmallRng::seed_from_u64(seed),
            spreads,
        }
    }

    /// Packets of a capture, at least one.
    pub(super) fn captured(packets: &[Packet]) -> Self {
        Self::Captured {
            packets: packets.to_vec(),
            next: 0,
        }
    }

    /// The next packet.
    pub(super) fn packet(&mut self) -> Packet {
        match self {
            Self::Drawn {
                traffic,
                random,
                spreads,
            } => {
                if *spreads && random.random_range(0..SPREAD_ONE_IN) == 0 {
                    Packet::spread(random)
                } else {
                    Packet::numbered(traffic.packet().location)
                }
            }
            Self::Captured { packets, next } => {
                let packet = packets[*next];
                *next = (*next + 1) % packets.len();
                packet
            }
        }
    }
}

/// Captures of a folder by name, those that are there, and why others are not.
pub(super) fn captures(folder: &Path, names: &[&str]) -> (Vec<(String, Vec<Packet>)>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match capture(&folder.join(name)) {
            Ok(packets) => found.push(((*name).to_owned(), packets)),
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    (found, missing)
}

/// The IPv4 packets of a capture, at least one.
fn capture(path: &Path) -> Result<Vec<Packet>, EvalError> {
    let refused = |reason: String| EvalError::Refused {
        what: path.display().to_string(),
        reason,
    };
    let packets = read_packets(path).map_err(|error| refused(error.to_string()))?;
    let packets = packets.iter().filter(|packet| packet.is_ip);
    let packets: Vec<Packet> = packets
        .filter_map(|packet| Packet::of_ip(&packet.bytes))
        .collect();
    if packets.is_empty() {
        return Err(refused("it has no IPv4".to_owned()));
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_wire::{ipv4, udp};
    use std::collections::BTreeSet;

    #[test]
    fn a_frame_is_that_of_its_packet() {
        let packet = Packet::numbered(7);
        let mut frame = vec![1; 3];
        packet.frame(&mut frame);
        let ethernet = ethernet::Packet::new_checked(&frame).unwrap();
        let datagram = ipv4::Packet::new_checked(ethernet.payload()).unwrap();
        assert!(datagram.verify_checksum());
        assert_eq!(Packet::of_ip(ethernet.payload()), Some(packet));
        assert_eq!(datagram.payload()[..2], packet.ports.0.to_be_bytes());
        assert!(datagram.payload().len() >= udp::HEADER_LENGTH);
    }

    #[test]
    fn drawn_packets_have_hosts_with_many_partners_only_if_asked() {
        let partners = |spreads| {
            let mut source = Source::drawn(512, 3, spreads);
            let packets = (0..20_000).map(|_| source.packet());
            let own = packets.filter(|packet| packet.source.octets()[0] == 0x0b);
            own.map(|packet| packet.destination)
                .collect::<BTreeSet<_>>()
                .len()
        };
        assert_eq!(partners(false), 0);
        assert!(partners(true) > 500, "{}", partners(true));
    }

    #[test]
    fn a_capture_goes_round_and_absent_ones_are_named() {
        let packets = [Packet::numbered(1), Packet::numbered(2)];
        let mut source = Source::captured(&packets);
        let three = [source.packet(), source.packet(), source.packet()];
        assert_eq!(three, [packets[0], packets[1], packets[0]]);
        let (found, missing) = captures(Path::new("nowhere"), &["none.pcap"]);
        assert!(found.is_empty());
        assert!(missing[0].starts_with("none.pcap: "), "{missing:?}");
    }
}
