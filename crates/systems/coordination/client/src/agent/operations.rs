//! Operations and the requests that carry them out.

use stateplane_wire::coordination::{
    Condition, Key, MAX_OPERAND, MessageType, Operand, Operation as Wire, Outcome, Repr, flag,
};

use super::flight::{Flight, Purpose};
use super::{Agent, Due};
use crate::{Action, Event, Guard, Lane, Operation, Reason, Ticket, When};

/// Phase of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for a lane.
    Waiting,
    /// This request is under way.
    Flying(u64),
}

/// An operation that did not end.
#[derive(Debug)]
pub(super) struct Pending {
    pub operation: Operation,
    pub group: u16,
    pub deadline: u64,
    pub phase: Phase,
    /// The last refusal.
    pub refusal: Option<Outcome>,
    /// Of an operation that the agent judges, the condition from what was read by which the switch
    /// sees that nothing changed since.
    pub judged: Option<When>,
}

impl Pending {
    /// True if the agent compares names or values, so that it reads the record before it writes.
    pub fn is_judged_here(&self) -> bool {
        let when = match &self.operation.action {
            Action::Write(write) => &write.when,
            Action::Delete(delete) => &delete.when,
            _ => return false,
        };
        let compares = matches!(when, When::Value(value) if value.len() > MAX_OPERAND);
        compares || !self.operation.place.prefix.is_empty()
    }
}

impl Agent {
    /// Begins an operation, or the next step of one.
    pub(super) fn begin(&mut self, now: u64, ticket: Ticket) {
        let Some(pending) = self.pending.get(&ticket) else {
            return;
        };
        let lane = pending.operation.lane;
        self.begin_on(now, ticket, lane);
    }

    /// Begins an operation on a lane, if it needs one.
    pub(super) fn begin_on(&mut self, now: u64, ticket: Ticket, lane: Lane) {
        let Some(pending) = self.pending.get(&ticket) else {
            return;
        };
        let group = pending.group;
        let reads = pending.is_judged_here() && pending.judged.is_none();
        if reads || !pending.operation.action.is_numbered() {
            let (message, value) = message_of(&pending.operation, reads, None, self.handle);
            let member = pending.operation.action.member();
            let mut flight = self.reading(Purpose::Operation(ticket), group, message, value);
            flight.member = member;
            let id = self.launch(now, flight);
            self.flying(ticket, Phase::Flying(id));
            return;
        }
        let Some((lane, request)) = self.take_lane(ticket, group, lane) else {
            return self.flying(ticket, Phase::Waiting);
        };
        let pending = &self.pending[&ticket];
        let (message, value) = message_of(&pending.operation, false, pending.judged.as_ref(), 0);
        let purpose = Purpose::Operation(ticket);
        let flight = self.numbered(purpose, group, lane, request, message, value);
        let id = self.launch(now, flight);
        self.occupy(group, lane, id);
        self.flying(ticket, Phase::Flying(id));
    }

    /// A request that takes no number of a lane.
    pub(super) fn reading(
        &mut self,
        purpose: Purpose,
        group: u16,
        message: Repr<'static>,
        value: Vec<u8>,
    ) -> Flight {
        self.next_read = self.next_read.wrapping_add(1);
        while self.next_read == 0 || self.reads.contains_key(&self.next_read) {
            self.next_read = self.next_read.wrapping_add(1);
        }
        let mut flight = Flight::new(purpose, group, self.next_read, message, value);
        // The field names a lane that the switches have.
        if let Some(lanes) = self.lanes {
            flight.message.lane = lanes.first;
            flight.message.lane_incarnation = lanes.incarnation;
        }
        flight
    }

    fn flying(&mut self, ticket: Ticket, phase: Phase) {
        if let Some(pending) = self.pending.get_mut(&ticket) {
            pending.phase = phase;
        }
    }

    /// Forgets an operation and its deadline.
    pub(super) fn drop_pending(&mut self, ticket: Ticket) -> Option<Pending> {
        let pending = self.pending.remove(&ticket)?;
        self.due.remove(&(pending.deadline, Due::Deadline(ticket)));
        Some(pending)
    }

    /// Ends the reads of a group that was founded anew.
    pub(super) fn end_reads(&mut self, group: u16) {
        let reads: Vec<u64> = self
            .flights
            .iter()
            .filter(|(_, flight)| {
                flight.group == group && flight.lane.is_none() && flight.asked.is_some()
            })
            .map(|(id, _)| *id)
            .collect();
        for id in reads {
            match self.end_flight(id).map(|flight| flight.purpose) {
                Some(Purpose::Operation(ticket)) => self.fail(ticket, Reason::Refounded),
                Some(Purpose::Proof) => self.proof.is_lost(),
                Some(Purpose::Resolve(_)) | None => {}
            }
        }
    }

    pub(super) fn fail(&mut self, ticket: Ticket, reason: Reason) {
        if self.drop_pending(ticket).is_some() {
            self.counters.failed += 1;
            self.events.push_back(Event::Failed { ticket, reason });
        }
    }
}

/// The message of an operation, or of its reading, and its value. `judged` stands for the
/// operation's condition, if the agent judged that; `handle` names the agent's subscriptions.
fn message_of(
    operation: &Operation,
    reads: bool,
    judged: Option<&When>,
    handle: u32,
) -> (Repr<'static>, Vec<u8>) {
    let mut message = Repr::new(MessageType::Request);
    message.key = operation.place.key;
    if reads {
        message.operation = Wire::Read as u8;
        message.flags = flag::LEASED;
        return (message, Vec::new());
    }
    let mut value = Vec::new();
    let kind = match &operation.action {
        Action::Read(reading) => {
            message.flags = reading.flags();
            Wire::Read
        }
        Action::Write(write) => {
            set_when(&mut message, judged.unwrap_or(&write.when));
            set_guard(&mut message, write.guard);
            message.token = write.token;
            message.session = write.session;
            value.extend_from_slice(&operation.place.prefix);
            value.extend_from_slice(&write.value);
            Wire::Write
        }
        Action::Delete(delete) => {
            set_when(&mut message, judged.unwrap_or(&delete.when));
            set_guard(&mut message, delete.guard);
            message.token = delete.token;
            Wire::Delete
        }
        Action::Acquire { owner, wait } => {
            message.session = owner.session;
            message.handle = owner.handle;
            message.flags = if *wait { flag::WAIT } else { 0 };
            Wire::Acquire
        }
        Action::Release { owner } => {
            message.session = owner.session;
            message.handle = owner.handle;
            Wire::Release
        }
        Action::LaneNext { lane, incarnation } => {
            message.key = Key::default();
            message.slot = *lane;
            message.handle = (*incarnation).into();
            Wire::LaneNext
        }
        Action::Scan { slot, reading } => {
            message.key = Key::default();
            message.slot = *slot;
            message.flags = reading.flags();
            Wire::Scan
        }
        Action::Watch(from) => {
            message.key = Key::default();
            message.number = *from;
            message.handle = handle;
            Wire::Watch
        }
        Action::Unwatch => {
            message.key = Key::default();
            Wire::Watch
        }
    };
    message.operation = kind as u8;
    (message, value)
}

fn set_when(message: &mut Repr<'_>, when: &When) {
    let condition = match when {
        When::Always => Condition::None,
        When::Absent => Condition::Absent,
        When::Present => Condition::Present,
        When::Number(number) => {
            message.operand = Operand::number(*number);
            Condition::Number
        }
        When::Value(value) => {
            message.operand = Operand::value(value).expect("longer ones are judged here");
            message.operand_length = value.len() as u8;
            Condition::Value
        }
    };
    message.condition = condition as u8;
}

fn set_guard(message: &mut Repr<'_>, guard: Option<Guard>) {
    let Some(guard) = guard else {
        return;
    };
    let (condition, key, number) = match guard {
        Guard::Absent(key) => (Condition::Absent, key, 0),
        Guard::Present(key) => (Condition::Present, key, 0),
        Guard::Number(key, number) => (Condition::Number, key, number),
        Guard::Token(key, token) => (Condition::Token, key, token),
    };
    message.guard_condition = condition as u8;
    message.guard_key = key;
    message.guard_number = number;
}
