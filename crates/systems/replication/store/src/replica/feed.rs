//! The tail's part when a replica joins behind it: a snapshot in parts, then every
//! entry, and at last no answer before the other has it too.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_wire::chain::{
    Item, ItemHolder, ItemHolders, ItemPorts, Kind, LeaseKind, Packet, Repr,
};
use stateplane_wire::replication::Key;

use super::{Destination, Replica, Transmit};
use crate::digest::Digest;
use crate::link::Sender;
use crate::pool::Pools;
use crate::record::{Lease, Record};
use crate::shard::Shard;

/// Maximum number of snapshot parts in flight.
const PARTS_WINDOW: usize = 64;

/// Ports in one item.
const PORTS_PER_ITEM: usize = 512;

/// When the other is behind by fewer entries than this, answers begin to wait for
/// it.
const CLOSE: u64 = 64;

/// A replica that joins, as the tail sees it.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    /// Number of the last entry in the snapshot.
    upto: u64,
    /// Part of the snapshot that was not sent yet.
    rest: Rest,
    parts: Sender,
    /// All parts are acknowledged, entries follow.
    follows: bool,
    /// Answers wait for the other beyond this entry.
    gate: Option<u64>,
    heard: u64,
    /// The tail came back from its disk, and does not know what the other has: it cannot
    /// join any more, and is to be let go.
    lost: bool,
}

/// The part of a snapshot that was not sent, or not written.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    shards: VecDeque<Part>,
    begun: bool,
    digest: Digest,
    /// The last item says that there are no more.
    ends: bool,
    ended: bool,
}

/// A copy of a shard.
#[derive(Debug, Clone)]
struct Part {
    number: u16,
    epoch: u32,
    records: Vec<(Key, Record)>,
    pools: Option<Pools>,
}

impl Part {
    fn of(number: u16, shard: &Shard) -> Part {
        let records = shard.records.iter();
        Part {
            number,
            epoch: shard.epoch,
            records: records
                .map(|(key, record)| (*key, record.clone()))
                .collect(),
            pools: shard.pools.clone(),
        }
    }
}

impl Feed {
    pub(super) fn new(replica: &Replica) -> Feed {
        let limits = &replica.config.limits;
        Feed {
            upto: replica.applied,
            rest: Rest::new(replica),
            parts: Sender::new(PARTS_WINDOW, limits.resend_first, limits.resend_bound),
            follows: false,
            gate: None,
            heard: 0,
            lost: false,
        }
    }

    /// As that of a tail that came back: what the other lacks is kept, and nothing more is
    /// answered, until the controller has decided whether it joined.
    pub(super) fn resumed(replica: &Replica) -> Feed {
        let limits = &replica.config.limits;
        Feed {
            upto: replica.applied,
            rest: Rest {
                shards: VecDeque::new(),
                begun: false,
                digest: Digest::default(),
                ends: false,
                ended: true,
            },
            parts: Sender::new(PARTS_WINDOW, limits.resend_first, limits.resend_bound),
            follows: true,
            gate: Some(replica.applied),
            heard: 0,
            lost: true,
        }
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// True if answers wait for the joining replica.
    pub(super) fn gates(&self) -> bool {
        self.gate.is_some()
    }

    pub(super) fn joined(&self, acknowledged: u64) -> bool {
        !self.lost && self.gate.is_some_and(|gate| acknowledged >= gate)
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        match self.parts.unacknowledged() {
            0 => None,
            _ => self.parts.next_due(),
        }
    }

    pub(super) fn is_silent(&self, now: u64, time: u64) -> bool {
        let waits = self.parts.unacknowledged() > 0;
        self.lost || waits && now.saturating_sub(self.heard) >= time
    }
}

impl Rest {
    /// A copy of all that `replica` holds.
    fn new(replica: &Replica) -> Rest {
        let mut rest = Rest::empty(true);
        for number in replica.shards.keys() {
            rest.copy(replica, *number);
        }
        rest
    }

    /// Without a shard yet. `whole` unless it is to be of a state that a replica is being given.
    pub(super) fn empty(whole: bool) -> Rest {
        Rest {
            shards: VecDeque::new(),
            begun: false,
            digest: Digest::default(),
            ends: whole,
            ended: false,
        }
    }

    /// Adds a copy of a shard of `replica`.
    pub(super) fn copy(&mut self, replica: &Replica, number: u16) {
        let shard = replica.shards.get(&number);
        self.shards
            .extend(shard.map(|shard| Part::of(number, shard)));
    }

    /// The items of the next part, about `most` bytes; `None` after the last.
    pub(super) fn next_part(&mut self, most: usize) -> Option<Vec<u8>> {
        if self.ended {
            return None;
        }
        let mut bytes = Vec::with_capacity(most);
        while bytes.len() < most {
            if !self.append(&mut bytes) {
                self.ended = true;
                break;
            }
        }
        Some(bytes)
    }

    /// Appends the next item; `false` if it was the last.
    fn append(&mut self, bytes: &mut Vec<u8>) -> bool {
        let Some(shard) = self.shards.front_mut() else {
            if self.ends {
                let digest = self.digest.value();
                let _ = Item::End { digest }.emit(bytes);
            }
            return false;
        };
        let number = shard.number;
        if !self.begun {
            self.begun = true;
            self.digest.add_shard(number, shard.epoch);
            let epoch = shard.epoch;
            let item = Item::Shard {
                shard: number,
                epoch,
            };
            let _ = item.emit(bytes);
        } else if let Some((key, record)) = shard.records.pop() {
            self.digest.add_record(number, &key, &record);
            append_record(number, key, &record, bytes);
        } else {
            if let Some(pools) = &shard.pools {
                self.digest.add_pools(number, pools);
                for pool in pools.used_pools() {
                    let ports: Vec<u8> = pool
                        .freed
                        .iter()
                        .flat_map(|port| port.to_be_bytes())
                        .collect();
                    let mut chunks = ports.chunks(2 * PORTS_PER_ITEM);
                    let mut next = chunks.next().or(Some(&[]));
                    while let Some(Ok(ports)) = next.map(ItemPorts::new) {
                        let item = Item::Pool {
                            shard: number,
                            protocol: pool.protocol,
                            address: pool.address,
                            fresh: pool.fresh,
                            ports,
                        };
                        let _ = item.emit(bytes);
                        next = chunks.next();
                    }
                }
            }
            self.begun = false;
            self.shards.pop_front();
        }
        true
    }
}

fn append_record(shard: u16, key: Key, record: &Record, bytes: &mut Vec<u8>) {
    let mut holders = Vec::new();
    for holder in record.lease.holders() {
        let holder = ItemHolder {
            switch: holder.owner.switch,
            incarnation: holder.owner.incarnation,
            claim: holder.owner.claim,
            epoch: holder.epoch,
            address: holder.address,
        };
        holder.append(&mut holders);
    }
    let Ok(holders) = ItemHolders::new(&holders) else {
        return;
    };
    let item = Item::Record {
        shard,
        key,
        sequence: record.sequence,
        epoch: record.epoch,
        lease: match record.lease {
            Lease::None => LeaseKind::None,
            Lease::Exclusive(_) => LeaseKind::Exclusive,
            Lease::Shared(_) => LeaseKind::Shared,
        },
        holders,
        mapped_to: record.mapped_to,
        state: &record.state,
    };
    // Holders and state are bounded by the configuration, below what an item takes.
    let _ = item.emit(bytes);
}

impl Replica {
    /// Begins the snapshot of a joining replica again: it fell too far behind.
    pub(super) fn feed_anew(&mut self) {
        // Once answers wait for it, only the controller may let it go.
        if self.feed.as_ref().is_none_or(Feed::gates) {
            return;
        }
        self.counters.snapshots_restarted += 1;
        self.log.clear(self.applied);
        self.log.begin_link();
        self.feed = Some(Feed::new(self));
    }

    /// The next part of the snapshot, if the window has room.
    pub(super) fn next_part(&mut self, now: u64) -> Option<Transmit> {
        let feed = self.feed.as_mut()?;
        if feed.parts.is_full() {
            return None;
        }
        let items = feed.rest.next_part(self.config.limits.batch)?;
        if feed.parts.unacknowledged() == 0 {
            feed.heard = now;
        }
        let (number, base) = (feed.parts.next_number(), feed.upto);
        let part = Repr {
            number,
            base,
            body: &items,
            ..self.header(Kind::Snapshot)
        };
        let bytes = Arc::new(part.to_vec().ok()?);
        let feed = self.feed.as_mut()?;
        feed.parts.sent(now, Arc::clone(&bytes));
        self.counters.snapshot_parts += 1;
        Some(Transmit {
            to: Destination::Replica(self.place.position + 1),
            bytes,
        })
    }

    pub(super) fn resend_parts(&mut self, now: u64) {
        let to = Destination::Replica(self.place.position.saturating_add(1));
        if let Some(feed) = &mut self.feed {
            for bytes in feed.parts.resend(now) {
                self.counters.chain_resent += 1;
                self.outbox.push_back(Transmit { to, bytes });
            }
        }
    }

    pub(super) fn part_acknowledged(&mut self, now: u64, packet: &Packet<'_>) {
        let Some(feed) = &mut self.feed else {
            return;
        };
        if packet.base() != feed.upto || packet.incarnation() != self.incarnation {
            self.counters.chain_bad_ack += 1;
            return;
        }
        feed.heard = now;
        if !feed.parts.acknowledged(now, packet.number()) {
            self.counters.chain_bad_ack += 1;
            return;
        }
        if feed.rest.ended && feed.parts.unacknowledged() == 0 && !feed.follows {
            feed.follows = true;
            self.log.begin_link();
            self.joiner_acknowledged();
        }
    }

    /// The joining replica has the entries up to [`crate::log::Log::acknowledged`].
    pub(super) fn joiner_acknowledged(&mut self) {
        let acknowledged = self.log.acknowledged();
        let applied = self.applied;
        let Some(feed) = &mut self.feed else {
            return;
        };
        match feed.gate {
            Some(gate) => {
                self.answer_kept(acknowledged.max(self.answered));
                self.raise_base(acknowledged.max(gate));
            }
            None if feed.follows && applied - acknowledged < CLOSE => {
                feed.gate = Some(applied);
            }
            None => {}
        }
        self.log.trim(acknowledged);
    }
}
