//! Stall times of flows and lost packets, from the hosts' reports.

use stateplane_history::replication::{EventKind, Flow, History, dropped_by_right};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// For how long before a move packets tell how long they take when nothing moves, in µs.
const CALM: u64 = 500_000;

/// Times of a flow's sent and received packets, in µs.
#[derive(Default)]
struct Life {
    /// When each packet was sent.
    inputs: Vec<u64>,
    /// When one came through, and when it had been sent.
    outputs: Vec<(u64, u64)>,
}

/// Outcome of all flows over a period that begins with a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stalls {
    /// Flows that had a packet to bring through.
    pub(super) flows: u64,
    /// Flows of which nothing came through any more until the end of the run.
    pub(super) silent: u64,
    /// From the first packet that a flow sends after the move to the first of those after
    /// the move that comes through: median and greatest of the flows, in µs.
    pub(super) released_us: (u64, u64),
    /// The time that a packet took to come through, the median of those of the half second
    /// before the move, in µs; 0 if there were none.
    pub(super) usual_us: u64,
    /// The longest time of any flow with packets sent and none that came through, in µs.
    pub(super) longest_us: u64,
}

/// The lives of all flows, in packets that the application was to let through.
pub(super) struct Lives {
    flows: BTreeMap<Flow, Life>,
    /// Packets that the application dropped by its own rules.
    pub(super) dropped: u64,
    /// When each of the others was sent of which nothing came through, in µs.
    lost: Vec<u64>,
}

impl Lives {
    pub(super) fn of(history: &History) -> Self {
        let dropped = dropped_by_right(history);
        let mut flows: BTreeMap<Flow, Life> = BTreeMap::new();
        let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
        let mut came: BTreeSet<u64> = BTreeSet::new();
        for event in &history.events {
            match &event.kind {
                EventKind::Call {
                    object: flow,
                    operation: packet,
                    ..
                } if !dropped.contains(packet) => {
                    sent.insert(*packet, event.at);
                    flows.entry(flow.clone()).or_default().inputs.push(event.at);
                }
                EventKind::Return {
                    object: flow,
                    operation: packet,
                    ..
                } => {
                    came.insert(*packet);
                    if let Some(&at) = sent.get(packet) {
                        let life = flows.entry(flow.clone()).or_default();
                        life.outputs.push((event.at, at));
                    }
                }
                _ => {}
            }
        }
        let lost = sent.iter().filter(|(packet, _)| !came.contains(packet));
        Self {
            lost: lost.map(|(_, at)| *at).collect(),
            dropped: dropped.len() as u64,
            flows,
        }
    }

    /// Number of lost packets.
    pub(super) fn lost(&self) -> u64 {
        self.lost.len() as u64
    }

    /// Number of packets sent in one of `times`.
    pub(super) fn sent_in(&self, times: &[Range<u64>]) -> u64 {
        count_in(self.flows.values().flat_map(|life| &life.inputs), times)
    }

    /// Number of lost packets among those.
    pub(super) fn lost_in(&self, times: &[Range<u64>]) -> u64 {
        count_in(&self.lost, times)
    }

    /// Outcome of the flows from `from` to `to`.
    pub(super) fn stalls(&self, from: u64, to: u64) -> Stalls {
        let mut stalls = Stalls::default();
        let mut released = Vec::new();
        let mut usual = Vec::new();
        for life in self.flows.values() {
            let calm = from.saturating_sub(CALM)..from;
            let through = life.outputs.iter().filter(|(_, sent)| calm.contains(sent));
            usual.extend(through.map(|(at, sent)| at - sent));
            let Some(&first) = life.inputs.iter().find(|at| (from..to).contains(at)) else {
                continue;
            };
            stalls.flows += 1;
            match life.outputs.iter().find(|(_, sent)| *sent >= from) {
                Some((at, _)) => released.push(at - first),
                None => stalls.silent += 1,
            }
            stalls.longest_us = stalls.longest_us.max(life.longest(from, to));
        }
        released.sort_unstable();
        if let (Some(&median), Some(&greatest)) =
            (released.get(released.len() / 2), released.last())
        {
            stalls.released_us = (median, greatest);
        }
        usual.sort_unstable();
        stalls.usual_us = usual.get(usual.len() / 2).copied().unwrap_or_default();
        stalls
    }
}

fn count_in<'a>(sent: impl IntoIterator<Item = &'a u64>, times: &[Range<u64>]) -> u64 {
    let in_them = |at: &&u64| times.iter().any(|time| time.contains(at));
    sent.into_iter().filter(in_them).count() as u64
}

impl Life {
    /// The longest wait of a packet sent from `from` to `to` for any packet of the flow to come
    /// through, other than those in flight already.
    fn longest(&self, from: u64, to: u64) -> u64 {
        let mut longest = 0;
        let mut waits_since = None;
        let mut outputs = self.outputs.iter().map(|(at, _)| *at).peekable();
        for &at in self.inputs.iter().filter(|at| (from..to).contains(at)) {
            while let Some(out) = outputs.next_if(|out| *out < at) {
                if let Some(since) = waits_since.take_if(|since| *since < out) {
                    longest = longest.max(out - since);
                }
            }
            waits_since.get_or_insert(at);
        }
        match (waits_since, outputs.next()) {
            (Some(since), Some(out)) => longest.max(out - since),
            (Some(since), None) => longest.max(to - since),
            (None, _) => longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_history::replication::{Event, Released};

    /// A history of one flow: when each packet is sent and, perhaps, comes through.
    fn history(packets: &[(u64, Option<u64>)]) -> History {
        let flow = Flow::new("a");
        let mut events = Vec::new();
        for (number, (sent, out)) in (0..).zip(packets) {
            events.push(Event {
                at: *sent,
                kind: EventKind::Call {
                    node: 0,
                    object: flow.clone(),
                    operation: number,
                    request: None,
                },
            });
            events.extend(out.map(|at| Event {
                at,
                kind: EventKind::Return {
                    node: 0,
                    object: flow.clone(),
                    operation: number,
                    response: Released {
                        value: None,
                        durability: None,
                    },
                },
            }));
        }
        events.sort_by_key(|event| event.at);
        History {
            events,
            ..History::default()
        }
    }

    #[test]
    fn a_stall_lasts_from_what_was_sent_to_what_came_through() {
        let packets = [
            (100, Some(110)),
            (200, Some(210)),
            // The move is at 250.
            (300, None),
            (400, None),
            (500, Some(520)),
            (600, Some(610)),
        ];
        let lives = Lives::of(&history(&packets));
        let stalls = lives.stalls(250, 700);
        assert_eq!((stalls.flows, stalls.silent), (1, 0));
        assert_eq!(stalls.released_us, (220, 220));
        assert_eq!(stalls.longest_us, 220);
        assert_eq!(stalls.usual_us, 10);
        assert_eq!(lives.stalls(100, 250).longest_us, 10);
    }

    #[test]
    fn what_the_application_drops_is_neither_lost_nor_a_stall() {
        let packets = [(100, Some(110)), (300, None), (400, Some(420)), (500, None)];
        let mut judged = history(&packets);
        // Of a firewall, UDP: from inside, and a stray from outside of another flow.
        judged.system.application =
            stateplane_apps::app("firewall").and_then(|app| app.judge().machine());
        for event in &mut judged.events {
            match &mut event.kind {
                EventKind::Call { request, .. } => *request = Some(1 << 9),
                EventKind::Return { response, .. } => response.value = Some(1),
                _ => {}
            }
        }
        judged.events.push(Event {
            at: 510,
            kind: EventKind::Call {
                node: 0,
                object: Flow::new("stray"),
                operation: 9,
                request: Some(1 << 9 | 1 << 8),
            },
        });
        let lives = Lives::of(&judged);
        assert_eq!((lives.dropped, lives.lost()), (1, 2));
        let times = [0..300, 301..501];
        assert_eq!((lives.sent_in(&times), lives.lost_in(&times)), (3, 1));
        assert_eq!(lives.stalls(250, 700).flows, 1);
        assert_eq!(Lives::of(&history(&packets)).lost(), 2);
    }

    #[test]
    fn a_flow_that_never_comes_back_is_silent() {
        let packets = [(100, Some(110)), (300, None), (400, None)];
        let stalls = Lives::of(&history(&packets)).stalls(250, 900);
        assert_eq!(stalls.silent, 1);
        assert_eq!(stalls.longest_us, 600);
        let none = Lives::of(&history(&packets)).stalls(500, 900);
        let calm = Stalls {
            usual_us: 10,
            ..Stalls::default()
        };
        assert_eq!(none, calm);
    }

    #[test]
    fn what_waits_from_before_the_move_is_no_sign_of_life_after_it() {
        let packets = [(240, Some(260)), (300, None), (400, Some(450))];
        let stalls = Lives::of(&history(&packets)).stalls(250, 900);
        assert_eq!(stalls.released_us, (150, 150));
        assert_eq!(stalls.longest_us, 150);
    }
}
