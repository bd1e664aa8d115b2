//! Idle records: when they expire, and which are evicted first when the store is full.

use core::net::SocketAddrV4;

use stateplane_wire::chain::Decision;
use stateplane_wire::replication::Key;

use super::Replica;
use crate::creator::creator_of;
use crate::parking::Flow;
use crate::record::Record;

/// Number of records that a replica other than the head examines for each message.
const IDLE_LOOKS: usize = 4;

/// Maximum number of records, those that are idle soonest, that the head examines to make room.
const EVICTION_LOOKS: usize = 16;

/// Placeholder for the switch address of an expiry, which no switch requested.
pub(super) const NO_SWITCH: SocketAddrV4 = SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, 0);

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
                let later = now.saturating_add(self.config.lease_period.into());
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

    /// Forgets a record, and the one mapped to it, if both are idle and no lease of them can be
    /// valid (rule 22); otherwise schedules another look.
    pub(super) fn consider_expiry(&mut self, now: u64, shard: u16, key: Key) {
        let Some(due) = self.idle_at(now, shard, &key) else {
            return;
        };
        if due > now {
            self.look_again(due, shard, key);
        } else {
            self.decided(now, Decision::Expire { shard, key }, NO_SWITCH, None);
        }
    }

    /// When the record, and the one mapped to it, will be idle; `None` if there
    /// is no such record or it lives for ever.
    pub(super) fn idle_at(&self, now: u64, shard: u16, key: &Key) -> Option<u64> {
        let records = &self.shards.get(&shard)?.records;
        let record = records.get(key)?;
        let other = record.mapped_to.as_ref();
        let mapped = other.and_then(|other| records.get(other));
        let of_both = self.pair_timeout(key, record, mapped);
        let timeout = |key: &Key, record: &Record| {
            let of_one = || {
                let class = self.classes.get(&key.class())?;
                class.idle.of(key.0[1], &record.state)
            };
            of_both.or_else(of_one)
        };
        let mut due = self.idle_alone_at(now, shard, key, record, timeout(key, record)?);
        if let (Some(other), Some(mapped)) = (other, mapped) {
            let timeout = timeout(other, mapped)?;
            due = due.max(self.idle_alone_at(now, shard, other, mapped, timeout));
        }
        Some(due)
    }

    fn idle_alone_at(&self, now: u64, shard: u16, key: &Key, record: &Record, timeout: u64) -> u64 {
        let mut due = record.last_active.saturating_add(timeout);
        if self.parking.requests(&(shard, *key)).next().is_some() {
            due = due.max(now.saturating_add(self.config.lease_period.into()));
        }
        due.max(record.lease.until())
    }

    /// Evicts records to make room for the first lease of `flow`, if the store is full and eviction
    /// is configured: of those that expire soonest, the ones that have been idle for the configured
    /// time and that have no holder or waiting request.
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
            let Some((_, (shard, key))) = self.expiry_due.pop_first() else {
                break;
            };
            let Some(due) = self.idle_at(now, shard, &key) else {
                continue;
            };
            if due <= now || self.is_idle_for(now, after, shard, &key) {
                self.counters.evicted += u64::from(due > now);
                self.decided(now, Decision::Expire { shard, key }, NO_SWITCH, None);
            } else {
                kept.push((due, (shard, key)));
            }
        }
        for (due, (shard, key)) in kept {
            self.look_again(due, shard, key);
        }
    }

    /// True if the record, and the one mapped to it, have been idle for `after` µs, and neither has
    /// a holder or a waiting request.
    fn is_idle_for(&self, now: u64, after: u64, shard: u16, key: &Key) -> bool {
        let Some(records) = self.shards.get(&shard).map(|shard| &shard.records) else {
            return false;
        };
        let idle = |key: &Key| {
            records.get(key).is_none_or(|record| {
                record.lease.until() <= now
                    && record.last_active.saturating_add(after) <= now
                    && self.parking.requests(&(shard, *key)).next().is_none()
            })
        };
        let mapped = records.get(key).and_then(|record| record.mapped_to);
        idle(key) && mapped.is_none_or(|mapped| idle(&mapped))
    }
}
