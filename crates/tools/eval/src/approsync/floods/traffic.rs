//! Datagrams of many pairs of hosts, of which a few flood.

use super::super::packets::Packet;
use super::super::plane::SEED;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_sketch::Hash;
use stateplane_wire::ipv4::PROTOCOL_UDP;
use std::net::Ipv4Addr;

/// Packets each µs of all pairs that send little, of each busy one, and of each flood.
const USUAL: f64 = 1.0;
const BUSY: f64 = 0.012;
const FLOOD: f64 = 0.1;

/// Pairs that send little, busy pairs, and floods.
const PAIRS: u32 = 2_000;
const BUSY_PAIRS: u32 = 5;
const FLOODS: u32 = 4;

/// µs from the beginning to the first flood, and from one to the next.
const FIRST_US: u64 = 20_000;
const NEXT_US: u64 = 3_700;

/// A pair of hosts.
pub(super) type Pair = (Ipv4Addr, Ipv4Addr);

/// A flood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attack {
    pub(super) pair: Pair,
    /// µs after the beginning at which it begins.
    pub(super) begins: u64,
}

impl Attack {
    /// The pair as registers hold it.
    pub(super) fn value(&self) -> u64 {
        let (source, destination) = self.pair;
        u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits())
    }

    /// Its bucket of 2 to `bits`.
    pub(super) fn bucket(&self, bits: u32) -> u32 {
        let (source, destination) = self.pair;
        let words = [source.to_bits(), destination.to_bits(), 0, 0];
        Hash::new(SEED, 0).column(words, bits) as u32
    }
}

fn pair(number: u32) -> Pair {
    let source = Ipv4Addr::from_bits(0x0a09_0000 + number);
    (source, Ipv4Addr::from_bits(0x0a00_0000 + number % 7))
}

/// The floods.
pub(super) fn attacks() -> Vec<Attack> {
    let attacks = (0..FLOODS).map(|number| Attack {
        pair: pair(PAIRS + BUSY_PAIRS + number),
        begins: FIRST_US + u64::from(number) * NEXT_US,
    });
    attacks.collect()
}

/// A source of packets: equal seeds give equal packets.
pub(super) struct Datagrams {
    random: SmallRng,
    due: f64,
}

impl Datagrams {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            due: 0.0,
        }
    }

    /// Packets of `us` µs that begin so many µs after the beginning.
    pub(super) fn of(&mut self, at: u64, us: u64) -> Vec<Packet> {
        let begun = |number: &u32| at >= FIRST_US + u64::from(*number) * NEXT_US;
        let floods = (0..FLOODS).filter(begun).count() as u32;
        let busy = BUSY * f64::from(BUSY_PAIRS);
        let all = USUAL + busy + FLOOD * f64::from(floods);
        self.due += all * us as f64;
        let mut packets = Vec::new();
        while self.due >= 1.0 {
            self.due -= 1.0;
            let drawn = self.random.random::<f64>() * all;
            let number = if drawn < USUAL {
                self.random.random_range(0..PAIRS)
            } else if drawn < USUAL + busy {
                PAIRS + self.random.random_range(0..BUSY_PAIRS)
            } else {
                PAIRS + BUSY_PAIRS + self.random.random_range(0..floods)
            };
            let (source, destination) = pair(number);
            packets.push(Packet {
                source,
                destination,
                protocol: PROTOCOL_UDP,
                ports: (4_000, 53),
            });
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn floods_begin_one_after_the_other_and_send_most() {
        let mut datagrams = Datagrams::new(3);
        let mut counts: BTreeMap<Pair, u64> = BTreeMap::new();
        for at in (0..60_000).step_by(2) {
            for packet in datagrams.of(at, 2) {
                let pair = (packet.source, packet.destination);
                let first = counts.is_empty() || counts.contains_key(&pair);
                *counts.entry(pair).or_insert(0) += 1;
                let attack = attacks().into_iter().find(|it| it.pair == pair);
                assert!(first || attack.is_none_or(|it| at >= it.begins), "{pair:?}");
            }
        }
        let attacks: Vec<Pair> = attacks().iter().map(|it| it.pair).collect();
        let least = attacks.iter().map(|pair| counts[pair]).min();
        let others = counts.iter().filter(|(pair, _)| !attacks.contains(pair));
        let most = others.map(|(_, count)| *count).max();
        assert!(
            least > Some(2_000) && most < Some(1_000),
            "{least:?} {most:?}"
        );
    }
}
