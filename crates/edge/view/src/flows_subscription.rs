//! Notifications of a subscriber to flows: what changed, and what is gone.

use std::cmp::Ordering;
use std::sync::Arc;

use stateplane_host::sync::{FlowRecord, FlowsReading, FlowsRequest};

use crate::flows::{flow_of, named, told_of};
use crate::proto::v1::FlowsNotification;

/// A subscription, and what its subscriber was told last.
pub(crate) struct FlowsSubscription {
    limits: FlowsRequest,
    heartbeat_us: u64,
    /// The records that were told; `None` before the first, and while the view is incomplete.
    told: Option<Arc<Vec<FlowRecord>>>,
    /// True if the view was within the limits; `None` before the first notification.
    met: Option<bool>,
    told_at: u64,
}

/// True if a subscriber sees no difference.
fn is_same(before: &FlowRecord, present: &FlowRecord) -> bool {
    let of = |record: &FlowRecord| (record.epoch, record.sequence, record.lease);
    of(before) == of(present) && before.state == present.state
}

impl FlowsSubscription {
    pub(crate) fn new(limits: FlowsRequest, heartbeat_us: u64) -> FlowsSubscription {
        FlowsSubscription {
            limits,
            heartbeat_us,
            told: None,
            met: None,
            told_at: 0,
        }
    }

    /// The notification that is due at `now` µs, of the view as it is.
    pub(crate) fn next(
        &mut self,
        now: u64,
        present: Option<FlowsReading>,
    ) -> Option<FlowsNotification> {
        let met = present
            .as_ref()
            .is_some_and(|reading| self.limits.is_met_by(&reading.told));
        let late = self.told_at.saturating_add(self.heartbeat_us);
        let is_late = self.heartbeat_us > 0 && now >= late;
        let is_news = self.met.replace(met) != Some(met) || is_late;
        let Some(reading) = present else {
            let began = self.told.take().is_some();
            return (is_news || began).then(|| {
                self.told_at = now;
                FlowsNotification::default()
            });
        };
        let before = self.told.replace(reading.records.clone());
        let mut next = FlowsNotification {
            told: Some(told_of(&reading.told)),
            met,
            all: before.is_none(),
            ..FlowsNotification::default()
        };
        match before {
            Some(before) if Arc::ptr_eq(&before, &reading.records) => {}
            before => self.tell(before.as_deref(), &reading.records, &mut next),
        }
        if !next.all && next.flows.is_empty() && next.gone.is_empty() && !is_news {
            return None;
        }
        self.told_at = now;
        Some(next)
    }

    /// Adds what differs between two lists in the order of shards and keys.
    fn tell(
        &self,
        before: Option<&Vec<FlowRecord>>,
        present: &[FlowRecord],
        next: &mut FlowsNotification,
    ) {
        let is_chosen = |record: &&FlowRecord| {
            let class = self.limits.class;
            class.is_none_or(|class| record.key.class() == class)
        };
        let mut old = before.into_iter().flatten().filter(is_chosen).peekable();
        let mut new = present.iter().filter(is_chosen).peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => (old.shard, &old.key).cmp(&(new.shard, &new.key)),
            };
            let was = old.next_if(|_| order.is_le());
            let is = new.next_if(|_| order.is_ge());
            match (was, is) {
                (Some(was), None) => next.gone.push(named(was)),
                (Some(was), Some(is)) if is_same(was, is) => {}
                (_, Some(is)) => next.flows.push(flow_of(is)),
                (None, None) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_host::sync::FlowsTold;
    use stateplane_wire::observe::Holding;
    use stateplane_wire::replication::Key;

    fn record(class: u8, sequence: u32, state: &[u8]) -> FlowRecord {
        let mut key = Key::default();
        key.0[0] = class;
        FlowRecord {
            shard: 0,
            key,
            state: state.into(),
            epoch: 1,
            sequence,
            lease: Holding::Owner,
            revision: 0,
        }
    }

    fn reading(age_us: u64, records: &[FlowRecord]) -> Option<FlowsReading> {
        let told = FlowsTold {
            age_us,
            chains: 1,
            flows: records.len(),
        };
        Some(FlowsReading {
            told,
            records: Arc::new(records.to_vec()),
        })
    }

    /// Met, all, classes and states that are told, and classes of those that are gone.
    type Said = (bool, bool, Vec<(u8, Vec<u8>)>, Vec<u8>);

    fn said(notification: Option<FlowsNotification>) -> Said {
        let said = notification.expect("a notification");
        let flows = said.flows.iter().map(|it| (it.key[0], it.state.to_vec()));
        let gone = said.gone.iter().map(|it| it.key[0]).collect();
        (said.met, said.all, flows.collect(), gone)
    }

    fn limits(class: Option<u8>) -> FlowsRequest {
        FlowsRequest {
            class,
            max_age_us: Some(100),
            ..FlowsRequest::default()
        }
    }

    #[test]
    fn changes_and_flows_that_are_gone_follow_all_flows() {
        let mut told = FlowsSubscription::new(limits(None), 0);
        assert_eq!(said(told.next(0, None)), (false, false, vec![], vec![]));
        assert_eq!(told.next(1, None), None);
        let (a, b, c) = (record(1, 1, b"a"), record(2, 1, b"b"), record(3, 1, b"c"));
        let first = said(told.next(2, reading(5, &[a.clone(), b.clone()])));
        let all = vec![(1, b"a".to_vec()), (2, b"b".to_vec())];
        assert_eq!(first, (true, true, all, vec![]));
        assert_eq!(told.next(3, reading(9, &[a, b.clone()])), None);
        let newer = record(2, 2, b"B");
        let changed = said(told.next(4, reading(9, &[newer.clone(), c.clone()])));
        let both = vec![(2, b"B".to_vec()), (3, b"c".to_vec())];
        assert_eq!(changed, (true, false, both, vec![1]));
        let unmet = said(told.next(5, reading(101, &[newer.clone(), c.clone()])));
        assert_eq!(unmet, (false, false, vec![], vec![]));
        // A view that was incomplete meanwhile is told whole.
        assert!(told.next(6, None).is_some());
        let anew = said(told.next(7, reading(1, &[c])));
        assert_eq!(anew, (true, true, vec![(3, b"c".to_vec())], vec![]));
        let none = said(told.next(8, reading(1, &[])));
        assert_eq!(none, (true, false, vec![], vec![3]));
    }

    #[test]
    fn a_class_alone_is_told_and_heartbeats_come() {
        let mut told = FlowsSubscription::new(limits(Some(2)), 100);
        let (a, b) = (record(1, 1, b"a"), record(2, 1, b"b"));
        let first = said(told.next(0, reading(5, &[a, b.clone()])));
        assert_eq!(first, (true, true, vec![(2, b"b".to_vec())], vec![]));
        assert_eq!(told.next(50, reading(5, std::slice::from_ref(&b))), None);
        let beat = said(told.next(100, reading(5, &[b])));
        assert_eq!(beat, (true, false, vec![], vec![]));
    }
}
