//! Read access to a replica's state for tests, checkers and operators.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::ipv4::PROTOCOL_TCP;
use stateplane_wire::replication::Key;

use crate::config::FirstLease;
use crate::digest::Digest;
use crate::pair::Standing;
use crate::pool::Pools;
use crate::record::Record;
use crate::replica::{Replica, standing};
use crate::service::{ServerLoads, ServiceId, server_in};
use crate::shard::{ConnectionKey, NatKey, Shard};

/// Why a replica's pool is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// One record of a mapping without the other, or with a state that does not
    /// lead to it.
    #[error("shard {shard}: record {key} lacks the other half of its mapping")]
    HalfMapping {
        /// The shard.
        shard: u16,
        /// The record.
        key: Key,
    },
    /// A port that is free and taken, or owned by another shard.
    #[error("shard {shard}: port {port} of {address} is taken and free, or not the shard's")]
    Twice {
        /// The shard.
        shard: u16,
        /// The public address.
        address: Ipv4Addr,
        /// The public port.
        port: u16,
    },
    /// Ports taken for remote endpoints, or connections that have ended, that are not those of the
    /// records.
    #[error("shard {shard}: ports taken for remote endpoints are not those of its records")]
    Connections {
        /// The shard.
        shard: u16,
    },
    /// Flows counted to servers that are not the flows that they have.
    #[error("shard {shard}: flows counted to servers are not those of its records")]
    Loads {
        /// The shard.
        shard: u16,
    },
    /// Free and taken ports are not all ports.
    #[error(
        "shard {shard}: protocol {protocol} of {address} has {free} free and {taken} taken ports of {size}"
    )]
    Leak {
        /// The shard.
        shard: u16,
        /// The IP protocol.
        protocol: u8,
        /// The public address.
        address: Ipv4Addr,
        /// Free ports.
        free: usize,
        /// Taken ports.
        taken: usize,
        /// All ports.
        size: usize,
    },
}

impl Replica {
    /// The record of `key` in `shard`.
    pub fn record(&self, shard: u16, key: &Key) -> Option<&Record> {
        self.shards.get(&shard)?.records.get(key)
    }

    /// All records, by shard and key.
    pub fn records(&self) -> impl Iterator<Item = (u16, &Key, &Record)> {
        self.shards.iter().flat_map(|(number, shard)| {
            let records = sorted(shard).into_iter();
            records.map(|(key, record)| (*number, key, record))
        })
    }

    /// Epoch of the shard's newest grant; 0 before the first.
    pub fn shard_epoch(&self, shard: u16) -> Option<u32> {
        self.shards.get(&shard).map(|shard| shard.epoch)
    }

    /// The ports that `shard` owns.
    pub fn pools(&self, shard: u16) -> Option<&Pools> {
        self.shards.get(&shard)?.pools.as_ref()
    }

    /// Requests that wait, and their bytes.
    pub fn parked(&self) -> (usize, usize) {
        self.parking.load()
    }

    /// Longest time for which a queue of requests has waited at `now` for those that hold its
    /// flow's lease now, in µs.
    pub fn longest_wait(&self, now: u64) -> u64 {
        let since = self.parking.longest();
        since.map_or(0, |since| now.saturating_sub(since.max(self.grants_from())))
    }

    /// Entries that not every replica of the chain has, as far as this one knows.
    pub fn unacknowledged(&self) -> u64 {
        self.applied.saturating_sub(self.base)
    }

    /// Number of the last entry decided or applied, counted by the chain's heads
    /// from 1.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Number of the entry up to which every replica of the chain has all, as far as
    /// this one knows.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Records that it keeps.
    pub fn record_count(&self) -> usize {
        self.record_count
    }

    /// Has the digest noted when entry `at` is the last one that it has, so that replicas
    /// can be compared while they change. At an entry that is past, nothing is noted.
    pub fn mark(&mut self, at: u64) {
        (self.mark, self.marked) = (Some(at), None);
        if at == self.applied {
            self.note_digest();
        }
    }

    /// The entry and the digest noted for the last [`Replica::mark`].
    pub fn marked(&self) -> Option<(u64, u64)> {
        self.marked
    }

    pub(crate) fn note_digest(&mut self) {
        self.mark = None;
        self.marked = Some((self.applied, self.digest()));
    }

    /// Digest of the replica's state: equal for replicas that hold the same records, grants, epochs
    /// and ports, with any clocks; and otherwise most likely different.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for (number, shard) in &self.shards {
            digest.add_shard(*number, shard.epoch);
            for (key, record) in &shard.records {
                digest.add_record(*number, key, record);
            }
            if let Some(pools) = &shard.pools {
                digest.add_pools(*number, pools);
            }
        }
        digest.value()
    }

    /// Number of flows of `shard` that each server has, by service and server; servers without
    /// flows are left out.
    pub fn server_loads(&self, shard: u16) -> impl Iterator<Item = (ServiceId, SocketAddrV4, u32)> {
        let loads = self.shards.get(&shard).map(|shard| &shard.loads);
        loads.into_iter().flat_map(ServerLoads::all)
    }

    /// Checks that every mapping has both its records, that every port is either free or
    /// taken by one mapping (rule 22), and that flows are counted to the servers that
    /// have them.
    ///
    /// # Errors
    ///
    /// The first contradiction, by shard and key.
    pub fn audit(&self) -> Result<(), AuditError> {
        for (&number, shard) in &self.shards {
            if shard.loads != self.loads_of(shard) {
                return Err(AuditError::Loads { shard: number });
            }
            if !self.connections_agree(shard) {
                return Err(AuditError::Connections { shard: number });
            }
            let mut taken: BTreeMap<(u8, Ipv4Addr), usize> = BTreeMap::new();
            let freed: BTreeSet<(u8, Ipv4Addr, u16)> = shard
                .pools
                .iter()
                .flat_map(|pools| {
                    pools.used().flat_map(|(protocol, address)| {
                        let ports = pools.freed(protocol, address);
                        ports.map(move |port| (protocol, address, port))
                    })
                })
                .collect();
            for (key, record) in sorted(shard) {
                let Some(other) = &record.mapped_to else {
                    continue;
                };
                let mapped = shard.records.get(other);
                let endpoint = NatKey::of(other).state();
                if mapped.is_none_or(|m| m.mapped_to != Some(*key))
                    || record.state.get(..endpoint.len()) != Some(&endpoint[..])
                {
                    return Err(AuditError::HalfMapping {
                        shard: number,
                        key: *key,
                    });
                }
                let outbound = |class| {
                    let class = self.classes.get(&class);
                    class.is_some_and(|c| matches!(c.first_lease, FirstLease::NatOutbound { .. }))
                };
                let Some(pools) = shard.pools.as_ref().filter(|_| outbound(key.class())) else {
                    continue;
                };
                let public = NatKey::of(other);
                let (first, last) = pools.range();
                if !(first..=last).contains(&public.port)
                    || freed.contains(&(public.protocol, public.address, public.port))
                {
                    return Err(AuditError::Twice {
                        shard: number,
                        address: public.address,
                        port: public.port,
                    });
                }
                *taken.entry((public.protocol, public.address)).or_default() += 1;
            }
            let Some(pools) = &shard.pools else {
                continue;
            };
            for (protocol, address) in pools.used() {
                let taken = taken.get(&(protocol, address)).copied().unwrap_or(0);
                let free = pools.free(protocol, address);
                if taken + free != pools.size() {
                    return Err(AuditError::Leak {
                        shard: number,
                        protocol,
                        address,
                        free,
                        taken,
                        size: pools.size(),
                    });
                }
            }
        }
        Ok(())
    }
}

impl Replica {
    /// True if the ports taken for remote endpoints are those of the mappings, each taken once, and
    /// the connections that count as ended those whose records say so.
    fn connections_agree(&self, shard: &Shard) -> bool {
        let Some(ports) = &shard.remote_ports else {
            return true;
        };
        let mut of_records = ports.all_free();
        let mut ended = BTreeSet::new();
        for (key, record) in &shard.records {
            let Some(other) = record.mapped_to.filter(|_| self.is_dependent(key.class())) else {
                continue;
            };
            let (outbound, inbound) = (ConnectionKey::of(key), ConnectionKey::of(&other));
            let public = SocketAddrV4::new(inbound.own.address, inbound.own.port);
            if inbound.remote != outbound.remote
                || !of_records.take(outbound.own.protocol, public, outbound.remote)
            {
                return false;
            }
            if outbound.own.protocol == PROTOCOL_TCP
                && standing(record, shard.records.get(&other)) == Standing::Ended
            {
                ended.insert(*key);
            }
        }
        of_records == *ports && (ended == shard.ended.keys() || self.config.faults.reclaim_live)
    }

    /// The flows of each server, counted anew.
    fn loads_of(&self, shard: &Shard) -> ServerLoads {
        let mut loads = ServerLoads::default();
        for (key, record) in &shard.records {
            let class = self.classes.get(&key.class());
            if let Some(FirstLease::Server { service_at }) = class.map(|class| class.first_lease)
                && let Some(service) = service_at.service(key)
                && let Some(server) = server_in(&record.state)
            {
                loads.add(service, server);
            }
        }
        loads
    }
}

/// The records of a shard by key.
fn sorted(shard: &Shard) -> Vec<(&Key, &Record)> {
    let mut records: Vec<_> = shard.records.iter().collect();
    records.sort_unstable_by_key(|(key, _)| **key);
    records
}
