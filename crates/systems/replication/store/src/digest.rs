//! Digest of a replica's state, independent of the order of its parts.

use core::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use stateplane_wire::replication::Key;

use crate::pool::Pools;
use crate::record::{Lease, Record};

/// Adds up the hashes of the parts of a state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    fn add(&mut self, hash: impl FnOnce(&mut FxHasher)) {
        let mut hasher = FxHasher::default();
        hash(&mut hasher);
        self.0 = self.0.wrapping_add(hasher.finish());
    }

    pub(crate) fn add_shard(&mut self, number: u16, epoch: u32) {
        self.add(|hasher| (1u8, number, epoch).hash(hasher));
    }

    pub(crate) fn add_record(&mut self, shard: u16, key: &Key, record: &Record) {
        self.add(|hasher| {
            let shared = matches!(record.lease, Lease::Shared(_));
            (2u8, shard, key.0, &record.state).hash(hasher);
            (record.sequence, record.epoch, shared, record.mapped_to).hash(hasher);
            for holder in record.lease.holders() {
                (holder.owner, holder.epoch).hash(hasher);
            }
        });
    }

    pub(crate) fn add_pools(&mut self, shard: u16, pools: &Pools) {
        for pool in pools.used_pools() {
            self.add(|hasher| {
                (3u8, shard, pool.protocol, pool.address).hash(hasher);
                (pool.fresh, pool.freed).hash(hasher);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Holder, Owner, State};
    use core::net::{Ipv4Addr, SocketAddrV4};

    fn of(record: &Record) -> u64 {
        let mut digest = Digest::default();
        digest.add_record(1, &Key([3; 16]), record);
        digest.value()
    }

    #[test]
    fn every_part_of_a_record_counts() {
        let holder = Holder {
            owner: Owner {
                switch: 1,
                incarnation: 2,
                claim: 3,
            },
            epoch: 4,
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            over: false,
        };
        let record = Record {
            state: State::from_slice(&[1, 2, 3, 4]),
            sequence: 5,
            epoch: 6,
            lease: Lease::Exclusive(holder),
            mapped_to: None,
            last_active: 7,
            looked_at: None,
        };
        let mut others = vec![record.clone(); 7];
        others[0].state[3] = 5;
        others[1].sequence = 6;
        others[2].epoch = 7;
        others[3].lease = Lease::Shared(vec![holder]);
        others[4].lease = Lease::None;
        others[5].mapped_to = Some(Key([4; 16]));
        others[6].lease = Lease::Exclusive(Holder { epoch: 5, ..holder });
        for other in &others {
            assert_ne!(of(other), of(&record), "{other:?}");
        }
        // Times are each replica's own.
        let later = Record {
            last_active: 8,
            lease: Lease::Exclusive(Holder {
                over: true,
                ..holder
            }),
            ..record.clone()
        };
        assert_eq!(of(&later), of(&record));
    }
}
