//! The way out through `apps/nat` by hand, of flows that are known: with a mapping of
//! the switch's own, or under a lease.

use super::Job;
use super::headers::{
    ETHERNET, IPV4, TCP, UDP, be16, be32, checksum, ipv4, put_checksum, put16, put32,
};
use super::{NextHop, prefixes::Prefixes};
use rustc_hash::FxHashMap;

const BUCKETS: usize = 16_384;
const WAYS: usize = 4;

/// Factors of the hash; a real one draws them (`p4/lib/flow_hash.p4`).
const FACTORS: [u64; 5] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
];

/// A flow's slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lease {
    /// End of the lease in µs; a mapping of the switch's own has none.
    pub deadline: Option<u64>,
    /// Time of the last packet in µs.
    pub used: u64,
    /// Public address.
    pub address: u32,
    /// Public port.
    pub port: u16,
}

/// A NAT from port 0 outwards.
pub struct Nat {
    keys: Vec<u128>,
    slots: Vec<Lease>,
    factors: [u64; 5],
    public: u32,
    routes: Prefixes,
    neighbours: FxHashMap<u32, NextHop>,
    /// Time in µs.
    pub now: u64,
}

impl Nat {
    /// A NAT of one public address; routes lead to neighbours (address, length, number).
    pub fn new(public: u32, routes: &[(u32, u32, u32)], neighbours: &[NextHop]) -> Nat {
        let numbered = neighbours.iter().enumerate();
        Nat {
            keys: vec![0; BUCKETS * WAYS],
            slots: vec![Lease::default(); BUCKETS * WAYS],
            factors: std::hint::black_box(FACTORS),
            public,
            routes: Prefixes::new(routes),
            neighbours: numbered.map(|(at, hop)| (at as u32, *hop)).collect(),
            now: 0,
        }
    }

    #[inline]
    fn key(protocol: u8, source: u32, port: u16) -> u128 {
        2 << 120 | u128::from(protocol) << 112 | u128::from(source) << 80 | u128::from(port) << 64
    }

    /// First slot of the key's bucket.
    #[inline]
    fn bucket(&self, key: u128) -> usize {
        let word = |at: u32| u64::from((key >> (96 - 32 * at)) as u32);
        let sum = |at: u32| self.factors[at as usize].wrapping_add(word(at));
        let mixed = sum(0)
            .wrapping_mul(sum(1))
            .wrapping_add(sum(2).wrapping_mul(sum(3)));
        let product = (mixed ^ mixed >> 32).wrapping_mul(self.factors[4] | 1);
        (((product >> 32) * BUCKETS as u64) >> 32) as usize * WAYS
    }

    /// Makes the mapping of an inside endpoint, unless it has one.
    ///
    /// # Panics
    ///
    /// If its bucket is full.
    pub fn learn(&mut self, protocol: u8, source: u32, port: u16, lease: Lease) {
        let key = Nat::key(protocol, source, port);
        if self.find(key).is_some() {
            return;
        }
        let first = self.bucket(key);
        let free = (first..first + WAYS).find(|&slot| self.keys[slot] == 0);
        let slot = free.expect("a free slot");
        self.keys[slot] = key;
        self.slots[slot] = lease;
    }

    #[inline]
    fn find(&self, key: u128) -> Option<usize> {
        let first = self.bucket(key);
        (first..first + WAYS).find(|&slot| self.keys[slot] == key)
    }
}

/// RFC 1624, equation 3.
#[inline]
fn exchange(checksum: u16, old: (u32, u16), new: (u32, u16)) -> u16 {
    let words = |(address, port): (u32, u16)| [(address >> 16) as u16, address as u16, port];
    let mut sum = u32::from(!checksum);
    for word in words(old) {
        sum += u32::from(!word);
    }
    for word in words(new) {
        sum += u32::from(word);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

impl Job for Nat {
    #[inline]
    fn frame(&mut self, port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16> {
        let header = ipv4(frame)?;
        let fragment = be16(header, 6);
        let transport = &frame[ETHERNET + IPV4..];
        let length = match header[9] {
            TCP => 20,
            UDP => 8,
            _ => return None,
        };
        if port != 0
            || header[0] != 0x45
            || fragment & 0x3fff != 0
            || transport.len() < length
            || checksum(header) != be16(header, 10)
        {
            return None;
        }
        let (source, destination) = (be32(header, 12), be32(header, 16));
        let source_port = be16(transport, 0);
        if destination == self.public {
            return None;
        }
        let slot = self.find(Nat::key(header[9], source, source_port))?;
        let lease = &mut self.slots[slot];
        if let Some(deadline) = lease.deadline {
            if self.now >= deadline {
                return None;
            }
            lease.used = self.now;
        }
        if header[8] <= 1 {
            return None;
        }
        let neighbour = self.routes.find(destination)?;
        let hop = self.neighbours.get(&neighbour)?;
        out.clear();
        out.extend_from_slice(frame);
        out[..12].copy_from_slice(&hop.addresses);
        out[ETHERNET + 8] -= 1;
        put32(out, ETHERNET + 12, lease.address);
        put_checksum(out);
        let at = ETHERNET + IPV4;
        put16(out, at, lease.port);
        let (old, new) = ((source, source_port), (lease.address, lease.port));
        let place = at + if header[9] == TCP { 16 } else { 6 };
        let old_checksum = be16(out, place);
        if header[9] == TCP {
            put16(out, place, exchange(old_checksum, old, new));
        } else if old_checksum != 0 {
            let new = exchange(old_checksum, old, new);
            put16(out, place, if new == 0 { 0xffff } else { new });
        }
        Some(hop.port)
    }
}
