//! Measuring traffic: flows that begin, go on and are followed by others, one packet as good as
//! the next.

use crate::spec::Side;
use core::net::{Ipv4Addr, SocketAddrV4};

/// Port of the hosts outside.
const ECHO: u16 = 7;

/// A packet's place in measuring traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its flow, from 0.
    pub flow: u64,
    /// Index of the packet in its flow, from 0.
    pub packet: u64,
}

/// A UDP datagram of measuring traffic, without padding and mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Side of the host that sends it.
    pub from: Side,
    /// Source.
    pub source: SocketAddrV4,
    /// Destination.
    pub destination: SocketAddrV4,
    /// Beginning of the payload.
    pub payload: Vec<u8>,
}

/// A packet of measuring traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its place.
    pub place: Place,
    /// Its number among all packets.
    pub number: u64,
    /// Bytes between the payload's beginning and its mark.
    pub padding: usize,
    /// Of a hundred packets, how many write, where an application has that to choose.
    pub updates: u32,
}

/// Measuring traffic through an application.
pub trait Traffic: Sync {
    /// An IEEE 802.1Q tag in front of every datagram, if there is one.
    fn tag(&self) -> &'static [u8] {
        &[]
    }

    /// True if a packet is to write its flow's state.
    fn writes(&self, packet: &Packet) -> bool;

    /// Packets of a flow from one that writes to the next, where that is a number.
    fn write_interval(&self) -> Option<f64> {
        None
    }

    /// The datagram that a packet is.
    fn datagram(&self, packet: &Packet) -> Datagram {
        across(packet.place.flow)
    }
}

/// A datagram of a flow from a host inside to one outside.
pub(crate) fn across(flow: u64) -> Datagram {
    let outside = *outside(flow).ip();
    Datagram {
        from: Side::Inside,
        source: inside(flow),
        destination: SocketAddrV4::new(outside, ECHO),
        payload: Vec::new(),
    }
}

/// The end of a flow inside.
pub(crate) fn inside(flow: u64) -> SocketAddrV4 {
    endpoint([10, 0, 0], flow)
}

/// The end of a flow outside.
pub(crate) fn outside(flow: u64) -> SocketAddrV4 {
    endpoint([198, 51, 100], flow)
}

/// A host's end of a flow: in one of 200 hosts, at a port of its own.
fn endpoint([a, b, c]: [u8; 3], flow: u64) -> SocketAddrV4 {
    let host = Ipv4Addr::new(a, b, c, (flow % 200) as u8 + 11);
    SocketAddrV4::new(host, 1024 + (flow / 200 % 60_000) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app;
    use std::collections::BTreeSet;

    fn packet(number: u64, packet: u64, updates: u32) -> Packet {
        Packet {
            place: Place { flow: 0, packet },
            number,
            padding: 0,
            updates,
        }
    }

    fn traffic(name: &str) -> &'static dyn Traffic {
        let app = app(name).expect("an application");
        app.traffic().expect("measuring traffic")
    }

    #[test]
    fn flows_have_endpoints_of_their_own() {
        let ends: BTreeSet<_> = (0..100_000).map(inside).collect();
        assert_eq!(ends.len(), 100_000);
    }

    #[test]
    fn as_many_packets_write_as_is_said() {
        let store = traffic("key-value");
        let of = |updates| {
            let packets = (0..10_000).map(|number| packet(number, 0, updates));
            packets
                .filter(|of| store.datagram(of).payload[0] == 2)
                .count()
        };
        assert_eq!(of(0), 0);
        assert_eq!(of(100), 10_000);
        assert!((2800..3200).contains(&of(30)), "{}", of(30));
        let gateway = traffic("serving-gateway");
        let signals = (0..36).filter(|&at| gateway.writes(&packet(at, at, 0)));
        assert_eq!(signals.collect::<Vec<_>>(), [0, 18]);
    }
}
