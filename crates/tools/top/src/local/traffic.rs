//! Traffic: of a capture, again and again, or drawn; and what it has had so far.

use super::link::frame;
use stateplane_host::ports::{PortError, read_packets};
use stateplane_random::Random;
use stateplane_sketch::Key;
use stateplane_switch::MAX_FRAME;
use stateplane_wire::{ipv4, udp};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;

/// Flows of drawn traffic unless a number is given, and the most.
pub const FLOWS: (u32, u32) = (16_384, 60_000);

/// Hosts on either side of drawn traffic.
const HOSTS: usize = 1_000;

/// Ports at which servers of drawn traffic listen.
const SERVICES: [u16; 4] = [53, 123, 443, 4_500];

/// Payload of drawn packets.
const PAYLOAD: [u8; 18] = [0; 18];

/// Packets, and the counts that a program should have of them.
pub struct Traffic {
    description: String,
    /// Frames with their flows; of drawn traffic one for each flow, by rank.
    frames: Vec<(Vec<u8>, usize)>,
    /// Flows with their packets so far.
    flows: Vec<(Key, u64)>,
    places: BTreeMap<Key, usize>,
    /// Numbers of drawn traffic.
    random: Option<Random>,
    next: usize,
    packets: u64,
    pairs: BTreeSet<(Key, Key)>,
    destinations: BTreeMap<Key, u64>,
    sources: BTreeMap<Key, u64>,
}

/// A place below `count`, drawn with Zipf's law of exponent 1, by inversion: place k with a
/// probability of ln(1 + 1/(k + 1)) / ln(count + 1).
fn zipf(random: &mut Random, count: usize) -> usize {
    let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    let rank = ((count + 1) as f64).powf(share) as usize;
    rank.clamp(1, count) - 1
}

/// The key by which the program counts an IPv4 packet; `None` of one that it does not count.
fn counted(ip: &[u8]) -> Option<Key> {
    let header = ip.get(..20)?;
    if header[0] >> 4 != 4 {
        return None;
    }
    let has_options = header[0] & 15 != 5;
    let word = |at: usize| Some(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?]));
    let sum: u32 = (0..20).step_by(2).filter_map(word).map(u32::from).sum();
    // The program checks the sum of headers without options.
    if !has_options && (sum & 0xffff) + (sum >> 16) != 0xffff {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let is_fragment = word(6)? & 0x3fff != 0;
    let needed = if header[9] == ipv4::PROTOCOL_TCP {
        40
    } else {
        28
    };
    let has_ports = matches!(header[9], ipv4::PROTOCOL_TCP | ipv4::PROTOCOL_UDP)
        && !has_options
        && !is_fragment
        && ip.len() >= needed;
    let port = |at: usize| word(at).filter(|_| has_ports).unwrap_or(0);
    Some(Key::flow(
        address(12),
        address(16),
        header[9],
        port(20),
        port(22),
    ))
}

/// Source and destination of a flow.
fn ends(flow: Key) -> (Key, Key) {
    let Key([source, destination, ..]) = flow;
    (Key([source, 0, 0, 0]), Key([destination, 0, 0, 0]))
}

impl Traffic {
    fn of(description: String, packets: Vec<(Vec<u8>, Key)>, random: Option<Random>) -> Traffic {
        let mut traffic = Traffic {
            description,
            frames: Vec::with_capacity(packets.len()),
            flows: Vec::new(),
            places: BTreeMap::new(),
            random,
            next: 0,
            packets: 0,
            pairs: BTreeSet::new(),
            destinations: BTreeMap::new(),
            sources: BTreeMap::new(),
        };
        for (frame, key) in packets {
            let flows = &mut traffic.flows;
            let place = *traffic.places.entry(key).or_insert_with(|| {
                flows.push((key, 0));
                flows.len() - 1
            });
            traffic.frames.push((frame, place));
        }
        traffic
    }

    /// Packets of UDP of so many flows, drawn by Zipf's law; equal seeds give equal packets.
    pub fn drawn(seed: u64, flows: u32) -> Traffic {
        let mut random = Random::new(seed);
        let flows = flows.clamp(1, FLOWS.1);
        let packets = (0..flows).filter_map(|rank| {
            let mut host = |first: u32| {
                let place = zipf(&mut random, HOSTS) as u32;
                Ipv4Addr::from_bits(first + place / 250 * 256 + place % 250 + 1)
            };
            let (source, destination) = (host(0x0a01_0000), host(0xc0a8_0000));
            let service = SERVICES[random.place(SERVICES.len())];
            let datagram = udp::Repr {
                // Another one for each flow.
                source_port: 1_024 + rank as u16,
                destination_port: service,
                payload: &PAYLOAD,
            };
            let datagram = datagram.to_vec(source, destination).ok()?;
            let packet = ipv4::Repr::new(source, destination, ipv4::PROTOCOL_UDP, &datagram);
            let packet = packet.to_vec().ok()?;
            Some((frame(&packet), counted(&packet)?))
        });
        let packets = packets.collect();
        let description = format!("{flows} flows by Zipf's law, seed {seed}");
        Traffic::of(description, packets, Some(random))
    }

    /// The packets of a capture that the program counts: IPv4 with a right header checksum.
    ///
    /// # Errors
    ///
    /// [`PortError::Capture`] if it cannot be read or has no such packet.
    pub fn captured(path: &Path) -> Result<Traffic, PortError> {
        let packets: Vec<(Vec<u8>, Key)> = read_packets(path)?
            .into_iter()
            .filter_map(|packet| {
                let key = counted(&packet.bytes)?;
                let frame = frame(&packet.bytes);
                (frame.len() <= MAX_FRAME).then_some((frame, key))
            })
            .collect();
        if packets.is_empty() {
            return Err(PortError::Capture {
                path: path.to_owned(),
                cause: "it has no IPv4 packet with a right checksum".to_owned(),
            });
        }
        let name = path.file_name().unwrap_or(path.as_os_str());
        let count = packets.len();
        let description = format!("{}: {count} packets in a loop", name.to_string_lossy());
        Ok(Traffic::of(description, packets, None))
    }

    /// Its description for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The next frame, which is counted.
    pub(super) fn packet(&mut self) -> &[u8] {
        let at = match &mut self.random {
            Some(random) => zipf(random, self.frames.len()),
            None => {
                let at = self.next;
                self.next = (at + 1) % self.frames.len();
                at
            }
        };
        let (frame, flow) = &self.frames[at];
        let (key, count) = &mut self.flows[*flow];
        self.packets += 1;
        *count += 1;
        if *count == 1 && self.pairs.insert(ends(*key)) {
            let (source, destination) = ends(*key);
            *self.destinations.entry(source).or_insert(0) += 1;
            *self.sources.entry(destination).or_insert(0) += 1;
        }
        frame
    }

    /// Packets so far.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Flows that there were so far.
    pub(super) fn flows(&self) -> impl Iterator<Item = Key> {
        let there = self.flows.iter().filter(|(_, count)| *count > 0);
        there.map(|(key, _)| *key)
    }

    /// Packets of a flow so far.
    pub(super) fn packets_of(&self, flow: Key) -> u64 {
        let place = self.places.get(&flow);
        place.map_or(0, |place| self.flows[*place].1)
    }

    /// Addresses that have sent.
    pub(super) fn senders(&self) -> impl Iterator<Item = Key> {
        self.destinations.keys().copied()
    }

    /// Addresses to which was sent.
    pub(super) fn receivers(&self) -> impl Iterator<Item = Key> {
        self.sources.keys().copied()
    }

    /// Addresses to which a source has sent.
    pub(super) fn destinations(&self, source: Key) -> u64 {
        self.destinations.get(&source).copied().unwrap_or(0)
    }

    /// Addresses that have sent to a destination.
    pub(super) fn sources(&self, destination: Key) -> u64 {
        self.sources.get(&destination).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_packets_of_few_large_flows() {
        let (mut one, mut other) = (Traffic::drawn(7, 1_000), Traffic::drawn(7, 1_000));
        let mut third = Traffic::drawn(8, 1_000);
        let mut differs = false;
        for _ in 0..20_000 {
            let packet = one.packet().to_vec();
            assert_eq!(packet, other.packet());
            differs |= packet != third.packet();
        }
        assert!(differs);
        assert_eq!(one.flows.len(), 1_000);
        let most = one.flows().map(|key| one.packets_of(key)).max();
        // ln 2 / ln 1001 of all packets.
        assert!(
            most.is_some_and(|most| (1_800..2_200).contains(&most)),
            "{most:?}"
        );
        let sum: u64 = one.flows().map(|key| one.packets_of(key)).sum();
        assert_eq!((sum, one.packets()), (20_000, 20_000));
    }

    #[test]
    fn packets_are_counted_as_the_program_parses_them() {
        let traffic = Traffic::drawn(1, 1);
        let (frame, _) = &traffic.frames[0];
        let right = &frame[14..];
        let key = counted(right).expect("it is counted");
        assert_eq!(key.0[3], 17);
        assert_eq!(key.0[2] >> 16, 1_024);
        let mut wrong = right.to_vec();
        wrong[8] ^= 1;
        assert_eq!(counted(&wrong), None);
        assert_eq!(counted(&right[..19]), None);
        assert_eq!(counted(&right[..24]).map(|key| key.0[2]), Some(0));
        let mut fragment = right.to_vec();
        fragment[6] ^= 0x20;
        let sum = u16::from_be_bytes([fragment[10], fragment[11]]);
        let (less, borrows) = sum.overflowing_sub(0x2000);
        let less = less.wrapping_sub(u16::from(borrows));
        fragment[10..12].copy_from_slice(&less.to_be_bytes());
        assert_eq!(counted(&fragment).map(|key| key.0[2]), Some(0));
    }
}
