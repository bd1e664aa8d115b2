//! The head's part in giving a connection's port to another one before its time (rule 29): the
//! connection has ended, no port is free for its remote endpoint, and no switch can use the
//! mapping any more.

use std::collections::BTreeMap;

use stateplane_wire::chain::Decision;
use stateplane_wire::replication::Key;

use super::Replica;
use super::decide::Asked;
use super::idle::NO_SWITCH;
use crate::creator::creator_of;
use crate::parking::Flow;
use crate::shard::ConnectionKey;

/// Most ended connections that are looked at for one request.
const LOOKS: usize = 16;

/// Which flows wait for the port of which ended connections. Only flows whose requests are parked
/// are in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Reclaims {
    /// Outbound key of the ended connection, by the flow that waits.
    chosen: BTreeMap<Flow, Key>,
    /// The flow that waits, by either key of the ended connection.
    waiting: BTreeMap<Flow, Flow>,
}

impl Reclaims {
    /// Outbound key of the connection whose port `flow` is to get.
    pub(super) fn chosen_for(&self, flow: &Flow) -> Option<Key> {
        self.chosen.get(flow).copied()
    }

    /// The flow that waits for the mapping one of whose keys is `key`.
    pub(super) fn waits_for(&self, key: &Flow) -> Option<Flow> {
        self.waiting.get(key).copied()
    }

    fn choose(&mut self, flow: Flow, [outbound, inbound]: [Key; 2]) {
        self.drop_choice(&flow);
        self.chosen.insert(flow, outbound);
        for key in [outbound, inbound] {
            self.waiting.insert((flow.0, key), flow);
        }
    }

    fn drop_choice(&mut self, flow: &Flow) {
        if self.chosen.remove(flow).is_some() {
            self.waiting.retain(|_, waiting| waiting != flow);
        }
    }
}

impl Replica {
    /// Makes a port free for the first lease of the flow that `asked` is about, if none is and an
    /// ended connection has one. Gives the time until which that may be in use, if the request has
    /// to wait for it.
    pub(super) fn make_port(&mut self, now: u64, asked: &Asked) -> Option<u64> {
        if !self.is_dependent(asked.key.class()) {
            return None;
        }
        let flow = (asked.shard, asked.key);
        let victim = self.find_ended(now, &flow);
        let Some((keys, until)) = victim else {
            self.reclaims.drop_choice(&flow);
            return None;
        };
        if until > now && !self.config.faults.reclaim_held {
            if self.reclaims.chosen_for(&flow) != Some(keys[0]) {
                self.reclaims.choose(flow, keys);
            }
            return Some(until);
        }
        self.reclaims.drop_choice(&flow);
        self.promises.let_go(&flow);
        self.counters.reclaimed += 1;
        let (shard, key) = (flow.0, keys[0]);
        self.decided(now, Decision::Expire { shard, key }, NO_SWITCH, None);
        None
    }

    /// The keys of the ended connection whose port the new `flow` needs, and when its leases are
    /// over; `None` if it needs none or there is none. One that nobody can use goes first, then the
    /// one that was chosen before, then the one that ended first.
    fn find_ended(&self, now: u64, flow: &Flow) -> Option<([Key; 2], u64)> {
        let shard = self.shards.get(&flow.0)?;
        let class = self.classes.get(&flow.1.class())?;
        let creator = creator_of(class)?;
        let is_known = shard.records.contains_key(&flow.1);
        let quota = class.quota.as_ref();
        let may_have_more = quota.is_none_or(|quota| !self.tenants.is_full(quota, &flow.1));
        let setting = self.setting(flow.0, shard);
        if is_known || !may_have_more || creator.choose(&setting, class, &flow.1).is_some() {
            return None;
        }
        let new = ConnectionKey::of(&flow.1);
        let chosen = self.reclaims.chosen_for(flow);
        let usable = |key: &Key| {
            let record = shard.records.get(key)?;
            let inbound = record.mapped_to?;
            let mapped = shard.records.get(&inbound)?;
            let others = [*key, inbound].iter().any(|of| {
                let of = (flow.0, *of);
                let waits = self.reclaims.waits_for(&of);
                waits.is_some_and(|waits| waits != *flow)
                    || self.parking.requests(&of).next().is_some()
            });
            let until = self.over(flow.0, record).max(self.over(flow.0, mapped));
            (!others).then_some(([*key, inbound], until))
        };
        let ended = shard.ended.of(&new.remote);
        let of_protocol = ended.filter(|key| key.0[1] == new.own.protocol);
        let mut first = None;
        for key in chosen
            .iter()
            .filter(|key| shard.ended.has(key))
            .chain(of_protocol.take(LOOKS))
        {
            let Some((keys, until)) = usable(key) else {
                continue;
            };
            if until <= now {
                return Some((keys, until));
            }
            first = first.or(Some((keys, until)));
        }
        first
    }
}
