//! Fetching from memory side by side what a burst of requests will need.

use core::hash::BuildHasher;
use core::hint::black_box;

use indexmap::map::raw_entry_v1::RawEntryApiV1;
use stateplane_wire::replication::Packet;

use super::Replica;
use crate::shard::Records;

/// Requests that are looked at together; those behind them are not.
const TOGETHER: usize = 64;

/// Table in which a record is looked up, and the hash of its key.
pub(crate) type Sought<'a> = (&'a Records, u64);

impl Replica {
    /// Reads the records of requests that are to be handled next. A record that is not in
    /// the processor's caches takes several fetches from memory, each of which needs the one
    /// before; here those of many requests wait at the same time. It changes nothing else.
    pub fn look_ahead<'a>(&self, requests: impl Iterator<Item = &'a [u8]>) {
        fetch(requests.map(|request| self.sought(&Packet::new_unsummed(request).ok()?)));
    }

    /// Table and hash for the lookup of a request's record.
    pub(crate) fn sought(&self, request: &Packet<'_>) -> Option<Sought<'_>> {
        let records = &self.shards.get(&request.shard())?.records;
        Some((records, records.hasher().hash_one(request.key())))
    }
}

/// Reads the records that are there.
pub(crate) fn fetch<'a>(requests: impl Iterator<Item = Option<Sought<'a>>>) {
    let mut sought = [None; TOGETHER];
    for (request, sought) in requests.zip(&mut sought) {
        *sought = request;
    }
    // The first place with this hash is nearly always the key's own.
    let places = sought.map(|sought| {
        let (records, hash) = sought?;
        let place = records.raw_entry_v1().index_from_hash(hash, |_| true)?;
        Some((records, place))
    });
    for (records, place) in places.into_iter().flatten() {
        if let Some((key, record)) = records.get_index(place) {
            // They lie in several lines of the cache.
            black_box(key.class());
            black_box(record.last_active);
            black_box(record.lease.holders().len());
        }
    }
}
