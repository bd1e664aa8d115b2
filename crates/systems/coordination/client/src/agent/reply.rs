//! Replies.

use core::net::SocketAddrV4;

use stateplane_wire::coordination::{
    Kind, MessageType, Operation as Wire, Outcome, Packet, Repr, SEND_TIME_END, flag,
};

use super::flight::Purpose;
use super::{Agent, Chain};
use crate::{Action, Answer, Entry, Event, Fate, Reason, Record, Ticket, When};

/// Most events that wait to be taken, beyond which entries are dropped: who watches asks for them.
const MOST_EVENTS: usize = 1_024;

impl Agent {
    /// Takes a datagram that came from `from`. One that is no reply to what this agent asks
    /// changes nothing but counters.
    pub fn handle_datagram(&mut self, now: u64, _from: SocketAddrV4, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let reply = Repr::parse(&packet);
        if reply.message_type == MessageType::Event {
            return self.entry(&reply);
        }
        // A lane that only resolved has no outcome to keep.
        let nothing_kept = reply.operation == Wire::Resolve as u8 && reply.outcome == 0;
        let outcome = if nothing_kept && reply.handle == 0 {
            Some(Outcome::Absent)
        } else {
            Outcome::from_u8(reply.outcome)
        };
        let (Some(outcome), MessageType::Reply) = (outcome, reply.message_type) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(id) = self.asked(&reply) else {
            self.counters.unasked += 1;
            return;
        };
        if outcome.is_final() {
            self.answered(now, id, &reply, outcome);
        } else {
            self.refused(now, id, outcome);
        }
    }

    /// An entry of a group that the agent watches.
    fn entry(&mut self, message: &Repr<'_>) {
        let own = message.handle == self.handle && message.client() == self.settings.client;
        if !own || message.group >= self.settings.groups {
            self.counters.unasked += 1;
            return;
        }
        if self.events.len() >= MOST_EVENTS {
            self.counters.entries_dropped += 1;
            return;
        }
        let kind = Kind::from_u8(message.kind).unwrap_or(Kind::None);
        self.counters.entries += 1;
        self.events.push_back(Event::Entry {
            group: message.group,
            entry: Entry {
                newest: message.newest,
                changes: message.record == message.number,
                record: Record {
                    key: message.key,
                    kind,
                    number: message.number,
                    token: message.token,
                    session: message.session,
                    value: message.value.to_vec(),
                },
            },
        });
    }

    /// The request that `reply` is about, if it is under way.
    fn asked(&self, reply: &Repr<'_>) -> Option<u64> {
        let id = if flying_read(reply) {
            *self.reads.get(&reply.request)?
        } else {
            let lanes = self.lanes?;
            let lane = reply.lane.checked_sub(lanes.first)?;
            self.occupant(reply.group, lane)?
        };
        let flight = self.flights.get(&id)?;
        let message = &flight.message;
        let same = flight.request == reply.request
            && flight.group == reply.group
            && message.operation == reply.operation
            && message.lane == reply.lane
            && message.lane_incarnation == reply.lane_incarnation
            && reply.client() == self.settings.client
            && flight.sent > 0;
        same.then_some(id)
    }

    /// A reply with an outcome that is final.
    fn answered(&mut self, now: u64, id: u64, reply: &Repr<'_>, outcome: Outcome) {
        let flight = &self.flights[&id];
        let known = flight.asked.unwrap_or_default();
        if (reply.generation, reply.epoch) < known || reply.generation != known.0 {
            self.counters.outdated += 1;
            return;
        }
        // The outcome belongs to the lane's last request that was no RESOLVE (rule 6).
        let of_former = match flight.purpose {
            Purpose::Operation(_) => reply.handle != flight.request,
            Purpose::Resolve(_) => reply.handle >= flight.request,
            Purpose::Proof => false,
        };
        if flight.lane.is_some() && of_former {
            self.counters.malformed += 1;
            return;
        }
        let trip = (now % SEND_TIME_END).checked_sub(reply.send_time);
        if let Some(trip) = trip.filter(|trip| *trip <= self.settings.deadline_us) {
            self.round_trip.measured(trip);
        }
        let Some(flight) = self.end_flight(id) else {
            return;
        };
        self.learn_from_reply(now, reply);
        match flight.purpose {
            Purpose::Resolve(ticket) => {
                let fate = if reply.handle == flight.request - 1 {
                    Fate::Executed {
                        outcome,
                        number: reply.number,
                        token: reply.token,
                    }
                } else {
                    Fate::Never
                };
                self.resolved(ticket, fate);
            }
            Purpose::Operation(ticket) => self.complete(now, ticket, reply, outcome),
            Purpose::Proof => self.proved(now, reply, outcome),
        }
        if let Some(lane) = flight.lane {
            self.free_lane(now, flight.group, lane);
        }
    }

    fn learn_from_reply(&mut self, now: u64, reply: &Repr<'_>) {
        let all: Vec<_> = reply.chain().collect();
        let count = usize::from(reply.hops).min(all.len());
        let (members, joining) = all.split_at(count);
        let chain = Chain {
            group: reply.group,
            generation: reply.generation,
            epoch: reply.epoch,
            members: members.to_vec(),
            joining: joining.first().copied(),
        };
        self.learn(now, chain);
    }

    /// A refusal: the request is repeated (rule 4).
    fn refused(&mut self, now: u64, id: u64, outcome: Outcome) {
        let busy = self.settings.busy_us;
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        let purpose = flight.purpose;
        match outcome {
            Outcome::LaneEnded => {
                self.counters.refusals += 1;
                return self.lane_ended(flight_lane(purpose));
            }
            Outcome::Busy => {
                self.counters.busy += 1;
                let wait = busy << flight.busy.min(6);
                flight.busy += 1;
                self.postpone(now, id, wait.min(self.settings.most_timeout_us));
            }
            Outcome::Moved => {
                self.counters.moved += 1;
                let wait = flight.backoff;
                self.moved(now, id);
                self.postpone(now, id, wait.min(self.settings.most_timeout_us));
            }
            _ => {
                self.counters.refusals += 1;
                let wait = flight.backoff.max(self.settings.busy_us);
                let group = flight.group;
                self.want_chain(now, group);
                self.postpone(now, id, wait);
            }
        }
        if let Purpose::Operation(ticket) = purpose
            && let Some(pending) = self.pending.get_mut(&ticket)
        {
            pending.refusal = Some(outcome);
        }
    }

    /// A reaper moved the lane on: the session is over.
    fn lane_ended(&mut self, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.fail(ticket, Reason::LaneEnded);
        }
        self.lanes_are_over();
    }

    /// An operation's request was answered.
    fn complete(&mut self, now: u64, ticket: Ticket, reply: &Repr<'_>, outcome: Outcome) {
        let Some(pending) = self.pending.get_mut(&ticket) else {
            return;
        };
        let judges = pending.is_judged_here();
        let prefix = pending.operation.place.prefix.clone();
        let scans = matches!(pending.operation.action, Action::Scan { .. });
        let record = match record_of(reply, &prefix, scans) {
            Ok(record) => record,
            Err(Clash) => return self.fail(ticket, Reason::Clash),
        };
        let mut answer = Answer {
            outcome,
            number: match Wire::from_u8(reply.operation) {
                Some(Wire::Read | Wire::Scan) => 0,
                Some(Wire::Watch) => reply.record,
                _ => reply.number,
            },
            newest: reply.newest,
            token: reply.token,
            record,
            slot: reply.slot,
            more: reply.flags & flag::MORE != 0,
        };
        if judges {
            match pending.judged.take() {
                // Something changed between reading and writing.
                Some(_) if outcome == Outcome::Mismatch => {
                    self.counters.reread += 1;
                    return self.begin(now, ticket);
                }
                Some(_) => {}
                None => match judge(&pending.operation.action, &answer) {
                    Ok(when) => {
                        pending.judged = Some(when);
                        return self.begin(now, ticket);
                    }
                    Err(outcome) => answer.outcome = outcome,
                },
            }
        }
        self.drop_pending(ticket);
        self.counters.answered += 1;
        self.events.push_back(Event::Answered { ticket, answer });
    }
}

fn flight_lane(purpose: Purpose) -> Option<Ticket> {
    match purpose {
        Purpose::Operation(ticket) => Some(ticket),
        Purpose::Resolve(_) | Purpose::Proof => None,
    }
}

fn flying_read(reply: &Repr<'_>) -> bool {
    [Wire::Read, Wire::Scan, Wire::Watch]
        .into_iter()
        .any(|read| reply.operation == read as u8)
}

/// Another name stands before the value.
struct Clash;

/// The record that a reply shows.
fn record_of(reply: &Repr<'_>, prefix: &[u8], scans: bool) -> Result<Option<Record>, Clash> {
    let kind = Kind::from_u8(reply.kind).unwrap_or(Kind::None);
    // Who wrote a value has it: the reply does not repeat it.
    let wrote = reply.operation == Wire::Write as u8 && reply.outcome == Outcome::Done as u8;
    if kind == Kind::None || reply.record == 0 || wrote {
        return Ok(None);
    }
    let value = match kind {
        Kind::Value if !scans => reply.value.strip_prefix(prefix).ok_or(Clash)?,
        _ => reply.value,
    };
    Ok(Some(Record {
        key: reply.key,
        kind,
        number: reply.record,
        token: reply.token,
        session: reply.session,
        value: value.to_vec(),
    }))
}

/// The condition by which the switch sees that `read` still holds, or the outcome if the
/// operation's own condition does not hold of it.
fn judge(action: &Action, read: &Answer) -> Result<When, Outcome> {
    let when = match action {
        Action::Write(write) => &write.when,
        Action::Delete(delete) => &delete.when,
        _ => &When::Always,
    };
    let record = read.record.as_ref();
    if record.is_some_and(|record| record.kind == Kind::Lock) {
        return Err(Outcome::WrongKind);
    }
    let Some(record) = record.filter(|record| record.kind == Kind::Value) else {
        return match (when, action) {
            (When::Always, Action::Delete(_)) => Err(Outcome::Absent),
            (When::Always | When::Absent, _) => Ok(When::Absent),
            _ => Err(Outcome::Mismatch),
        };
    };
    let holds = match when {
        When::Always | When::Present => true,
        When::Absent => false,
        When::Number(number) => record.number == *number,
        When::Value(value) => record.value == *value,
    };
    if holds {
        Ok(When::Number(record.number))
    } else {
        Err(Outcome::Mismatch)
    }
}
