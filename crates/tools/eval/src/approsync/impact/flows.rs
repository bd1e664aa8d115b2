//! Traffic of flows of two fields, drawn and of captures.

use crate::approsync::packets::{CAPTURES, Packet, captures};
use crate::approsync::traffic::Traffic;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustc_hash::{FxHashMap, FxHashSet};
use stateplane_wire::ipv4::PROTOCOL_UDP;
use std::path::Path;

/// Packets of which one flow has to have one for it to be a heavy hitter: of 2^20 packets 2^10, which is
/// the paper's threshold.
const HEAVY_ONE_IN: u64 = 1 << 10;

/// Least packets of a heavy hitter.
const LEAST: u64 = 16;

/// Hosts of drawn flows: sources and destinations.
const SOURCES: u32 = 1 << 12;
const DESTINATIONS: u32 = 1 << 14;

/// Heavy hitters that a capture needs for errors in percent to mean something.
const LEAST_HEAVY: usize = 20;

/// A flow of two fields; hosts are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) is_udp: bool,
}

/// Packets of numbered flows, which come evenly spaced.
pub(super) struct Flows {
    pub(super) name: String,
    pub(super) flows: Vec<Flow>,
    /// Hosts.
    pub(super) sources: u32,
    pub(super) destinations: u32,
    /// The flow of each packet.
    pub(super) packets: Vec<u32>,
}

impl Flows {
    /// So many packets of so many flows by Zipf's law, which also says how many flows a source and a
    /// destination have; half of the flows are UDP.
    pub(super) fn drawn(flows: u32, packets: usize, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut sources = Traffic::new(SOURCES, seed + 1);
        let mut destinations = Traffic::new(DESTINATIONS, seed + 2);
        let mut taken = FxHashSet::default();
        let flow = |_| {
            let source = sources.packet().location;
            let mut destination = destinations.packet().location;
            while !taken.insert((source, destination)) {
                destination = random.random_range(0..DESTINATIONS);
            }
            Flow {
                source,
                destination,
                is_udp: random.random(),
            }
        };
        let all = (0..flows).map(flow).collect();
        let mut traffic = Traffic::new(flows, seed);
        Self {
            name: "drawn".to_owned(),
            flows: all,
            sources: SOURCES,
            destinations: DESTINATIONS,
            packets: (0..packets).map(|_| traffic.packet().location).collect(),
        }
    }

    /// The packets of a capture.
    fn of_packets(name: String, all: &[Packet]) -> Self {
        let (mut sources, mut destinations) = (FxHashMap::default(), FxHashMap::default());
        let mut numbers = FxHashMap::default();
        let (mut flows, mut packets) = (Vec::new(), Vec::new());
        for packet in all {
            let (known, others) = (sources.len() as u32, destinations.len() as u32);
            let flow = Flow {
                source: *sources.entry(packet.source).or_insert(known),
                destination: *destinations.entry(packet.destination).or_insert(others),
                is_udp: packet.protocol == PROTOCOL_UDP,
            };
            let key = (flow.source, flow.destination, flow.is_udp);
            let number = *numbers.entry(key).or_insert(flows.len() as u32);
            if number as usize == flows.len() {
                flows.push(flow);
            }
            packets.push(number);
        }
        Self {
            name,
            flows,
            sources: sources.len() as u32,
            destinations: destinations.len() as u32,
            packets,
        }
    }

    /// Drawn traffic, and the captures of a folder that have heavy hitters; why others are left out.
    pub(super) fn all(folder: &Path, quick: bool) -> (Vec<Self>, Vec<String>) {
        let drawn = if quick {
            Self::drawn(1 << 13, 1 << 17, 1)
        } else {
            Self::drawn(1 << 16, 1 << 20, 1)
        };
        let (found, mut missing) = captures(folder, &CAPTURES);
        let mut all = vec![drawn];
        for (name, packets) in found {
            let flows = Self::of_packets(name, &packets);
            let heavy = flows.heavy();
            if heavy < LEAST_HEAVY {
                missing.push(format!("{}: it has {heavy} heavy hitters", flows.name));
            } else {
                all.push(flows);
            }
        }
        (all, missing)
    }

    /// Packets that a flow needs more than to be a heavy hitter.
    pub(super) fn threshold(&self) -> u64 {
        (self.packets.len() as u64 / HEAVY_ONE_IN).max(LEAST)
    }

    /// Entries of the switch's table: a quarter of the flows, so that collisions happen all the time.
    pub(super) fn entries(&self) -> u32 {
        (self.flows.len() as u32 / 4).next_power_of_two().max(64)
    }

    /// Heavy hitters at the end.
    fn heavy(&self) -> usize {
        let mut counts = vec![0_u64; self.flows.len()];
        for flow in &self.packets {
            counts[*flow as usize] += 1;
        }
        let threshold = self.threshold();
        counts.iter().filter(|count| **count > threshold).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn drawn_flows_are_all_different_and_some_are_heavy() {
        let flows = Flows::drawn(1 << 10, 1 << 16, 3);
        let pairs = flows.flows.iter();
        let pairs: FxHashSet<(u32, u32)> = pairs.map(|it| (it.source, it.destination)).collect();
        assert_eq!(pairs.len(), 1 << 10);
        assert!(flows.heavy() > LEAST_HEAVY, "{}", flows.heavy());
        assert_eq!((flows.threshold(), flows.entries()), (64, 256));
    }

    #[test]
    fn packets_of_a_capture_are_of_the_flows_of_their_hosts() {
        let packet = |source: u8, protocol| Packet {
            source: Ipv4Addr::new(10, 0, 0, source),
            destination: Ipv4Addr::new(10, 0, 1, 1),
            protocol,
            ports: (1, u16::from(source)),
        };
        let packets = [packet(1, 6), packet(2, 17), packet(1, 6), packet(1, 17)];
        let flows = Flows::of_packets("three".to_owned(), &packets);
        assert_eq!(flows.packets, [0, 1, 0, 2]);
        assert_eq!((flows.sources, flows.destinations), (2, 1));
        let udp: Vec<bool> = flows.flows.iter().map(|flow| flow.is_udp).collect();
        assert_eq!(udp, [false, true, true]);
        assert_eq!(flows.flows[2].source, 0);
    }
}
