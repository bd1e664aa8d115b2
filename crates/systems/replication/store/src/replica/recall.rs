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
        let is_live = |holder: &Holder| self.until(asked.shard, holder) > now;
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
            let holders = record.in_the_way(asked.owner, asked.shared);
            for holder in holders.filter(|holder| is_live(holder)) {
                ask(asked.key, record, holder);
            }
        } else if let Some(key) = self.reclaims.chosen_for(&(asked.shard, asked.key))
            && let Some(record) = shard.records.get(&key)
        {
            let inbound = record.mapped_to;
            let mapped = inbound.and_then(|key| Some((key, shard.records.get(&key)?)));
            for (key, record) in [(key, record)].into_iter().chain(mapped) {
                let holders = record.lease.holders().iter();
                for holder in holders.filter(|holder| is_live(holder)) {
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

    /// Withholds the shard from the switches of holders that `asked` has waited for since
    /// `recalled` without a release, if that is long enough (rule 5). Its own lease counts too,
    /// if it was given up with a write that is not here.
    pub(super) fn withhold(&mut self, now: u64, recalled: u64, asked: &Asked) {
        let due = recalled.saturating_add(self.config.limits.withhold_after);
        if now < due || self.config.faults.never_withhold {
            return;
        }
        let flow = (asked.shard, asked.key);
        let Some(shard) = self.shards.get(&asked.shard) else {
            return;
        };
        let mut holders: Vec<Holder> = Vec::new();
        if let Some(record) = shard.records.get(&asked.key) {
            holders.extend(record.in_the_way(asked.owner, asked.shared));
            let gave_up = record.lease.holders().iter();
            let gave_up = gave_up.filter(|holder| {
                holder.owner == asked.owner && holder.epoch == asked.gave_up.epoch
            });
            holders.extend(gave_up);
        } else if let Some(key) = self.reclaims.chosen_for(&flow)
            && let Some(record) = shard.records.get(&key)
        {
            let mapped = record.mapped_to.and_then(|key| shard.records.get(&key));
            let records = [record].into_iter().chain(mapped);
            holders.extend(records.flat_map(|record| record.lease.holders()));
        }
        for holder in holders {
            if self.until(asked.shard, &holder) > now {
                let is_new = self.promises.withhold(flow, &holder.owner);
                self.counters.withheld += u64::from(is_new);
            }
        }
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
