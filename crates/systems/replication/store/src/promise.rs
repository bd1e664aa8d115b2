//! What a server has promised to switches as head of its chains (rule 1), and which shards it
//! withholds from whom (rule 5).

use std::collections::{BTreeMap, BTreeSet};

use crate::parking::Flow;
use crate::record::Owner;

/// One start of one switch.
pub(crate) type Start = (u32, u32);

/// Most starts of switches that are remembered.
const MOST_STARTS: usize = 1 << 16;

/// A shard whose promise to a start of a switch is not extended.
#[derive(Debug, Clone)]
struct Withheld {
    /// When the last promise that covers it ends.
    until: u64,
    /// Flows for which somebody waits for a holder of that start.
    flows: BTreeSet<Flow>,
}

/// The promises of a server. They are of all its chains, and outlive each configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promises {
    until: BTreeMap<Start, u64>,
    withheld: BTreeMap<Start, BTreeMap<u16, Withheld>>,
    /// From whom a shard is withheld for a flow.
    waiting: BTreeMap<Flow, BTreeSet<Start>>,
    /// Nobody is outwaited before.
    pub(crate) floor: u64,
}

impl Promises {
    /// Promises at `now` to outwait no lease of `start` before `until`; `false` if too many are
    /// remembered.
    pub(crate) fn promise(&mut self, now: u64, start: Start, until: u64) -> bool {
        if self.until.len() >= MOST_STARTS && !self.until.contains_key(&start) {
            self.until.retain(|_, until| *until > now);
            if self.until.len() >= MOST_STARTS {
                return false;
            }
        }
        let known = self.until.entry(start).or_default();
        *known = until.max(*known);
        true
    }

    /// The time from which no promise stands in the way of outwaiting `owner`'s lease of a flow
    /// of `shard`.
    pub(crate) fn until(&self, shard: u16, owner: &Owner) -> u64 {
        let start = (owner.switch, owner.incarnation);
        let promised = self.until.get(&start).copied().unwrap_or(0);
        let withheld = self.withheld.get(&start).and_then(|of| of.get(&shard));
        let promised = withheld.map_or(promised, |withheld| promised.min(withheld.until));
        promised.max(self.floor)
    }

    /// Withholds the shard of `flow` from the switch of `owner`, who is waited for; `true` if it
    /// was not withheld.
    pub(crate) fn withhold(&mut self, flow: Flow, owner: &Owner) -> bool {
        let start = (owner.switch, owner.incarnation);
        let until = self.until.get(&start).copied().unwrap_or(0);
        let of = self.withheld.entry(start).or_default();
        let is_new = !of.contains_key(&flow.0);
        let withheld = of.entry(flow.0).or_insert(Withheld {
            until,
            flows: BTreeSet::new(),
        });
        withheld.flows.insert(flow);
        self.waiting.entry(flow).or_default().insert(start);
        is_new
    }

    /// Nobody waits for holders on behalf of `flow` any more.
    pub(crate) fn let_go(&mut self, flow: &Flow) {
        for start in self.waiting.remove(flow).unwrap_or_default() {
            let Some(of) = self.withheld.get_mut(&start) else {
                continue;
            };
            if let Some(withheld) = of.get_mut(&flow.0) {
                withheld.flows.remove(flow);
                if withheld.flows.is_empty() {
                    of.remove(&flow.0);
                }
            }
            if of.is_empty() {
                self.withheld.remove(&start);
            }
        }
    }

    /// Nobody waits for a holder in `shard` any more: the server is not its head, or has dropped
    /// all requests.
    pub(crate) fn let_go_all(&mut self, shard: u16) {
        let flows = self.waiting.keys().filter(|flow| flow.0 == shard);
        for flow in flows.copied().collect::<Vec<_>>() {
            self.let_go(&flow);
        }
    }

    /// The shards that are withheld from `start`.
    pub(crate) fn withheld(&self, start: Start) -> impl Iterator<Item = u16> {
        let of = self.withheld.get(&start).into_iter();
        of.flat_map(|of| of.keys().copied())
    }
}

#[cfg(test)]
mod tests {
    use stateplane_wire::replication::Key;

    use super::*;

    const OWNER: Owner = Owner {
        switch: 1,
        incarnation: 2,
        claim: 3,
    };

    fn flow(number: u8) -> Flow {
        (7, Key([number; 16]))
    }

    #[test]
    fn a_promise_holds_for_all_shards_until_it_ends() {
        let mut promises = Promises::default();
        assert_eq!(promises.until(7, &OWNER), 0);
        assert!(promises.promise(10, (1, 2), 110));
        assert!(promises.promise(20, (1, 2), 90));
        assert_eq!(promises.until(7, &OWNER), 110);
        let other = Owner {
            incarnation: 3,
            ..OWNER
        };
        assert_eq!(promises.until(7, &other), 0);
        promises.floor = 200;
        assert_eq!(promises.until(7, &other), 200);
    }

    #[test]
    fn what_is_withheld_is_not_promised_again_until_nobody_waits() {
        let mut promises = Promises::default();
        promises.promise(10, (1, 2), 110);
        assert!(promises.withhold(flow(1), &OWNER));
        assert!(!promises.withhold(flow(2), &OWNER));
        promises.promise(60, (1, 2), 160);
        assert_eq!(promises.until(7, &OWNER), 110);
        assert_eq!(promises.until(8, &OWNER), 160);
        assert_eq!(promises.withheld((1, 2)).collect::<Vec<_>>(), [7]);
        promises.let_go(&flow(1));
        assert_eq!(promises.until(7, &OWNER), 110);
        promises.let_go(&flow(2));
        assert_eq!(promises.until(7, &OWNER), 160);
        assert_eq!(promises.withheld((1, 2)).count(), 0);
        assert!(promises.withheld.is_empty() && promises.waiting.is_empty());
    }

    #[test]
    fn a_shard_that_is_left_is_withheld_from_nobody() {
        let mut promises = Promises::default();
        promises.withhold(flow(1), &OWNER);
        promises.withhold((8, Key([1; 16])), &OWNER);
        promises.let_go_all(7);
        assert_eq!(promises.withheld((1, 2)).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn promises_that_ended_make_room() {
        let mut promises = Promises::default();
        for switch in 0..MOST_STARTS as u32 {
            assert!(promises.promise(0, (switch, 1), 10 + u64::from(switch & 1)));
        }
        assert!(!promises.promise(9, (1 << 20, 1), 100));
        assert!(promises.promise(10, (1 << 20, 1), 100));
    }
}
