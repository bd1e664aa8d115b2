//! The head's part in moving a lease from one switch to another while both live: to
//! ask holders to give it up, and to take it back (rule 19).

use stateplane_wire::chain::Decision;
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

use super::decide::Asked;
use super::{Destination, Replica};
use crate::record::{Holder, Owner, Record};
use crate::serial::newer;

impl Replica {
    /// Asks all holders whose lease conflicts with `asked` until `until` to release it, and returns
    /// the time of the next look: `interval` later, or when the last lease is over.
    pub(super) fn recall(&mut self, now: u64, asked: &Asked, until: u64, interval: u64) -> u64 {
        if !self.config.recall {
            return until;
        }
        let Some(shard) = self.shards.get(&asked.shard) else {
            return until;
        };
        let mut recalls = Vec::new();
        let mut ask = |key: Key, record: &Record, holder: &Holder| {
            let message = Repr {
                chain_epoch: self.place.epoch,
                shard: asked.shard,
                switch_id: holder.owner.switch,
                incarnation: holder.owner.incarnation,
                claim: holder.owner.claim,
                lease_epoch: holder.epoch,
                sequence: record.sequence,
                ..Repr::new(MessageType::Recall, key)
            };
            recalls.extend(message.to_vec().map(|bytes| (holder.address, bytes)));
        };
        if let Some(record) = shard.records.get(&asked.key) {
            for holder in record.in_the_way(now, asked.owner, asked.shared) {
                ask(asked.key, record, holder);
            }
        } else if let Some(key) = self.reclaims.chosen_for(&(asked.shard, asked.key))
            && let Some(record) = shard.records.get(&key)
        {
            let inbound = record.mapped_to;
            let mapped = inbound.and_then(|key| Some((key, shard.records.get(&key)?)));
            for (key, record) in [(key, record)].into_iter().chain(mapped) {
                let holders = record.lease.holders().iter();
                for holder in holders.filter(|holder| holder.until > now) {
                    ask(key, record, holder);
                }
            }
        } else {
            return until;
        }
        self.counters.recalled += recalls.len() as u64;
        for (to, bytes) in recalls {
            self.transmit(Destination::Switch(to), bytes.into());
        }
        until.min(now.saturating_add(interval))
    }

    /// When to recall a lease that was just granted and is valid until `until`.
    pub(super) fn after_grant(&self, now: u64, until: u64) -> u64 {
        let interval = self.config.limits.recall_first;
        if self.config.recall {
            until.min(now.saturating_add(interval))
        } else {
            until
        }
    }

    /// Judges a release: it counts under the epoch of a present grant, and if the
    /// store has all that was written under that.
    pub(super) fn judge_release(&mut self, packet: &Packet<'_>) -> Option<Decision> {
        let shard = self.shards.get(&packet.shard());
        let record = shard.and_then(|shard| shard.records.get(&packet.key()));
        let held = record.and_then(|record| {
            let holder = &record.lease.holders()[record.place_of(&Owner::of(packet))?];
            (holder.epoch == packet.lease_epoch()).then_some(record.sequence)
        });
        let Some(sequence) = held else {
            self.counters.release_stale += 1;
            return None;
        };
        if newer(packet.sequence(), sequence) && !self.config.faults.release_early {
            self.counters.release_early += 1;
            return None;
        }
        Some(Decision::Release)
    }
}
