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

/// The even or the odd ports of one address and protocol. Ports that were never used go
/// first, then those that have been free the longest.
#[derive(Debug, Clone)]
struct Pool {
    /// The first that was never used; of the pool's parity, beyond the last if all were.
    fresh: u32,
    last: u16,
    freed: VecDeque<u16>,
}

impl Pool {
    fn new((first, last): (u16, u16), odd: bool) -> Pool {
        let first = u32::from(first);
        Pool {
            fresh: first + u32::from((first & 1 == 1) != odd),
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
            self.fresh += 2;
        } else {
            self.freed.pop_front();
        }
    }

    fn free(&self) -> usize {
        let fresh = (u32::from(self.last) + 2).saturating_sub(self.fresh) / 2;
        fresh as usize + self.freed.len()
    }
}

fn is_odd(port: u32) -> bool {
    port & 1 == 1
}

/// The ports of one parity from which some were taken, as replicas tell each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedPool<'a> {
    pub(crate) protocol: u8,
    pub(crate) address: Ipv4Addr,
    /// The first port that was never used; one beyond the last if all were. It is odd in
    /// the pool of the odd ports.
    pub(crate) fresh: u32,
    /// The free ports that were used before, the longest free first.
    pub(crate) freed: &'a VecDeque<u16>,
}

/// The public ports that one shard owns.
#[derive(Debug, Clone)]
pub struct Pools {
    addresses: Vec<Ipv4Addr>,
    range: (u16, u16),
    /// By protocol, address, and whether the ports are odd.
    used: BTreeMap<(u8, Ipv4Addr, bool), Pool>,
}

impl Pools {
    pub(crate) fn new(shard: u16, shards: u16, pool: &NatPool) -> Option<Pools> {
        Some(Pools {
            addresses: pool.addresses.clone(),
            range: shard_ports(shard, shards, pool)?,
            used: BTreeMap::new(),
        })
    }

    /// The endpoint that the next mapping of `inside` gets. One inside address keeps to
    /// one public address while that has ports (RFC 4787 REQ-2), and a port to its
    /// parity while the address has such ports (REQ-4).
    pub(crate) fn next(
        &self,
        protocol: u8,
        inside: Ipv4Addr,
        inside_port: u16,
    ) -> Option<(Ipv4Addr, u16)> {
        let count = self.addresses.len();
        let start = inside.to_bits() as usize % count;
        let odd = is_odd(inside_port.into());
        (start..start + count).find_map(|at| {
            let address = self.addresses[at % count];
            let port = |odd| match self.used.get(&(protocol, address, odd)) {
                Some(pool) => pool.next(),
                None => Pool::new(self.range, odd).next(),
            };
            Some((address, port(odd).or_else(|| port(!odd))?))
        })
    }

    fn pool(&mut self, protocol: u8, address: Ipv4Addr, odd: bool) -> &mut Pool {
        let range = self.range;
        let pool = self.used.entry((protocol, address, odd));
        pool.or_insert_with(|| Pool::new(range, odd))
    }

    /// Takes the endpoint that [`Pools::next`] named; `false` if it is not the
    /// next one of its address and parity, and then nothing is taken.
    pub(crate) fn take(&mut self, protocol: u8, address: Ipv4Addr, port: u16) -> bool {
        if !self.addresses.contains(&address) {
            return false;
        }
        let pool = self.pool(protocol, address, is_odd(port.into()));
        if pool.next() != Some(port) {
            return false;
        }
        pool.take_next();
        true
    }

    /// Returns an endpoint that was taken.
    pub(crate) fn give(&mut self, protocol: u8, address: Ipv4Addr, port: u16) {
        let name = (protocol, address, is_odd(port.into()));
        if let Some(pool) = self.used.get_mut(&name) {
            pool.freed.push_back(port);
        }
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
        let beyond = u32::from(last) + 2;
        if !self.addresses.contains(&address) || !(u32::from(first)..=beyond).contains(&fresh) {
            return false;
        }
        let odd = is_odd(fresh);
        let pool = self.pool(protocol, address, odd);
        pool.fresh = fresh;
        pool.freed.extend(freed);
        let mut freed = pool.freed.iter();
        freed.all(|port| (first..=last).contains(port) && is_odd((*port).into()) == odd)
    }

    /// The pools from which ports were taken.
    pub(crate) fn used_pools(&self) -> impl Iterator<Item = UsedPool<'_>> {
        self.used
            .iter()
            .map(|(&(protocol, address, _), pool)| UsedPool {
                protocol,
                address,
                fresh: pool.fresh,
                freed: &pool.freed,
            })
    }

    /// First and last port that the shard owns of each address and protocol.
    pub fn range(&self) -> (u16, u16) {
        self.range
    }

    /// Number of ports that the shard owns for each address and protocol.
    pub fn size(&self) -> usize {
        usize::from(self.range.1 - self.range.0) + 1
    }

    /// Number of free ports of `address` and `protocol`.
    pub fn free(&self, protocol: u8, address: Ipv4Addr) -> usize {
        if !self.addresses.contains(&address) {
            return 0;
        }
        let free = |odd| match self.used.get(&(protocol, address, odd)) {
            Some(pool) => pool.free(),
            None => Pool::new(self.range, odd).free(),
        };
        free(false) + free(true)
    }

    /// Each protocol and address from which a port was ever taken.
    pub fn used(&self) -> impl Iterator<Item = (u8, Ipv4Addr)> {
        let mut last = None;
        let names = self
            .used
            .keys()
            .map(|&(protocol, address, _)| (protocol, address));
        names.filter(move |&name| last.replace(name) != Some(name))
    }

    /// The free ports of one protocol and address that were used before: of each parity
    /// the longest free first.
    pub fn freed(&self, protocol: u8, address: Ipv4Addr) -> impl Iterator<Item = u16> {
        [false, true]
            .into_iter()
            .filter_map(move |odd| self.used.get(&(protocol, address, odd)))
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
        let (home, port) = pools.next(6, inside, 4000).unwrap();
        assert!(pools.take(6, home, port));
        assert_eq!(pools.next(6, inside, 4000), Some((home, 11)));
        assert!(pools.take(6, home, 11));
        assert_ne!(pools.next(6, inside, 4000).unwrap().0, home);
    }

    #[test]
    fn a_port_keeps_its_parity_while_there_are_such_ports() {
        let mut pools = pools(11, 14);
        let inside = Ipv4Addr::new(10, 0, 0, 2);
        let mut given = Vec::new();
        for port in [5000, 5002, 5001, 5004, 5003] {
            let (address, port) = pools.next(17, inside, port).unwrap();
            assert!(pools.take(17, address, port));
            given.push((address, port));
        }
        let home = given[0].0;
        // The third even one gets the last odd port of the same address, and the next odd
        // one goes elsewhere.
        let elsewhere = given[4].0;
        assert_ne!(home, elsewhere);
        let ports = [
            (home, 12),
            (home, 14),
            (home, 11),
            (home, 13),
            (elsewhere, 11),
        ];
        assert_eq!(given, ports);
        pools.give(17, home, 14);
        pools.give(17, home, 11);
        assert_eq!(pools.next(17, inside, 7), Some((home, 11)));
        assert_eq!(pools.next(17, inside, 8), Some((home, 14)));
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
        assert!(!pools.take(6, A, 12));
        assert!(!pools.take(6, Ipv4Addr::LOCALHOST, 10));
        assert!(pools.take(6, A, 10));
        assert!(!pools.take(6, A, 10));
    }

    #[test]
    fn a_freed_port_rests_longest() {
        let mut pools = pools(10, 15);
        for port in 10..=15 {
            assert!(pools.take(6, A, port));
        }
        for port in [12, 11, 10] {
            pools.give(6, A, port);
        }
        assert_eq!(pools.freed(6, A).collect::<Vec<_>>(), [12, 10, 11]);
        assert!(pools.take(6, A, 12));
        pools.give(6, A, 12);
        assert!(pools.take(6, A, 10));
    }

    proptest! {
        #[test]
        fn no_port_is_handed_out_twice_nor_lost(steps in proptest::collection::vec(any::<(bool, u8, u16)>(), 0..200)) {
            let mut pools = pools(100, 107);
            let mut taken = BTreeSet::new();
            for (give, pick, inside_port) in steps {
                if give {
                    if let Some(&(address, port)) = taken.iter().nth(usize::from(pick) % taken.len().max(1)) {
                        taken.remove(&(address, port));
                        pools.give(6, address, port);
                    }
                } else if let Some((address, port)) = pools.next(6, Ipv4Addr::from(u32::from(pick)), inside_port) {
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
