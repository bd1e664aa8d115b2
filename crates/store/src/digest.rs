//! A number over the state of a replica, the same in whatever order its parts come.

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
