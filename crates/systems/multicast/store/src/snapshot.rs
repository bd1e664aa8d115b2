//! The state of a replica, with which another begins that joins.

use crate::message::{Key, Outcome, Part, Value};
use crate::store::{Last, Store, StoreConfig};
use crate::table::{Field, Malformed};
use stateplane_multicast::FinalTime;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the encoding, its first byte.
const VERSION: u8 = 1;

/// The state of a replica at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) store: Store,
    /// Nothing that was delivered waited to be executed.
    pub(crate) idle: bool,
    /// Parts that replicas of other shards may ask for.
    pub(crate) parts: BTreeMap<FinalTime, Part>,
}

fn put_all<'a, T: Field + 'a>(out: &mut Vec<u8>, all: impl ExactSizeIterator<Item = &'a T>) {
    (all.len() as u32).put(out);
    for one in all {
        one.put(out);
    }
}

/// Bytes of an entry at least, so that a count is not believed that the bytes cannot hold.
fn take_count(bytes: &mut &[u8], what: &'static str, least: usize) -> Result<usize, Malformed> {
    let found = u32::take(bytes)? as usize;
    if found
        .checked_mul(least)
        .is_none_or(|needed| needed > bytes.len())
    {
        return Err(Malformed::Length { what, found });
    }
    Ok(found)
}

impl Snapshot {
    /// The place up to which the state has all commands.
    pub fn at(&self) -> FinalTime {
        self.store.at
    }

    /// True if the state has all messages whose places have this time or a lower one. Of those of one
    /// time in several groups, which are delivered together, some may be waiting.
    pub fn covers(&self, time: u64) -> bool {
        self.store.at.time > time || (self.store.at.time == time && self.idle)
    }

    /// Its bytes. Equal states have equal ones.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        let Store {
            config,
            at,
            records,
            clients,
            ..
        } = &self.store;
        config.shard.put(&mut out);
        config.shards.put(&mut out);
        at.put(&mut out);
        self.idle.put(&mut out);
        (records.len() as u32).put(&mut out);
        for (key, value) in records {
            key.put(&mut out);
            value.put(&mut out);
        }
        (clients.len() as u32).put(&mut out);
        for (client, last) in clients {
            client.put(&mut out);
            last.opened.put(&mut out);
            last.number.put(&mut out);
            last.at.put(&mut out);
            last.outcome.put(&mut out);
        }
        put_all(&mut out, self.parts.values());
        out
    }

    /// Reads a snapshot that is all of `bytes`, of the shard that `config` says.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is none, or another shard's, or larger than `config` allows.
    pub fn parse(config: StoreConfig, mut bytes: &[u8]) -> Result<Snapshot, Malformed> {
        let bytes = &mut bytes;
        match u8::take(bytes)? {
            VERSION => {}
            version => return Err(Malformed::Version(version)),
        }
        for (what, expected) in [("shard", config.shard), ("number of shards", config.shards)] {
            let found = u8::take(bytes)?;
            if found != expected {
                return Err(Malformed::Unknown { what, found });
            }
        }
        let mut store = Store::new(config);
        store.at = FinalTime::take(bytes)?;
        let idle = bool::take(bytes)?;
        let records = take_count(bytes, "records", 4)?;
        for _ in 0..records {
            let key = Key::take(bytes)?;
            store.records.insert(key, Value::take(bytes)?);
        }
        let clients = take_count(bytes, "clients", 30)?;
        for _ in 0..clients {
            let client = u64::take(bytes)?;
            let last = Last {
                opened: FinalTime::take(bytes)?,
                number: u64::take(bytes)?,
                at: FinalTime::take(bytes)?,
                outcome: Outcome::take(bytes)?,
            };
            store.clients.insert(client, last);
        }
        let found = store.records.len();
        if found != records || found > config.most_records {
            return Err(Malformed::Length {
                what: "records",
                found,
            });
        }
        let found = store.clients.len();
        if found != clients || found > config.most_clients {
            return Err(Malformed::Length {
                what: "clients",
                found,
            });
        }
        let recent = store
            .clients
            .iter()
            .map(|(client, last)| (last.at, *client));
        store.recent = recent.collect::<BTreeSet<_>>();
        let mut parts = BTreeMap::new();
        for _ in 0..take_count(bytes, "parts", 13)? {
            let part = Part::take(bytes)?;
            parts.insert(part.at, part);
        }
        match bytes.len() {
            0 => Ok(Snapshot { store, idle, parts }),
            extra => Err(Malformed::Trailing(extra)),
        }
    }
}
