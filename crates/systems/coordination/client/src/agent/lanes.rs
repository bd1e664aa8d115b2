//! Which lane bears which request, and what waits for one (rules 5, 6).

use std::collections::{BTreeSet, VecDeque};

use stateplane_wire::coordination::{MessageType, Operation, Repr};

use super::flight::{Flight, Purpose};
use super::{Agent, Lane};
use crate::{Event, Fate, Ticket};

/// Numbers at the end of a lane's requests that are kept for RESOLVE (rule 18).
const LAST_REQUEST: u32 = u32::MAX - 1;

/// A lane in one group.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// Number of the last request.
    last: u32,
    /// The request under way.
    flight: Option<u64>,
    /// Operations that keep to this lane.
    queue: VecDeque<Ticket>,
}

/// The lanes in one group.
#[derive(Debug, Default)]
pub(super) struct GroupLanes {
    lanes: Vec<LaneState>,
    idle: BTreeSet<u16>,
    /// Operations that wait for any lane.
    waiting: VecDeque<Ticket>,
}

impl GroupLanes {
    pub fn new(count: u16) -> GroupLanes {
        GroupLanes {
            lanes: (0..count).map(|_| LaneState::default()).collect(),
            idle: (0..count).collect(),
            waiting: VecDeque::new(),
        }
    }
}

impl Agent {
    /// A lane and the number of a request on it, if one is free; else the operation waits.
    pub(super) fn take_lane(
        &mut self,
        ticket: Ticket,
        group: u16,
        lane: Lane,
    ) -> Option<(u16, u32)> {
        let lanes = &mut self.groups[usize::from(group)];
        let count = lanes.lanes.len() as u32;
        let lane = match lane {
            Lane::Any => match lanes.idle.first() {
                Some(lane) => *lane,
                None => {
                    lanes.waiting.push_back(ticket);
                    return None;
                }
            },
            Lane::Kept(lane) => {
                let lane = (lane % count.max(1)) as u16;
                if !lanes.idle.contains(&lane) {
                    let state = lanes.lanes.get_mut(usize::from(lane))?;
                    state.queue.push_back(ticket);
                    return None;
                }
                lane
            }
        };
        lanes.idle.remove(&lane);
        let state = &mut lanes.lanes[usize::from(lane)];
        state.last += 1;
        Some((lane, state.last))
    }

    /// Notes the request under way on a lane.
    pub(super) fn occupy(&mut self, group: u16, lane: u16, flight: u64) {
        self.groups[usize::from(group)].lanes[usize::from(lane)].flight = Some(flight);
    }

    /// The request under way on a lane.
    pub(super) fn occupant(&self, group: u16, lane: u16) -> Option<u64> {
        let lanes = &self.groups.get(usize::from(group))?.lanes;
        lanes.get(usize::from(lane))?.flight
    }

    /// A lane has no request under way: it bears what waits for it.
    pub(super) fn free_lane(&mut self, now: u64, group: u16, lane: u16) {
        let lanes = &mut self.groups[usize::from(group)];
        let state = &mut lanes.lanes[usize::from(lane)];
        state.flight = None;
        if state.last >= LAST_REQUEST {
            return self.lanes_are_over();
        }
        lanes.idle.insert(lane);
        let next = state
            .queue
            .pop_front()
            .or_else(|| lanes.waiting.pop_front());
        if let Some(ticket) = next {
            self.begin_on(now, ticket, Lane::Kept(lane.into()));
        }
    }

    /// Takes an operation out of the queues.
    pub(super) fn forget_waiting(&mut self, group: u16, ticket: Ticket) {
        let lanes = &mut self.groups[usize::from(group)];
        lanes.waiting.retain(|waiting| *waiting != ticket);
        for lane in &mut lanes.lanes {
            lane.queue.retain(|waiting| *waiting != ticket);
        }
    }

    /// Asks what became of an operation whose request had the number `request`.
    pub(super) fn resolve(
        &mut self,
        now: u64,
        group: u16,
        lane: u16,
        ticket: Ticket,
        request: u32,
    ) {
        let state = &mut self.groups[usize::from(group)].lanes[usize::from(lane)];
        state.last = request + 1;
        let mut message = Repr::new(MessageType::Request);
        message.operation = Operation::Resolve as u8;
        let request = state.last;
        let purpose = Purpose::Resolve(ticket);
        let flight = self.numbered(purpose, group, lane, request, message, Vec::new());
        let id = self.launch(now, flight);
        self.occupy(group, lane, id);
    }

    /// Ends all that is under way or waits in `group` on a lane.
    fn end_group(&mut self, group: u16) {
        let lanes = core::mem::take(&mut self.groups[usize::from(group)]);
        let waiting = lanes.waiting.into_iter();
        let queued = lanes
            .lanes
            .iter()
            .flat_map(|lane| lane.queue.iter().copied());
        for ticket in waiting.chain(queued) {
            if let Some(pending) = self.drop_pending(ticket) {
                self.expired(ticket, pending.refusal);
            }
        }
        for id in lanes.lanes.iter().filter_map(|lane| lane.flight) {
            let Some(flight) = self.end_flight(id) else {
                continue;
            };
            let ticket = match flight.purpose {
                Purpose::Proof => continue,
                Purpose::Resolve(ticket) => ticket,
                Purpose::Operation(ticket) => {
                    let Some(pending) = self.drop_pending(ticket) else {
                        continue;
                    };
                    let refusal = pending.refusal;
                    self.counters.unknown += 1;
                    self.events.push_back(Event::Unknown { ticket, refusal });
                    ticket
                }
            };
            self.resolved(ticket, Fate::Lost);
        }
    }

    /// Ends all that is under way or waits on the lanes.
    pub(super) fn drop_lanes(&mut self) {
        self.drop_proof();
        (0..self.settings.groups).for_each(|group| self.end_group(group));
    }

    /// The lanes are of no more use.
    pub(super) fn lanes_are_over(&mut self) {
        if !self.lanes_ended {
            self.lanes_ended = true;
            self.drop_lanes();
            self.events.push_back(Event::LanesEnded);
        }
    }

    /// A group was founded anew: it knows no request.
    pub(super) fn refounded(&mut self, group: u16) {
        let lanes = &self.groups[usize::from(group)].lanes;
        let former: Vec<u32> = lanes.iter().map(|lane| lane.last).collect();
        let asked = self
            .flights
            .values()
            .any(|flight| flight.group == group && flight.asked.is_some());
        if !asked {
            return;
        }
        self.end_group(group);
        let mut lanes = GroupLanes::new(former.len() as u16);
        for (lane, last) in lanes.lanes.iter_mut().zip(former) {
            lane.last = last;
        }
        self.groups[usize::from(group)] = lanes;
        self.end_reads(group);
    }

    pub(super) fn resolved(&mut self, ticket: Ticket, fate: Fate) {
        self.counters.resolved += 1;
        self.events.push_back(Event::Resolved { ticket, fate });
    }

    /// A request of a lane.
    pub(super) fn numbered(
        &self,
        purpose: Purpose,
        group: u16,
        lane: u16,
        request: u32,
        mut message: Repr<'static>,
        value: Vec<u8>,
    ) -> Flight {
        let lanes = self.lanes.expect("a lane was taken");
        message.lane = lanes.first.wrapping_add(lane);
        message.lane_incarnation = lanes.incarnation;
        Flight {
            lane: Some(lane),
            ..Flight::new(purpose, group, request, message, value)
        }
    }
}
