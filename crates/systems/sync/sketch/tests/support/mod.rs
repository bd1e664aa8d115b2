//! Packets for tests: those of captures, and drawn ones.

#![allow(dead_code, reason = "each test uses a part")]

use core::net::Ipv4Addr;
use stateplane_sketch::Key;
use std::fs;
use std::path::{Path, PathBuf};

/// The seed of the programs, SKETCH_SEED in `p4/lib/sketch.p4`.
pub const SEED: u64 = 0x5374_6174_6570_6c61;

/// A packet of the sketches' programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Packet {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub ports: (u16, u16),
}

impl Packet {
    pub fn flow(&self) -> Key {
        let (from, to) = self.ports;
        Key::flow(self.source, self.destination, self.protocol, from, to)
    }

    pub fn source(&self) -> Key {
        Key::address(self.source)
    }

    /// An IPv4 packet with a UDP header, without checksums.
    pub fn ip(&self) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, self.protocol, 0, 0];
        ip.extend(self.source.octets());
        ip.extend(self.destination.octets());
        ip.extend(self.ports.0.to_be_bytes());
        ip.extend(self.ports.1.to_be_bytes());
        ip.extend([0, 8, 0, 0]);
        ip
    }
}

/// The packet of an IPv4 header and what follows, as the programs parse it: ports of whole
/// datagrams without options. `None` if it is no IPv4.
pub fn parse(ip: &[u8]) -> Option<Packet> {
    if ip.len() < 20 || ip[0] >> 4 != 4 {
        return None;
    }
    let word = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let whole = ip[0] & 15 == 5 && word(6) & 0x3fff == 0;
    let needed = if ip[9] == 6 { 40 } else { 28 };
    let has_ports = whole && matches!(ip[9], 6 | 17) && ip.len() >= needed;
    Some(Packet {
        source: address(12),
        destination: address(16),
        protocol: ip[9],
        ports: if has_ports {
            (word(20), word(22))
        } else {
            (0, 0)
        },
    })
}

/// Path of a capture; `None`, with a message, where it is absent.
pub fn capture(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../../shared/traces");
    let path = root.join(name);
    if !path.is_file() {
        eprintln!("skipped: ../shared/traces/{name} is absent");
        return None;
    }
    Some(path)
}

/// IPv4 packets of a capture (pcap, little-endian), from their IPv4 headers on, at most `most`.
pub fn datagrams(path: &Path, most: usize) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("it can be read");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let magics = [0xa1b2_c3d4, 0xa1b2_3c4d];
    assert!(
        magics.contains(&word(0)),
        "a capture in pcap, little-endian"
    );
    // Ethernet, or frames that begin with the IP header.
    let skipped = if word(20) == 1 { 14 } else { 0 };
    let (mut at, mut found) = (24, Vec::new());
    while at + 16 <= bytes.len() && found.len() < most {
        let length = word(at + 8) as usize;
        let data = &bytes[at + 16..at + 16 + length];
        at += 16 + length;
        let is_ip = skipped == 0 || data.get(12..14) == Some(&[8, 0]);
        if is_ip && data.len() >= skipped + 20 {
            found.push(data[skipped..].to_vec());
        }
    }
    found
}

/// Pseudo-random numbers: splitmix64.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        stateplane_sketch::coefficient(0x7465_7374, self.0)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A rank from 1 on, drawn with Zipf's law of exponent 1 up to `most`, by inversion.
    pub fn zipf(&mut self, most: u64) -> u64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((most as f64).powf(share)) as u64
    }
}

/// `count` packets of up to `flows` flows, whose sizes follow Zipf's law.
pub fn drawn(seed: u64, count: usize, flows: u64) -> Vec<Packet> {
    let mut draws = Draws(seed << 32);
    (0..count)
        .map(|_| {
            let rank = draws.zipf(flows);
            let bits = stateplane_sketch::coefficient(seed, rank);
            Packet {
                source: Ipv4Addr::from_bits(0x0a00_0000 | bits as u32 & 0xff_ffff),
                destination: Ipv4Addr::from_bits(0xc0a8_0000 | (bits >> 24) as u32 & 0xffff),
                protocol: 17,
                ports: ((bits >> 40) as u16, 53),
            }
        })
        .collect()
}
