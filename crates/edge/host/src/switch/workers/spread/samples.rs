//! Frames of each kind, whose bytes are changed to find which of them a program's keys depend on.

use super::kind::{GENEVE_PORT, GRE, GTP_U_PORT, UDP, VXLAN_PORT};
use crate::switch::workers::flow::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPES_VLAN, IPV6_BYTES};
use stateplane_wire::checksum;
use stateplane_wire::replication::{self, MessageType};
use std::ops::Range;

const TCP: u8 = 6;
const ETHERTYPE_ETHERNET: u16 = 0x6558;
/// Of both MAC addresses.
const MAC_BYTES: usize = 12;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV4_CHECKSUM: usize = 10;
const UDP_BYTES: usize = 8;
/// Bytes of a payload: room for headers of a program's own.
const PAYLOAD: u8 = 48;

/// A checksum of RFC 1071.
#[derive(Clone, Debug)]
struct Checksum {
    covers: Range<usize>,
    at: usize,
}

/// A frame, or the inner part of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Offsets of bytes that the hash of a flow covers, as the kernel computes it.
    pub(super) hashed: Vec<usize>,
    /// Offsets of bytes that may tell states apart, and that it does not cover. Fields of headers that are alike
    /// in most frames, such as the type of service, are in neither.
    pub(super) hidden: Vec<usize>,
    checksums: Vec<Checksum>,
}

impl Sample {
    fn payload(bytes: Vec<u8>) -> Sample {
        Sample {
            hidden: (0..bytes.len()).collect(),
            bytes,
            ..Sample::default()
        }
    }

    /// What it becomes behind `header`, of whose bytes the hash covers `hashed`.
    fn behind(mut self, header: &[u8], hashed: Range<usize>) -> Sample {
        let length = header.len();
        self.bytes.splice(..0, header.iter().copied());
        let offsets = self.hashed.iter_mut().chain(&mut self.hidden);
        offsets.for_each(|at| *at += length);
        for checksum in &mut self.checksums {
            let Range { start, end } = checksum.covers;
            checksum.covers = start + length..end + length;
            checksum.at += length;
        }
        self.hashed.extend(hashed);
        self
    }

    /// What it becomes if the hash covers none of it.
    fn enclosed(mut self) -> Sample {
        self.hashed.clear();
        self.hidden = (0..self.bytes.len()).collect();
        self
    }

    /// With a checksum over `covers` at `at`.
    fn summed(mut self, covers: Range<usize>, at: usize) -> Sample {
        let checksum = Checksum { covers, at };
        sum(&mut self.bytes, &checksum);
        self.checksums.push(checksum);
        self
    }

    fn udp(self, from: u16, to: u16) -> Sample {
        let length = (UDP_BYTES + self.bytes.len()) as u16;
        let words = [from, to, length, 0].map(u16::to_be_bytes);
        self.behind(words.as_flattened(), 0..4)
    }

    fn tcp(self) -> Sample {
        let mut header = [0; 20];
        header[..4].copy_from_slice(&[0x9c, 0x41, 0x01, 0xbb]);
        header[4..14].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10]);
        header[14..16].copy_from_slice(&[0x20, 0]);
        self.behind(&header, 0..4)
    }

    fn ipv4(self, protocol: u8, [from, to]: [u8; 2]) -> Sample {
        let mut header = [0; IPV4_BYTES];
        header[0] = 0x45;
        let length = (IPV4_BYTES + self.bytes.len()) as u16;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header[6] = 0x40;
        header[8..10].copy_from_slice(&[64, protocol]);
        header[12..20].copy_from_slice(&[10, 7, 1, from, 10, 7, 2, to]);
        let packet = self.behind(&header, 12..20);
        packet.summed(0..IPV4_BYTES, IPV4_CHECKSUM)
    }

    fn ipv6(self, protocol: u8, [from, to]: [u8; 2]) -> Sample {
        let mut header = [0; IPV6_BYTES];
        header[0] = 0x60;
        header[4..6].copy_from_slice(&(self.bytes.len() as u16).to_be_bytes());
        header[6..8].copy_from_slice(&[protocol, 64]);
        for (at, last) in [(8, from), (24, to)] {
            header[at..at + 4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            header[at + 15] = last;
        }
        self.behind(&header, 8..40)
    }

    fn ethernet(self, ethertype: u16) -> Sample {
        let mut header = [0; ETHERNET_BYTES];
        header[..MAC_BYTES].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        header[MAC_BYTES..].copy_from_slice(&ethertype.to_be_bytes());
        self.behind(&header, 0..0)
    }

    /// The frame with a tag of IEEE 802.1Q.
    fn tagged(&self) -> Sample {
        let mut header = self.bytes[..MAC_BYTES].to_vec();
        header.extend(ETHERTYPES_VLAN[0].to_be_bytes());
        header.extend([0, 7]);
        let tagged = self.clone().behind(&header, 0..0);
        tagged.without(header.len()..header.len() + MAC_BYTES)
    }

    /// Without the bytes in `range`, which nothing covers.
    fn without(mut self, range: Range<usize>) -> Sample {
        let length = range.len();
        self.bytes.drain(range);
        let offsets = self.hashed.iter_mut().chain(&mut self.hidden);
        offsets.for_each(|at| *at -= length);
        for checksum in &mut self.checksums {
            let Range { start, end } = checksum.covers;
            checksum.covers = start - length..end - length;
            checksum.at -= length;
        }
        self
    }

    /// The frame with the byte at `at` changed by `mask`, and right checksums.
    pub(super) fn changed(&self, at: usize, mask: u8) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes[at] ^= mask;
        for checksum in &self.checksums {
            if checksum.covers.contains(&at) {
                sum(&mut bytes, checksum);
            }
        }
        bytes
    }
}

fn sum(bytes: &mut [u8], Checksum { covers, at }: &Checksum) {
    bytes[*at..*at + 2].fill(0);
    let sum = checksum::of(&bytes[covers.clone()]);
    bytes[*at..*at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn payload() -> Sample {
    // No run of equal bytes.
    Sample::payload((0..PAYLOAD).map(|at| at.wrapping_mul(57) ^ 0xa5).collect())
}

/// Packets as tunnels carry them: their Ethernet type, and they.
fn packets() -> Vec<(u16, Sample)> {
    let segments = || [(TCP, payload().tcp()), (UDP, payload().udp(40_001, 4_242))];
    let ends = [5, 6];
    let fourth = segments().map(|(protocol, it)| (ETHERTYPE_IPV4, it.ipv4(protocol, ends)));
    let sixth = segments().map(|(protocol, it)| (ETHERTYPE_IPV6, it.ipv6(protocol, ends)));
    fourth.into_iter().chain(sixth).collect()
}

/// A frame over each version of IP.
fn over_ip(protocol: u8, segment: &Sample) -> [Sample; 2] {
    let ends = [1, 2];
    [
        segment
            .clone()
            .ipv4(protocol, ends)
            .ethernet(ETHERTYPE_IPV4),
        segment
            .clone()
            .ipv6(protocol, ends)
            .ethernet(ETHERTYPE_IPV6),
    ]
}

/// A message of GTP-U with user data, and with the header that fifth-generation networks put there.
fn gtp_u(packet: &Sample) -> [Sample; 2] {
    let message = |flags: u8, more: &[u8]| {
        let length = (packet.bytes.len() + more.len()) as u16;
        let mut header = vec![flags, 0xff];
        header.extend(length.to_be_bytes());
        header.extend([0x11, 0x22, 0x33, 0x44]);
        header.extend(more);
        packet.clone().behind(&header, 0..0).enclosed()
    };
    [
        message(0x30, &[]),
        message(0x34, &[0, 0, 0, 0x85, 1, 0, 9, 0]),
    ]
}

/// The bytes behind the headers of GRE are hashed as if they were outside.
fn gre(ethertype: u16, packet: &Sample) -> [Sample; 2] {
    let packet = packet.clone();
    let [high, low] = ethertype.to_be_bytes();
    let mut keyed = packet
        .clone()
        .behind(&[0x20, 0, high, low, 1, 2, 3, 4], 0..0);
    keyed.hidden.extend(4..8);
    [packet.behind(&[0, 0, high, low], 0..0), keyed]
}

/// Messages of a store's server to a switch.
fn messages() -> Vec<Sample> {
    let packet = payload()
        .tcp()
        .ipv4(TCP, [5, 6])
        .ethernet(ETHERTYPE_IPV4)
        .bytes;
    let replies = MessageType::ALL.into_iter().filter(|it| !it.is_request());
    let message = |message_type| {
        let mut key = replication::Key::default();
        key.0.copy_from_slice(b"\x01key of the flow");
        let message = replication::Repr {
            message_type,
            shared: false,
            state: &[7; 8],
            packet: Some(&packet),
            code: 0,
            chain_epoch: 1,
            shard: 1,
            switch_id: 1,
            incarnation: 1,
            claim: 1,
            request: 1,
            send_time: 1,
            ingress_port: 1,
            key,
            lease_epoch: 1,
            sequence: 1,
            age: 1,
            attempt: 0,
        };
        let bytes = message.to_vec().ok()?;
        let summed = 0..replication::HEADER_LENGTH + message.state.len();
        Some(Sample::payload(bytes).summed(summed, replication::field::CHECKSUM))
    };
    replies.filter_map(message).collect()
}

/// A frame of an Ethernet type that is not IP. The kernel hashes nothing of it but the type.
pub(super) fn not_ip(ethertype: u16) -> Sample {
    let frame = payload().ethernet(ethertype);
    Sample {
        hidden: (0..MAC_BYTES)
            .chain(ETHERNET_BYTES..frame.bytes.len())
            .collect(),
        ..frame
    }
}

/// Frames of IP of all kinds, with a tag and without.
pub(super) fn of_ip() -> Vec<Sample> {
    let mut samples = Vec::new();
    samples.extend(over_ip(TCP, &payload().tcp()));
    samples.extend(over_ip(UDP, &payload().udp(40_001, 4_242)));
    for (ethertype, packet) in packets() {
        for message in gtp_u(&packet) {
            samples.extend(over_ip(UDP, &message.udp(GTP_U_PORT, GTP_U_PORT)));
        }
        let frame = packet.clone().ethernet(ethertype);
        let vxlan = frame.clone().behind(&[8, 0, 0, 0, 0, 0, 77, 0], 0..0);
        let geneve = frame.clone().behind(&[0, 0, 0x65, 0x58, 0, 0, 77, 0], 0..0);
        for (port, tunnelled) in [(VXLAN_PORT, vxlan), (GENEVE_PORT, geneve)] {
            let segment = tunnelled.enclosed().udp(50_000, port);
            samples.extend(over_ip(UDP, &segment));
        }
        for (ethertype, packet) in [(ethertype, &packet), (ETHERTYPE_ETHERNET, &frame)] {
            for packet in gre(ethertype, packet) {
                samples.extend(over_ip(GRE, &packet));
            }
        }
    }
    for message in messages() {
        let datagram = message.udp(replication::PORT, replication::PORT);
        samples.extend(over_ip(UDP, &datagram));
    }
    let tagged: Vec<Sample> = samples.iter().map(Sample::tagged).collect();
    samples.extend(tagged);
    samples
}
