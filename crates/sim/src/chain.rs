//! The store's replicas as nodes of the world.

use crate::apps::app;
use crate::clock::Clock;
use crate::frame::PUBLIC_ADDRESS;
use crate::key::{CLASS_COUNTER, CLASS_NAT_INBOUND, CLASS_NAT_OUTBOUND, endpoint_in, endpoint_of};
use crate::options::Options;
use crate::plan::REPLICAS;
use stateplane_history::{Endpoint, EventKind, PoolRange, Protocol};
use stateplane_store::{
    ClassConfig, Config, ConfigError, FirstLease, IdleTimeouts, Limits, NatPool, Replica,
};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::Key;
use std::collections::{BTreeMap, BTreeSet};

/// Shards of the key space, as the programs are compiled.
pub(crate) const SHARDS: u16 = 4;

/// The public ports. They reach into all four shards, but only by a few into the
/// first and the last, whose ports therefore run out and are used again.
const FIRST_PORT: u16 = (1 << 14) - 5;
const LAST_PORT: u16 = (3 << 14) + 4;

/// One replica, its clock, and what the recorder knows of its mappings.
pub(crate) struct ReplicaNode {
    pub(crate) replica: Replica,
    pub(crate) clock: Clock,
    pub(crate) busy_until: u64,
    pub(crate) timer: Option<u64>,
    mappings: BTreeMap<Endpoint, Endpoint>,
    /// Records ever made and forgotten, when `mappings` was brought up to date.
    changes: u64,
}

impl ReplicaNode {
    pub(crate) fn new(
        options: &Options,
        position: usize,
        first_sequence: u32,
        incarnation: u32,
        clock: Clock,
    ) -> Result<Self, ConfigError> {
        let scenario = &options.scenario;
        let mut config = Config::new(REPLICAS as u8, position as u8)
            .with_shards(SHARDS)
            .with_class(ClassConfig {
                class: CLASS_COUNTER,
                state_length: 8,
                first_lease: FirstLease::Zero,
                shared_only: false,
                idle: IdleTimeouts::never(),
            })
            .with_nat(
                NatPool {
                    addresses: vec![PUBLIC_ADDRESS],
                    first_port: FIRST_PORT,
                    last_port: LAST_PORT,
                },
                CLASS_NAT_OUTBOUND,
                CLASS_NAT_INBOUND,
            );
        for class in &mut config.classes {
            if [CLASS_NAT_OUTBOUND, CLASS_NAT_INBOUND].contains(&class.class) {
                class.idle = IdleTimeouts {
                    default: Some(scenario.idle),
                    by_protocol: BTreeMap::new(),
                };
            }
        }
        if let Some(application) = options.program.application() {
            let app = app(application);
            config = config.with_class(ClassConfig {
                class: app.class(),
                state_length: app.state_length(),
                first_lease: FirstLease::Zero,
                shared_only: false,
                idle: IdleTimeouts::never(),
            });
        }
        config.lease_period = scenario.lease_period;
        config.first_sequence = first_sequence;
        config.limits = Limits {
            resend_first: 2_000,
            resend_bound: 64_000,
            ..Limits::default()
        };
        if let Some(rule) = options.without {
            config.faults = rule.store_faults();
        }
        Ok(Self {
            replica: Replica::new(config, incarnation)?,
            clock,
            busy_until: 0,
            timer: None,
            mappings: BTreeMap::new(),
            changes: 0,
        })
    }

    /// The sequence number that it holds for `key`.
    pub(crate) fn held(&self, shard: u16, key: &Key) -> Option<u32> {
        Some(self.replica.record(shard, key)?.sequence())
    }

    /// The same, if the record's state is this endpoint.
    pub(crate) fn held_mapping(&self, shard: u16, key: &Key, to: Endpoint) -> Option<u32> {
        let record = self.replica.record(shard, key)?;
        let state = endpoint_in(record.state(), key.0[1]);
        (state == Some(to)).then(|| record.sequence())
    }

    fn mappings(&self) -> BTreeMap<Endpoint, Endpoint> {
        let records = self.replica.records();
        let inbound = records.filter(|(_, key, _)| key.class() == CLASS_NAT_INBOUND);
        inbound
            .filter_map(|(_, key, record)| {
                let inside = endpoint_in(record.state(), key.0[1])?;
                Some((endpoint_of(key), inside))
            })
            .collect()
    }

    /// Ports taken and freed since the last call.
    pub(crate) fn pool_events(&mut self, position: usize) -> Vec<EventKind> {
        let replica = position as u8;
        let counters = self.replica.counters();
        let changes = counters.records_made + counters.records_expired;
        if changes == self.changes {
            return Vec::new();
        }
        self.changes = changes;
        let present = self.mappings();
        let freed = self.mappings.iter();
        let freed = freed.filter(|(public, inside)| present.get(public) != Some(inside));
        let freed = freed.map(|(&public, _)| EventKind::Freed { replica, public });
        let taken = present.iter();
        let taken = taken.filter(|(public, inside)| self.mappings.get(public) != Some(inside));
        let taken = taken.map(|(&public, &inside)| EventKind::Taken {
            replica,
            inside,
            public,
        });
        let events = freed.chain(taken).collect();
        self.mappings = present;
        events
    }

    /// Its mappings and free ports at the end.
    pub(crate) fn pool_at_the_end(&self, position: usize) -> Vec<EventKind> {
        let replica = position as u8;
        let mapped = self.mappings().into_iter();
        let mapped = mapped.map(|(public, inside)| EventKind::Mapped {
            replica,
            inside,
            public,
        });
        let free = |number: u8| {
            let pools = (0..SHARDS).filter_map(|shard| self.replica.pools(shard));
            pools
                .map(|pools| pools.free(number, PUBLIC_ADDRESS) as u64)
                .sum()
        };
        let remaining = [
            (Protocol::Tcp, free(PROTOCOL_TCP)),
            (Protocol::Udp, free(PROTOCOL_UDP)),
        ];
        let remaining = remaining.map(|(protocol, free)| EventKind::Remaining {
            replica,
            address: PUBLIC_ADDRESS,
            protocol,
            free,
        });
        mapped.chain(remaining).collect()
    }
}

/// The pools as the checkers know them.
pub(crate) fn pools() -> Vec<PoolRange> {
    [Protocol::Tcp, Protocol::Udp]
        .map(|protocol| PoolRange {
            address: PUBLIC_ADDRESS,
            protocol,
            first: FIRST_PORT,
            last: LAST_PORT,
        })
        .to_vec()
}

/// What is wrong with the replicas at the end, when nothing is on its way.
pub(crate) fn anomalies(replicas: &[ReplicaNode]) -> Vec<String> {
    let mut found = Vec::new();
    let mut digests = BTreeSet::new();
    for (position, node) in replicas.iter().enumerate() {
        let replica = &node.replica;
        digests.insert(replica.digest());
        if let Err(error) = replica.audit() {
            found.push(format!("replica {position}: {error}"));
        }
        let inconsistent = replica.counters().chain_inconsistent;
        if inconsistent > 0 {
            found.push(format!(
                "replica {position}: {inconsistent} entries contradict its state"
            ));
        }
        if replica.unacknowledged() > 0 {
            found.push(format!(
                "replica {position}: {} entries are not acknowledged",
                replica.unacknowledged()
            ));
        }
    }
    if digests.len() > 1 {
        found.push("the replicas do not agree at the end".into());
    }
    found
}
