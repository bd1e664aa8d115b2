//! `bench/p4/forward.p4` by hand.

use super::Job;
use super::headers::{ETHERNET, be16, be32, checksum, ipv4, put_checksum};
use super::prefixes::Prefixes;
use rustc_hash::FxHashMap;

/// Next hop of a packet.
#[derive(Clone, Copy, Debug)]
pub struct NextHop {
    /// The port.
    pub port: u16,
    /// The new Ethernet addresses, destination first.
    pub addresses: [u8; 12],
}

/// IPv4 forwarding.
pub struct Forward {
    routes: Prefixes,
    next_hops: FxHashMap<u16, NextHop>,
    /// Packets that were not forwarded.
    pub dropped: u64,
}

impl Forward {
    /// From prefixes (address, length, number of the next hop) and next hops.
    pub fn new(routes: &[(u32, u32, u32)], next_hops: &[(u16, NextHop)]) -> Forward {
        Forward {
            routes: Prefixes::new(routes),
            next_hops: next_hops.iter().copied().collect(),
            dropped: 0,
        }
    }

    /// Bytes that its routes take.
    pub fn bytes(&self) -> usize {
        self.routes.bytes()
    }
}

impl Job for Forward {
    #[inline]
    fn frame(&mut self, _port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16> {
        let header = ipv4(frame).filter(|header| {
            let length = header[0] & 0xf;
            header[0] >> 4 == 4
                && length >= 5
                && header[8] > 1
                && (length != 5 || checksum(header) == be16(*header, 10))
        });
        let Some(header) = header else {
            self.dropped += 1;
            return None;
        };
        let next_hop = self.routes.find(be32(header, 16))?;
        let next_hop = self.next_hops.get(&(next_hop as u16))?;
        out.clear();
        out.extend_from_slice(frame);
        out[..12].copy_from_slice(&next_hop.addresses);
        out[ETHERNET + 8] -= 1;
        if header[0] & 0xf == 5 {
            put_checksum(out);
        }
        Some(next_hop.port)
    }
}
