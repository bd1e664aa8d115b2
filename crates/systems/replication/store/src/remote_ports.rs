//! Public ports of mappings that name the remote endpoint too (rule 27): a port is taken for one
//! remote endpoint at a time, and serves any number of them at once.
//!
//! All of it follows from the records, so replicas tell each other nothing of it.

use std::collections::BTreeMap;

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::config::NatPool;
use crate::pool::shard_ports;

/// Taken ports of one parity. A port's place is its half, rounded down; runs of neighbours are
/// kept by their first place, with their last one, and never touch each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Taken(BTreeMap<u16, u16>);

impl Taken {
    /// First and last place of the run that `place` lies in.
    fn run_at(&self, place: u16) -> Option<(u16, u16)> {
        let (&first, &last) = self.0.range(..=place).next_back()?;
        (place <= last).then_some((first, last))
    }

    /// The first free place from `place` on.
    fn free_from(&self, place: u16) -> u32 {
        self.run_at(place)
            .map_or(place.into(), |(_, last)| u32::from(last) + 1)
    }

    /// Takes a free place.
    fn insert(&mut self, place: u16) {
        let before = place.checked_sub(1).and_then(|place| self.run_at(place));
        let behind = place
            .checked_add(1)
            .and_then(|first| self.0.remove(&first))
            .unwrap_or(place);
        let first = before.map_or(place, |(first, _)| first);
        self.0.insert(first, behind);
    }

    /// Gives a place back that was taken.
    fn remove(&mut self, place: u16) {
        let Some((first, last)) = self.run_at(place) else {
            return;
        };
        self.0.remove(&first);
        if first < place {
            self.0.insert(first, place - 1);
        }
        if place < last {
            self.0.insert(place + 1, last);
        }
    }

    fn count(&self) -> usize {
        let runs = self.0.iter();
        runs.map(|(&first, &last)| usize::from(last - first) + 1)
            .sum()
    }
}

/// Ports of one parity, of a protocol and public address, as one remote endpoint sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    protocol: u8,
    address: Ipv4Addr,
    remote: SocketAddrV4,
    odd: bool,
}

/// The public ports that one shard owns, for each remote endpoint apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemotePorts {
    addresses: Vec<Ipv4Addr>,
    range: (u16, u16),
    /// Only what has taken ports, so there are no more than mappings.
    taken: BTreeMap<Name, Taken>,
}

fn is_odd(port: u16) -> bool {
    port & 1 == 1
}

impl RemotePorts {
    pub(crate) fn new(shard: u16, shards: u16, pool: &NatPool) -> Option<RemotePorts> {
        Some(RemotePorts {
            addresses: pool.addresses.clone(),
            range: shard_ports(shard, shards, pool)?,
            taken: BTreeMap::new(),
        })
    }

    /// The same ports, none of them taken.
    pub(crate) fn all_free(&self) -> RemotePorts {
        RemotePorts {
            taken: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// First and last place of a parity; none if the range has no such port.
    fn places(&self, odd: bool) -> Option<(u16, u16)> {
        let (first, last) = self.range;
        let first = first.checked_add(u16::from(is_odd(first) != odd))?;
        let last = last.checked_sub(u16::from(is_odd(last) != odd))?;
        (first <= last).then_some((first >> 1, last >> 1))
    }

    /// A free port of `name`: the first one from the `start`-th on, then from the first one on.
    fn free_port(&self, name: &Name, start: u32) -> Option<u16> {
        let (first, last) = self.places(name.odd)?;
        let from = first + (start % (u32::from(last - first) + 1)) as u16;
        let place = match self.taken.get(name) {
            None => from.into(),
            Some(taken) => [from, first]
                .into_iter()
                .map(|from| taken.free_from(from))
                .find(|place| *place <= last.into())?,
        };
        Some((place << 1) as u16 | u16::from(name.odd))
    }

    /// A public endpoint for a mapping from `inside` to `remote`. One inside address keeps to one
    /// public address while that has ports for the remote endpoint, and a port to its parity while
    /// the address has such ports (rule 22). `start` says where the search for a port begins; as it
    /// grows from call to call, a port that was given back rests.
    pub(crate) fn next(
        &self,
        protocol: u8,
        inside: SocketAddrV4,
        remote: SocketAddrV4,
        start: u32,
    ) -> Option<(Ipv4Addr, u16)> {
        let count = self.addresses.len();
        let home = inside.ip().to_bits() as usize % count;
        let odd = is_odd(inside.port());
        (home..home + count).find_map(|at| {
            let address = self.addresses[at % count];
            let port = |odd| {
                let name = Name {
                    protocol,
                    address,
                    remote,
                    odd,
                };
                self.free_port(&name, start)
            };
            let port = port(odd).or_else(|| port(!odd))?;
            Some((address, port))
        })
    }

    /// The name of `port`, and its place; none if the shard does not own it.
    fn place_of(
        &self,
        protocol: u8,
        public: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Option<(Name, u16)> {
        let (first, last) = self.range;
        let port = public.port();
        let owned = self.addresses.contains(public.ip()) && (first..=last).contains(&port);
        let name = Name {
            protocol,
            address: *public.ip(),
            remote,
            odd: is_odd(port),
        };
        owned.then_some((name, port >> 1))
    }

    /// True if the shard owns the public endpoint, and no mapping to `remote` has it.
    pub(crate) fn is_free(&self, protocol: u8, public: SocketAddrV4, remote: SocketAddrV4) -> bool {
        let place = self.place_of(protocol, public, remote);
        place.is_some_and(|(name, place)| {
            let taken = self.taken.get(&name);
            taken.is_none_or(|taken| taken.run_at(place).is_none())
        })
    }

    /// Takes a public endpoint for `remote`; `false` if it is taken for that already or not the
    /// shard's.
    pub(crate) fn take(
        &mut self,
        protocol: u8,
        public: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> bool {
        if !self.is_free(protocol, public, remote) {
            return false;
        }
        if let Some((name, place)) = self.place_of(protocol, public, remote) {
            self.taken.entry(name).or_default().insert(place);
        }
        true
    }

    /// Returns a public endpoint that was taken for `remote`.
    pub(crate) fn give(&mut self, protocol: u8, public: SocketAddrV4, remote: SocketAddrV4) {
        if let Some((name, place)) = self.place_of(protocol, public, remote)
            && let Some(taken) = self.taken.get_mut(&name)
        {
            taken.remove(place);
            if taken.0.is_empty() {
                self.taken.remove(&name);
            }
        }
    }

    /// Number of ports that the shard owns for each address and protocol.
    pub(crate) fn size(&self) -> usize {
        usize::from(self.range.1 - self.range.0) + 1
    }

    /// Number of free ports of `address` for `remote`.
    pub(crate) fn free(&self, protocol: u8, address: Ipv4Addr, remote: SocketAddrV4) -> usize {
        let taken = [false, true].into_iter().map(|odd| {
            let name = Name {
                protocol,
                address,
                remote,
                odd,
            };
            self.taken.get(&name).map_or(0, Taken::count)
        });
        self.size().saturating_sub(taken.sum())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    const B: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
    const REMOTE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 80);
    const OTHER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 81);

    fn ports(first_port: u16, last_port: u16) -> RemotePorts {
        let pool = NatPool {
            addresses: vec![A, B],
            first_port,
            last_port,
        };
        RemotePorts::new(0, 1, &pool).unwrap()
    }

    fn inside(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), port)
    }

    #[test]
    fn a_port_serves_each_remote_endpoint_once() {
        let mut ports = ports(10, 10);
        let public = SocketAddrV4::new(A, 10);
        assert!(ports.take(6, public, REMOTE));
        assert!(!ports.take(6, public, REMOTE));
        assert!(ports.take(6, public, OTHER));
        assert!(ports.take(17, public, REMOTE));
        assert_eq!(ports.free(6, A, REMOTE), 0);
        ports.give(6, public, REMOTE);
        assert!(!ports.is_free(6, public, OTHER));
        assert!(ports.take(6, public, REMOTE));
    }

    #[test]
    fn ports_of_others_are_not_taken() {
        let mut ports = ports(10, 12);
        for public in [
            SocketAddrV4::new(A, 9),
            SocketAddrV4::new(A, 13),
            SocketAddrV4::new(Ipv4Addr::LOCALHOST, 10),
        ] {
            assert!(!ports.take(6, public, REMOTE), "{public}");
        }
    }

    #[test]
    fn a_port_keeps_its_parity_and_its_address_while_there_are_such_ports() {
        let mut ports = ports(11, 14);
        let mut given = Vec::new();
        for port in [5000, 5002, 5001, 5004, 5003] {
            let (address, port) = ports.next(17, inside(port), REMOTE, 0).unwrap();
            assert!(ports.take(17, SocketAddrV4::new(address, port), REMOTE));
            given.push((address, port));
        }
        assert_eq!(given, [(A, 12), (A, 14), (A, 11), (A, 13), (B, 11)]);
        assert_eq!(ports.next(17, inside(5001), OTHER, 0), Some((A, 11)));
    }

    #[test]
    fn the_search_begins_where_it_is_told_and_goes_round() {
        let mut ports = ports(10, 17);
        let next = |ports: &RemotePorts, start| ports.next(6, inside(2), REMOTE, start);
        assert_eq!(next(&ports, 2), Some((A, 14)));
        assert_eq!(next(&ports, 5), Some((A, 12)));
        for port in [14, 16] {
            assert!(ports.take(6, SocketAddrV4::new(A, port), REMOTE));
        }
        assert_eq!(next(&ports, 2), Some((A, 10)));
        assert_eq!(next(&ports, u32::MAX), Some((A, 10)));
    }

    #[test]
    fn the_last_ports_have_places() {
        let mut ports = ports(65_535, 65_535);
        let (address, port) = ports.next(6, inside(2), REMOTE, 7).unwrap();
        assert_eq!((address, port), (A, 65_535));
        assert!(ports.take(6, SocketAddrV4::new(A, port), REMOTE));
        assert_eq!(ports.next(6, inside(2), REMOTE, 7), Some((B, 65_535)));
    }

    proptest! {
        #[test]
        fn no_port_is_taken_twice_for_a_remote_nor_lost(
            steps in proptest::collection::vec(any::<(bool, bool, u8, u16, u32)>(), 0..300)
        ) {
            let mut ports = ports(100, 107);
            let mut taken = BTreeSet::new();
            for (give, other, pick, port, start) in steps {
                let remote = if other { OTHER } else { REMOTE };
                if give {
                    let at = usize::from(pick) % taken.len().max(1);
                    if let Some(&(public, remote)) = taken.iter().nth(at) {
                        taken.remove(&(public, remote));
                        ports.give(6, public, remote);
                    }
                } else if let Some((address, port)) = ports.next(6, inside(port), remote, start) {
                    let public = SocketAddrV4::new(address, port);
                    prop_assert!(ports.take(6, public, remote));
                    prop_assert!(taken.insert((public, remote)));
                } else {
                    prop_assert_eq!(taken.iter().filter(|(_, of)| *of == remote).count(), 16);
                }
                for remote in [REMOTE, OTHER] {
                    let count = taken.iter().filter(|(_, of)| *of == remote).count();
                    prop_assert_eq!(ports.free(6, A, remote) + ports.free(6, B, remote) + count, 16);
                }
                for taken in ports.taken.values() {
                    let runs: Vec<_> = taken.0.iter().collect();
                    prop_assert!(runs.windows(2).all(|two| u32::from(*two[0].1) + 1 < u32::from(*two[1].0)));
                }
            }
        }
    }
}
