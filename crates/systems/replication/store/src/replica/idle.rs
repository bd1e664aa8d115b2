//! Idle records: when they expire, and which are evicted first when the store is full.
//!
//! Reads leave no trace at the store, so before a record is forgotten its holders are asked whether
//! they have used their lease of late (rule 22).

use core::net::SocketAddrV4;

use smallvec::SmallVec;
use stateplane_wire::chain::Decision;
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

use super::{Destination, Replica};
use crate::creator::creator_of;
use crate::parking::Flow;
use crate::record::{Holder, Owner, Record};

/// Number of records that a replica other than the head examines for each message.
const IDLE_LOOKS: usize = 4;

/// Maximum number of records, those that are idle soonest, that the head examines to make room.
const EVICTION_LOOKS: usize = 16;

/// Placeholder for the switch address of an expiry, which no switch requested.
pub(super) const NO_SWITCH: SocketAddrV4 = SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, 0);

/// Holders of a record, of a mapping of both, that were asked whether their lease is idle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    /// When they were first asked.
    first: u64,
    /// When they are asked again, and the time from then to the next time.
    due: u64,
    again: u64,
    /// Idle time in µs that is asked for, if the record is to make room for another before its
    /// timeout.
    evicts_after: Option<u64>,
}

impl Replica {
    /// Keeps the list of idle times short and ready for the day on which this
    /// replica becomes the head.
    pub(super) fn look_at_idle(&mut self, now: u64) {
        for _ in 0..IDLE_LOOKS {
            let Some(&(due, (shard, key))) = self.expiry_due.first() else {
                return;
            };
            if due > now {
                return;
            }
            self.expiry_due.pop_first();
            if let Some(idle) = self.idle_at(now, shard, &key) {
                let later = now.saturating_add(self.config.term.into());
                self.look_again(idle.max(later), shard, key);
            }
        }
    }

    /// Has the record, which is not on the list of idle times, looked at at `due`.
    fn look_again(&mut self, due: u64, shard: u16, key: Key) {
        if let Some(record) = self.record_mut(shard, &key) {
            record.looked_at = Some(due);
            self.expiry_due.insert((due, (shard, key)));
        }
    }

    /// Remembers to look whether the record is idle; the outbound one speaks for
    /// both of a mapping. A record is on the list of idle times once.
    pub(super) fn watch_idle(&mut self, now: u64, number: u16, key: Key) {
        let class = self.classes.get(&key.class());
        if class.and_then(creator_of).is_none() {
            return;
        }
        let Some(due) = self.idle_at(now, number, &key) else {
            return;
        };
        let before = self
            .record_mut(number, &key)
            .and_then(|record| record.looked_at);
        if before.is_some_and(|before| before <= due) {
            return;
        }
        if let Some(before) = before {
            self.expiry_due.remove(&(before, (number, key)));
        }
        self.look_again(due, number, key);
    }

    fn record_mut(&mut self, shard: u16, key: &Key) -> Option<&mut Record> {
        self.shards.get_mut(&shard)?.records.get_mut(key)
    }

    /// Forgets a record, and the one mapped to it, if both are idle and nobody holds a lease of
    /// them; asks who does; otherwise schedules another look.
    pub(super) fn consider_expiry(&mut self, now: u64, shard: u16, key: Key) {
        let flow = (shard, key);
        self.note_silence(now, &flow);
        let Some(due) = self.idle_at(now, shard, &key) else {
            self.end_question(&flow);
            return;
        };
        let evicts_after = self.questions.get(&flow).and_then(|it| it.evicts_after);
        let asks = due <= now
            || evicts_after.is_some_and(|after| self.is_unused_for(now, after, shard, &key));
        let next = if asks {
            self.ask_holders(now, &flow, evicts_after)
        } else {
            None
        };
        if let Some(next) = next {
            self.look_again(next, shard, key);
            return;
        }
        self.end_question(&flow);
        if due <= now {
            self.decided(now, Decision::Expire { shard, key }, NO_SWITCH, None);
        } else {
            self.look_again(due, shard, key);
        }
    }

    /// The keys of a record and of the one mapped to it.
    fn keys_of(&self, (shard, key): &Flow) -> impl Iterator<Item = Key> + use<> {
        let record = self.shards.get(shard).and_then(|it| it.records.get(key));
        let mapped = record.and_then(|record| record.mapped_to);
        [*key].into_iter().chain(mapped)
    }

    /// Who holds a lease of the record and may be using it, or the one mapped to it, with the key
    /// of that.
    fn live_holders(&self, now: u64, flow: &Flow) -> Vec<(Key, Holder, u32)> {
        let Some(shard) = self.shards.get(&flow.0) else {
            return Vec::new();
        };
        let records = self.keys_of(flow);
        let records = records.filter_map(|key| Some((key, shard.records.get(&key)?)));
        let holders = records.flat_map(|(key, record)| {
            let holders = record.lease.holders().iter();
            holders.map(move |holder| (key, *holder, record.sequence))
        });
        let live = |holder: &Holder| self.until(flow.0, holder) > now;
        holders.filter(|(_, holder, _)| live(holder)).collect()
    }

    /// Takes the silence of holders that can be outwaited for use until then. Their switch's term
    /// has ended, so they use nothing before they ask again.
    fn note_silence(&mut self, now: u64, flow: &Flow) {
        for key in self.keys_of(flow) {
            let record = self.shards.get(&flow.0).and_then(|it| it.records.get(&key));
            let holders = record.map_or(&[][..], |record| record.lease.holders());
            let until = holders.iter().map(|holder| self.until(flow.0, holder));
            let until: SmallVec<[u64; 4]> = until.collect();
            let Some(record) = self.record_mut(flow.0, &key) else {
                continue;
            };
            for (holder, until) in record.holders_mut().iter_mut().zip(&until) {
                holder.over |= *until <= now;
            }
            let used = until.iter().filter(|until| **until <= now).max();
            record.last_active = record.last_active.max(used.copied().unwrap_or(0));
        }
    }

    /// Asks the holders of an idle record whether they use it, if it is time to, and gives the
    /// time of the next look; `None` if there are none.
    fn ask_holders(&mut self, now: u64, flow: &Flow, evicts_after: Option<u64>) -> Option<u64> {
        let holders = self.live_holders(now, flow);
        if holders.is_empty() {
            return None;
        }
        let limits = self.config.limits;
        let question = self.questions.entry(*flow).or_insert(Question {
            first: now,
            due: now,
            again: limits.recall_first,
            evicts_after,
        });
        question.evicts_after = evicts_after;
        let (first, asks) = (question.first, question.due <= now);
        if asks {
            question.due = now.saturating_add(question.again);
            question.again = (2 * question.again).min(limits.recall_bound);
        }
        let next = question.due;
        let withheld = first.saturating_add(limits.withhold_after);
        if asks {
            for (key, holder, sequence) in &holders {
                let age = evicts_after.or_else(|| self.timeout_of(flow.0, key));
                let message = Repr {
                    chain_epoch: self.place.epoch,
                    shard: flow.0,
                    switch_id: holder.owner.switch,
                    incarnation: holder.owner.incarnation,
                    claim: holder.owner.claim,
                    lease_epoch: holder.epoch,
                    sequence: *sequence,
                    age: age.unwrap_or(0),
                    ..Repr::new(MessageType::Idle, *key)
                };
                if let Ok(bytes) = message.to_vec() {
                    self.counters.asked_idle += 1;
                    self.transmit(Destination::Switch(holder.address), bytes.into());
                }
            }
        }
        if now >= withheld && !self.config.faults.never_withhold {
            for (_, holder, _) in &holders {
                let is_new = self.promises.withhold(*flow, &holder.owner);
                self.counters.withheld += u64::from(is_new);
            }
        }
        Some(if withheld > now {
            next.min(withheld)
        } else {
            next
        })
    }

    pub(super) fn end_question(&mut self, flow: &Flow) {
        if self.questions.remove(flow).is_some() {
            self.promises.let_go(flow);
        }
    }

    /// The record that speaks for that of `flow` in the list of idle times.
    fn watched(&self, flow: &Flow) -> Flow {
        let record = self
            .shards
            .get(&flow.0)
            .and_then(|it| it.records.get(&flow.1));
        let is_watched = record.is_some_and(|record| record.looked_at.is_some());
        let other = record.and_then(|record| record.mapped_to);
        (flow.0, other.filter(|_| !is_watched).unwrap_or(flow.1))
    }

    /// Looks at once at a record whose holders are asked, as one has answered.
    pub(super) fn hasten_expiry(&mut self, now: u64, flow: &Flow) {
        let flow = self.watched(flow);
        if !self.questions.contains_key(&flow) {
            return;
        }
        if let Some(before) = self.record_mut(flow.0, &flow.1).and_then(|it| it.looked_at) {
            self.expiry_due.remove(&(before, flow));
            self.look_again(now, flow.0, flow.1);
        }
    }

    /// A holder says that it uses its lease.
    pub(super) fn used(&mut self, now: u64, packet: &Packet<'_>) {
        let flow = (packet.shard(), packet.key());
        let owner = Owner::of(packet);
        let Some(record) = self.record_mut(flow.0, &flow.1) else {
            return;
        };
        if !record.has_grant(&owner, packet.lease_epoch()) {
            return;
        }
        let used = now.saturating_sub(packet.age());
        record.last_active = record.last_active.max(used);
        self.counters.used += 1;
        self.hasten_expiry(now, &flow);
        self.run_due(now);
    }

    /// When the record, and the one mapped to it, will be idle as far as this replica knows;
    /// `None` if there is no such record or it lives for ever.
    pub(super) fn idle_at(&self, now: u64, shard: u16, key: &Key) -> Option<u64> {
        let records = &self.shards.get(&shard)?.records;
        records.get(key)?;
        let mut due = 0;
        for key in self.keys_of(&(shard, *key)) {
            // The other one of a mapping is made right behind the first.
            let Some(record) = records.get(&key) else {
                continue;
            };
            let timeout = self.timeout_of(shard, &key)?;
            due = due.max(record.last_active.saturating_add(timeout));
            if self.parking.requests(&(shard, key)).next().is_some() {
                due = due.max(now.saturating_add(self.config.term.into()));
            }
        }
        Some(due)
    }

    /// µs without use after which the record of `key` is idle.
    fn timeout_of(&self, shard: u16, key: &Key) -> Option<u64> {
        let records = &self.shards.get(&shard)?.records;
        let record = records.get(key)?;
        let outbound = self.outbound_of(shard, key);
        let of_both = outbound.and_then(|outbound| {
            let first = records.get(&outbound)?;
            let mapped = first.mapped_to.and_then(|other| records.get(&other));
            self.pair_timeout(&outbound, first, mapped)
        });
        of_both.or_else(|| {
            let class = self.classes.get(&key.class())?;
            class.idle.of(key.0[1], &record.state)
        })
    }

    /// Evicts records to make room for the first lease of `flow`, if the store is full and eviction
    /// is configured: of those that expire soonest, the ones that have been idle for the configured
    /// time and that have no waiting request. Of one that has holders these are asked first.
    pub(super) fn make_room(&mut self, now: u64, flow: &Flow) {
        let (Some(after), Some(class)) =
            (self.config.evict_after, self.classes.get(&flow.1.class()))
        else {
            return;
        };
        let Some(needed) = creator_of(class).map(|creator| creator.records()) else {
            return;
        };
        let quota = class.quota.as_ref();
        let shard = self.shards.get(&flow.0);
        if shard.is_none_or(|shard| shard.records.contains_key(&flow.1))
            || quota.is_some_and(|quota| self.tenants.is_full(quota, &flow.1))
        {
            return;
        }
        let mut kept = Vec::new();
        for _ in 0..EVICTION_LOOKS {
            if self.record_count + needed <= self.config.limits.records || self.window_is_full() {
                break;
            }
            let Some((_, flow)) = self.expiry_due.pop_first() else {
                break;
            };
            let (shard, key) = flow;
            self.note_silence(now, &flow);
            let Some(due) = self.idle_at(now, shard, &key) else {
                continue;
            };
            let idle = due <= now || self.is_unused_for(now, after, shard, &key);
            if !idle {
                kept.push((due, flow));
            } else if let Some(next) = self.ask_holders(now, &flow, Some(after)) {
                kept.push((next, flow));
            } else {
                self.end_question(&flow);
                self.counters.evicted += u64::from(due > now);
                self.decided(now, Decision::Expire { shard, key }, NO_SWITCH, None);
            }
        }
        for (due, (shard, key)) in kept {
            self.look_again(due, shard, key);
        }
    }

    /// True if the record, and the one mapped to it, have been idle for `after` µs as far as this
    /// replica knows, and no request waits for either.
    fn is_unused_for(&self, now: u64, after: u64, shard: u16, key: &Key) -> bool {
        let Some(records) = self.shards.get(&shard).map(|shard| &shard.records) else {
            return false;
        };
        self.keys_of(&(shard, *key)).all(|key| {
            records.get(&key).is_none_or(|record| {
                record.last_active.saturating_add(after) <= now
                    && self.parking.requests(&(shard, key)).next().is_none()
            })
        })
    }
}
