//! The mappings of a NAT, and their ports.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Flow classes of `apps/nat/nat_packet.p4`, the first byte of a mapping's key.
const INBOUND: u8 = 3;
const FIRST_PORT: u16 = 1024;

/// Decision of a controller about an inside endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The endpoint has a mapping.
    Known,
    /// The endpoint gets this public port.
    New(u16),
    /// All ports of its protocol are given away.
    Exhausted,
}

/// A key of the table of mappings, and the address and port to put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Class, protocol, address, port and eight bytes of zeros, as the program forms it.
    pub key: u128,
    /// The address to put in.
    pub address: Ipv4Addr,
    /// The port to put in.
    pub port: u16,
}

/// Public ports with their owners. Ports are given away in order, from 1024, of each protocol for
/// itself, and are never taken back: a controller lives as long as a measurement.
#[derive(Clone, Debug)]
pub struct Mappings {
    public: Ipv4Addr,
    known: BTreeMap<u128, u16>,
    /// The next port of a protocol.
    next: BTreeMap<u8, u32>,
}

impl Mappings {
    /// No mappings yet, at this public address.
    pub fn new(public: Ipv4Addr) -> Self {
        Self {
            public,
            known: BTreeMap::new(),
            next: BTreeMap::new(),
        }
    }

    /// Gives the inside endpoint of an outbound key a port unless it has one.
    pub fn decide(&mut self, outbound: u128) -> Decision {
        if self.known.contains_key(&outbound) {
            return Decision::Known;
        }
        let next = self.next.entry(protocol(outbound));
        let next = next.or_insert(FIRST_PORT.into());
        let Ok(port) = u16::try_from(*next) else {
            return Decision::Exhausted;
        };
        *next += 1;
        self.known.insert(outbound, port);
        Decision::New(port)
    }

    /// Both directions of a mapping.
    pub fn entries(&self, outbound: u128, port: u16) -> [Entry; 2] {
        let [_, protocol, a, b, c, d, high, low, ..] = outbound.to_be_bytes();
        let mut inbound = [0; 16];
        inbound[0] = INBOUND;
        inbound[1] = protocol;
        inbound[2..6].copy_from_slice(&self.public.octets());
        inbound[6..8].copy_from_slice(&port.to_be_bytes());
        [
            Entry {
                key: outbound,
                address: self.public,
                port,
            },
            Entry {
                key: u128::from_be_bytes(inbound),
                address: Ipv4Addr::new(a, b, c, d),
                port: u16::from_be_bytes([high, low]),
            },
        ]
    }
}

fn protocol(key: u128) -> u8 {
    key.to_be_bytes()[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outbound, UDP, 10.0.0.5, `port`.
    fn key(port: u16) -> u128 {
        (0x0211_0a00_0005 << 80) | (u128::from(port) << 64)
    }

    #[test]
    fn every_endpoint_has_one_port_of_its_own() {
        let mut mappings = Mappings::new([203, 0, 113, 1].into());
        assert_eq!(mappings.decide(key(40_001)), Decision::New(1024));
        assert_eq!(mappings.decide(key(40_002)), Decision::New(1025));
        assert_eq!(mappings.decide(key(40_001)), Decision::Known);
        let tcp = key(40_001) - (0x0b << 112);
        assert_eq!(mappings.decide(tcp), Decision::New(1024));
        let [out, back] = mappings.entries(key(40_001), 1024);
        assert_eq!((out.key, out.port), (key(40_001), 1024));
        assert_eq!(out.address, Ipv4Addr::new(203, 0, 113, 1));
        assert_eq!(back.key, 0x0311_cb00_7101_0400 << 64);
        assert_eq!(back.address, Ipv4Addr::new(10, 0, 0, 5));
        assert_eq!(back.port, 40_001);
    }

    #[test]
    fn ports_run_out() {
        let mut mappings = Mappings::new([203, 0, 113, 1].into());
        for endpoint in 0..64_512u128 {
            assert!(matches!(
                mappings.decide(key(0) | endpoint),
                Decision::New(_)
            ));
        }
        assert_eq!(mappings.decide(key(0) | 64_512), Decision::Exhausted);
        assert_eq!(mappings.decide(key(0)), Decision::Known);
    }
}
