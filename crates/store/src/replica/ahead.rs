//! Fetching from memory side by side what a burst of requests will need.

use core::hash::BuildHasher;
use core::hint::black_box;

use indexmap::map::raw_entry_v1::RawEntryApiV1;
use stateplane_wire::replication::Packet;

use super::Replica;
use crate::shard::Records;

/// Requests that are looked at together.
const TOGETHER: usize = 64;

impl Replica {
    /// Reads the records of requests that are to be handled next. A record that is not in
    /// the processor's caches takes several fetches from memory, each of which needs the one
    /// before; here those of many requests wait at the same time. It changes nothing else.
    pub fn look_ahead<'a>(&self, requests: impl Iterator<Item = &'a [u8]>) {
        let mut sought: [Option<(&Records, u64)>; TOGETHER] = [None; TOGETHER];
        let mut count = 0;
        for (request, sought) in requests.zip(&mut sought) {
            if let Ok(packet) = Packet::new_checked(request)
                && let Some(shard) = self.shards.get(&packet.shard())
            {
                let hash = shard.records.hasher().hash_one(packet.key());
                *sought = Some((&shard.records, hash));
            }
            count += 1;
        }
        // The first place with this hash is nearly always the key's own.
        let places = sought.map(|sought| {
            let (records, hash) = sought?;
            let place = records.raw_entry_v1().index_from_hash(hash, |_| true)?;
            Some((records, place))
        });
        for (records, place) in places[..count].iter().flatten() {
            if let Some((key, record)) = records.get_index(*place) {
                // They lie in more than one line of the cache.
                black_box(key.class());
                black_box(record.last_active);
            }
        }
    }
}
