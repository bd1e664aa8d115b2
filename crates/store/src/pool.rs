//! Public ports: taken once, returned once, reused as late as possible.

use std::collections::{BTreeMap, VecDeque};

use core::net::Ipv4Addr;

use crate::config::NatPool;

/// The shard that owns `port`, when there are `shards` (rule 22).
pub fn shard_of_port(port: u16, shards: u16) -> u16 {
    ((u32::from(port) * u32::from(shards)) >> 16) as u16
}

/// First and last port of `pool` that `shard` of `shards` owns, if there is any.
pub fn shard_ports(shard: u16, shards: u16, pool: &NatPool) -> Option<(u16, u16)> {
    let width = 65_536 / u32::from(shards);
    let first = (u32::from(shard) * width).max(pool.first_port.into());
    let last = (u32::from(shard) * width + width - 1).min(pool.last_port.into());
    (first <= last).then_some((first as u16, last as u16))
}

/// The ports of one address and protocol. Ports that were never used go first,
/// then those that have been free the longest.
#[derive(Debug, Clone)]
struct Pool {
    fresh: u32,
    last: u16,
    freed: VecDeque<u16>,
}

impl Pool {
    fn new((first, last): (u16, u16)) -> Pool {
        Pool {
            fresh: first.into(),
            last,
            freed: VecDeque::new(),
        }
    }

    fn next(&self) -> Option<u16> {
        if self.fresh <= self.last.into() {
            Some(self.fresh as u16)
        } else {
            self.freed.front().copied()
        }
    }

    fn take_next(&mut self) {
        if self.fresh <= self.last.into() {
            self.fresh += 1;
        } else {
            self.freed.pop_front();
        }
    }

    fn free(&self) -> usize {
        (u32::from(self.last) + 1 - self.fresh) as usize + self.freed.len()
    }
}

/// The public ports that one shard owns.
#[derive(Debug, Clone)]
pub struct Pools {
    addresses: Vec<Ipv4Addr>,
    range: (u16, u16),
    by_protocol: BTreeMap<(u8, Ipv4Addr), Pool>,
}

impl Pools {
    pub(crate) fn new(shard: u16, shards: u16, pool: &NatPool) -> Option<Pools> {
        Some(Pools {
            addresses: pool.addresses.clone(),
            range: shard_ports(shard, shards, pool)?,
            by_protocol: BTreeMap::new(),
        })
    }

    /// The endpoint that the next mapping of `inside` gets. One inside address
    /// keeps to one public address while that has ports (RFC 4787 REQ-2).
    pub(crate) fn next(&self, protocol: u8, inside: Ipv4Addr) -> Option<(Ipv4Addr, u16)> {
        let count = self.addresses.len();
        let start = inside.to_bits() as usize % count;
        (start..start + count).find_map(|at| {
            let address = self.addresses[at % count];
            let port = match self.by_protocol.get(&(protocol, address)) {
                Some(pool) => pool.next(),
                None => Some(self.range.0),
            };
            Some((address, port?))
        })
    }

    /// Takes the endpoint that [`Pools::next`] named; `false` if it is not the
    /// next one of its address, and then nothing is taken.
    pub(crate) fn take(&mut self, protocol: u8, address: Ipv4Addr, port: u16) -> bool {
        if !self.addresses.contains(&address) {
            return false;
        }
        let pool = self
            .by_protocol
            .entry((protocol, address))
            .or_insert_with(|| Pool::new(self.range));
        if pool.next() != Some(port) {
            return false;
        }
        pool.take_next();
        true
    }

    /// Returns an endpoint that was taken.
    pub(crate) fn give(&mut self, protocol: u8, address: Ipv4Addr, port: u16) {
        if let Some(pool) = self.by_protocol.get_mut(&(protocol, address)) {
            pool.freed.push_back(port);
        }
    }

    /// The first port of one protocol and address that was never used; one beyond
    /// the last if all were.
    pub(crate) fn fresh(&self, protocol: u8, address: Ipv4Addr) -> u32 {
        let pool = self.by_protocol.get(&(protocol, address));
        pool.map_or(self.range.0.into(), |pool| pool.fresh)
    }

    /// Takes over a pool of another replica; one that is there already goes on with
    /// these free ports. `false` if it is not a pool of this shard.
    pub(crate) fn restore(
        &mut self,
        protocol: u8,
        address: Ipv4Addr,
        fresh: u32,
        freed: impl Iterator<Item = u16>,
    ) -> bool {
        let (first, last) = self.range;
        if !self.addresses.contains(&address)
            || !(u32::from(first)..=u32::from(last) + 1).contains(&fresh)
        {
            return false;
        }
        let pool = self
            .by_protocol
            .entry((protocol, address))
            .or_insert_with(|| Pool::new((first, last)));
        pool.fresh = fresh;
        pool.freed.extend(freed);
        pool.freed.iter().all(|port| (first..=last).contains(port))
    }

    /// First and last port that the shard owns of each address and protocol.
    pub fn range(&self) -> (u16, u16) {
        self.range
    }

    /// How many ports the shard owns of each address and protocol.
    pub fn size(&self) -> usize {
        usize::from(self.range.1 - self.range.0) + 1
    }

    /// How many ports of `address` and `protocol` are free.
    pub fn free(&self, protocol: u8, address: Ipv4Addr) -> usize {
        match self.by_protocol.get(&(protocol, address)) {
            Some(pool) => pool.free(),
            None if self.addresses.contains(&address) => self.size(),
            None => 0,
        }
    }

    /// Each protocol and address from which a port was ever taken.
    pub fn used(&self) -> impl Iterator<Item = (u8, Ipv4Addr)> {
        self.by_protocol.keys().copied()
    }

    /// The free ports of one protocol and address that were used before, the
    /// longest free first.
    pub fn freed(&self, protocol: u8, address: Ipv4Addr) -> impl Iterator<Item = u16> {
        self.by_protocol
            .get(&(protocol, address))
            .into_iter()
            .flat_map(|pool| pool.freed.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    const B: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);

    fn pools(first_port: u16, last_port: u16) -> Pools {
        let pool = NatPool {
            addresses: vec![A, B],
            first_port,
            last_port,
        };
        Pools::new(0, 1, &pool).unwrap()
    }

    #[test]
    fn ranges_of_shards_cover_all_ports_once() {
        let pool = NatPool {
            addresses: vec![A],
            first_port: 1000,
            last_port: 60_000,
        };
        let mut next = 1000;
        for shard in 0..8 {
            let (first, last) = shard_ports(shard, 8, &pool).unwrap();
            assert_eq!(first, next);
            for port in [first, last] {
                assert_eq!(shard_of_port(port, 8), shard);
            }
            next = last + 1;
        }
        assert_eq!(next, 60_001);
    }

    #[test]
    fn an_inside_address_keeps_its_public_address_while_it_has_ports() {
        let mut pools = pools(10, 11);
        let inside = Ipv4Addr::new(10, 0, 0, 3);
        let (home, port) = pools.next(6, inside).unwrap();
        assert!(pools.take(6, home, port));
        assert_eq!(pools.next(6, inside), Some((home, 11)));
        assert!(pools.take(6, home, 11));
        assert_ne!(pools.next(6, inside).unwrap().0, home);
    }

    #[test]
    fn protocols_have_ports_of_their_own() {
        let mut pools = pools(10, 10);
        assert!(pools.take(6, A, 10));
        assert_eq!(pools.free(6, A), 0);
        assert_eq!(pools.free(17, A), 1);
        assert!(pools.take(17, A, 10));
    }

    #[test]
    fn only_the_next_endpoint_can_be_taken() {
        let mut pools = pools(10, 12);
        assert!(!pools.take(6, A, 11));
        assert!(!pools.take(6, Ipv4Addr::LOCALHOST, 10));
        assert!(pools.take(6, A, 10));
        assert!(!pools.take(6, A, 10));
    }

    #[test]
    fn a_freed_port_rests_longest() {
        let mut pools = pools(10, 12);
        for port in 10..=12 {
            assert!(pools.take(6, A, port));
        }
        for port in [11, 10] {
            pools.give(6, A, port);
        }
        assert_eq!(pools.freed(6, A).collect::<Vec<_>>(), [11, 10]);
        assert!(pools.take(6, A, 11));
        pools.give(6, A, 11);
        assert!(pools.take(6, A, 10));
    }

    proptest! {
        #[test]
        fn no_port_is_handed_out_twice_nor_lost(steps in proptest::collection::vec(any::<(bool, u8)>(), 0..200)) {
            let mut pools = pools(100, 107);
            let mut taken = BTreeSet::new();
            for (give, pick) in steps {
                if give {
                    if let Some(&(address, port)) = taken.iter().nth(usize::from(pick) % taken.len().max(1)) {
                        taken.remove(&(address, port));
                        pools.give(6, address, port);
                    }
                } else if let Some((address, port)) = pools.next(6, Ipv4Addr::from(u32::from(pick))) {
                    prop_assert!(pools.take(6, address, port));
                    prop_assert!(taken.insert((address, port)));
                } else {
                    prop_assert_eq!(taken.len(), 16);
                }
                prop_assert_eq!(pools.free(6, A) + pools.free(6, B) + taken.len(), 16);
            }
        }
    }
}
