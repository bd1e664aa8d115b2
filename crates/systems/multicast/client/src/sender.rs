//! A sender: lanes of a session, repetition that waits as long as answers take and backs off,
//! refusals and unknown outcomes (rules 17, 21, 22, 27).

mod shares;

use std::collections::VecDeque;

use stateplane_wire::multicast::{Code, MessageType, NUMBER_END, Repr, flag};
use stateplane_wire::round_trip::RoundTrip;

use crate::{FinalTime, MessageId};
use shares::Shares;

/// Settings of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderConfig {
    /// Slot of the session.
    pub session: u16,
    /// Lanes that the controller granted, 1 to 255.
    pub lanes: u8,
    /// First number of each lane: the session's incarnation in the high bits, and at least 1.
    pub first_number: u64,
    /// Most bytes of a payload: the MTU less 100 (rule 27).
    pub longest: usize,
    /// µs after which a START is repeated first, at least: later if answers take longer (RFC 6298).
    /// The time doubles with each.
    pub repeat_us: u64,
    /// Longest time between two STARTs of a message, in µs.
    pub longest_repeat_us: u64,
    /// µs after which the outcome is told as unknown.
    pub give_up_us: u64,
}

/// A message that is under way.
pub type Call = MessageId;

/// Event for the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// All receivers of all groups have the message, also if its outcome was told as unknown.
    Complete {
        /// The message.
        call: Call,
        /// Its place in the order; of time 0 if the groups have forgotten it.
        at: FinalTime,
    },
    /// The message went nowhere.
    Refused {
        /// The message.
        call: Call,
        /// Reason.
        code: Code,
    },
    /// The message may have been delivered, or be yet. Its lane stays taken until that is known.
    Unknown {
        /// The message.
        call: Call,
    },
}

/// Reason for which a message cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No group is addressed.
    #[error("the message addresses no group")]
    NoDestination,
    /// The payload is too long.
    #[error("a payload has at most {longest} bytes, this one {found}")]
    TooLong {
        /// Most bytes.
        longest: usize,
        /// Bytes found.
        found: usize,
    },
    /// Each lane carries a message, or is left for messages to other groups: wait for an event.
    #[error("each of the session's lanes for these groups carries a message")]
    NoLane,
}

#[derive(Debug)]
struct Sent {
    destinations: u32,
    payload: Vec<u8>,
    /// Groups that said COMPLETE.
    complete: u32,
    /// Groups that are to get START now.
    pending: u32,
    at: FinalTime,
    began_us: u64,
    repeat_at_us: u64,
    repeat_us: u64,
    repeated: bool,
    /// Number of its last STARTs among all of the sender.
    order: u64,
    /// Messages to the same groups that were sent later and are complete.
    passed: u8,
    told_unknown: bool,
}

impl Sent {
    /// STARTs were sent more than once, or to several groups.
    fn spread(&self) -> bool {
        self.repeated || self.destinations.count_ones() > 1
    }
}

#[derive(Debug)]
struct Lane {
    /// Number of the message that is under way, or of the next one.
    number: u64,
    sent: Option<Sent>,
}

/// Messages to the same groups that were sent later and are complete, with which a START or its answer
/// counts as lost: leaders take STARTs and answer in one order, but packets may come in another.
const PASSED: u8 = 16;

/// A sender: one session.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    lanes: Vec<Lane>,
    /// Lanes that carry nothing; the last one is used next.
    free: Vec<u8>,
    shares: Shares,
    under_way: usize,
    /// Lanes that have STARTs to send; one may be named twice, or have none any more.
    starts: VecDeque<u8>,
    /// Lanes by the order of their last STARTs; those whose message is over, or was repeated since, are
    /// named with another order.
    sent: VecDeque<(u64, u8)>,
    order: u64,
    /// No message is to be repeated before this time, in µs.
    due_us: u64,
    round_trip: RoundTrip,
    /// Greatest final timestamp that the host knows (rule 17).
    greatest: u64,
    events: VecDeque<Event>,
}

/// True if a START that was refused so may be taken later: the leader or its window changes.
fn passes(code: Code) -> bool {
    matches!(
        code,
        Code::NotLeader | Code::Full | Code::OtherIncarnation | Code::Fenced
    )
}

impl Sender {
    /// A sender with nothing under way.
    pub fn new(config: SenderConfig) -> Sender {
        let lane = || Lane {
            number: config.first_number.max(1),
            sent: None,
        };
        let has_numbers = lane().number < NUMBER_END;
        Sender {
            config,
            lanes: (0..config.lanes).map(|_| lane()).collect(),
            free: (0..config.lanes).rev().filter(|_| has_numbers).collect(),
            shares: Shares::default(),
            under_way: 0,
            starts: VecDeque::new(),
            sent: VecDeque::new(),
            order: 0,
            due_us: u64::MAX,
            round_trip: RoundTrip::default(),
            greatest: 0,
            events: VecDeque::new(),
        }
    }

    /// Messages that are under way.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// The host learned of a final timestamp, by a delivery or from another sender (rule 17).
    pub fn handle_final(&mut self, time: u64) {
        self.greatest = self.greatest.max(time);
    }

    /// µs after which a message is repeated that was sent once: twice what answers took so far and
    /// how much they varied (RFC 6298), within the settings' times. Most losses are noticed before, by
    /// later messages that are complete.
    fn patience_us(&self) -> u64 {
        let least = self.config.repeat_us.max(1);
        let most = self.config.longest_repeat_us.max(least);
        let timeout = self.round_trip.timeout();
        timeout.map_or(least, |us| us.saturating_mul(2).clamp(least, most))
    }

    /// Notes that the STARTs of a lane's message go out, behind all others.
    fn order_last(&mut self, index: u8) {
        self.order += 1;
        let order = self.order;
        if let Some(sent) = self.message(index) {
            sent.order = order;
            sent.passed = 0;
        }
        self.starts.push_back(index);
        self.sent.push_back((order, index));
        if self.sent.len() > 4 * self.lanes.len() {
            let lanes = &self.lanes;
            let current = |(of, index): &(u64, u8)| {
                let lane = lanes.get(usize::from(*index));
                let sent = lane.and_then(|lane| lane.sent.as_ref());
                sent.is_some_and(|sent| sent.order == *of)
            };
            self.sent.retain(current);
        }
    }

    fn message(&mut self, index: u8) -> Option<&mut Sent> {
        self.lanes.get_mut(usize::from(index))?.sent.as_mut()
    }

    /// A message to `destinations` is complete whose STARTs had this order: the first one that is under
    /// way may have been lost, if it was sent before, and is repeated then.
    fn pass(&mut self, now_us: u64, order: u64, destinations: u32) {
        let repeat_us = self.patience_us();
        while let Some((of, index)) = self.sent.front().copied() {
            let message = self.message(index).filter(|sent| sent.order == of);
            let Some(first) = message else {
                self.sent.pop_front();
                continue;
            };
            if of > order || first.destinations != destinations {
                return;
            }
            first.passed += 1;
            if first.passed >= PASSED {
                first.pending = first.destinations & !first.complete;
                first.repeated = true;
                first.repeat_at_us = now_us.saturating_add(repeat_us);
                self.sent.pop_front();
                self.order_last(index);
            }
            return;
        }
    }

    /// Sends `payload` to all receivers of the groups in the map `destinations`.
    ///
    /// # Errors
    ///
    /// [`SendError`] if it is not sent.
    pub fn send(
        &mut self,
        now_us: u64,
        destinations: u32,
        payload: Vec<u8>,
    ) -> Result<Call, SendError> {
        if destinations == 0 {
            return Err(SendError::NoDestination);
        }
        if payload.len() > self.config.longest {
            return Err(SendError::TooLong {
                longest: self.config.longest,
                found: payload.len(),
            });
        }
        let (free, lanes) = (self.free.len(), self.lanes.len());
        if !self.shares.allow(now_us, destinations, free, lanes) {
            return Err(SendError::NoLane);
        }
        let repeat_us = self.patience_us();
        let repeat_at_us = now_us.saturating_add(repeat_us);
        let index = self.free.pop().ok_or(SendError::NoLane)?;
        let lane = self
            .lanes
            .get_mut(usize::from(index))
            .ok_or(SendError::NoLane)?;
        lane.sent = Some(Sent {
            destinations,
            payload,
            complete: 0,
            pending: destinations,
            at: FinalTime { time: 0, group: 0 },
            began_us: now_us,
            repeat_at_us,
            repeat_us,
            repeated: false,
            order: 0,
            passed: 0,
            told_unknown: false,
        });
        let call = MessageId {
            session: self.config.session,
            lane: index,
            number: lane.number,
        };
        self.under_way += 1;
        self.shares.sent(now_us, destinations);
        self.order_last(index);
        self.due_us = self.due_us.min(repeat_at_us);
        Ok(call)
    }

    /// Takes a COMPLETE or a REFUSED; others, and those of messages that are over, change nothing.
    pub fn handle_message(&mut self, now_us: u64, message: &Repr<'_>) {
        if message.session != self.config.session || message.group >= 32 {
            return;
        }
        let Some(lane) = self.lanes.get_mut(usize::from(message.lane)) else {
            return;
        };
        let call = MessageId {
            session: message.session,
            lane: message.lane,
            number: lane.number,
        };
        let Some(sent) = &mut lane.sent else {
            return;
        };
        let group = 1 << message.group;
        if message.number != lane.number || sent.destinations & group == 0 {
            return;
        }
        let event = match message.message_type {
            MessageType::Complete => {
                sent.complete |= group;
                sent.pending &= !group;
                // Of what the group has forgotten it tells a timestamp that is not below the final
                // one.
                if message.flags & flag::VOID == 0 {
                    sent.at = sent.at.max(FinalTime {
                        time: message.final_time,
                        group: message.final_group,
                    });
                }
                self.greatest = self.greatest.max(message.final_time);
                if sent.complete != sent.destinations {
                    return;
                }
                // Of a repeated message this is the longest that the answer can have taken. Without these
                // nothing would be learned once all are repeated, since answers take longer than before.
                self.round_trip
                    .measured(now_us.saturating_sub(sent.began_us));
                Event::Complete { call, at: sent.at }
            }
            MessageType::Refused => match Code::from_u8(message.code) {
                // A START that was lost to sight may have been taken by someone else.
                Some(code) if !passes(code) && !sent.spread() => Event::Refused { call, code },
                _ => return,
            },
            _ => return,
        };
        let (order, destinations) = (sent.order, sent.destinations);
        self.events.push_back(event);
        lane.number += 1;
        lane.sent = None;
        if lane.number < NUMBER_END {
            self.free.push(message.lane);
        }
        self.under_way -= 1;
        self.shares.over(destinations);
        self.pass(now_us, order, destinations);
    }

    /// A group has another leader: it is sent what it may lack.
    pub fn handle_leader(&mut self, now_us: u64, group: u8) {
        let map = 1u32.checked_shl(group.into()).unwrap_or(0);
        let repeat_us = self.patience_us();
        let mut again = Vec::new();
        for (index, lane) in (0u8..).zip(&mut self.lanes) {
            let Some(sent) = &mut lane.sent else {
                continue;
            };
            if sent.destinations & map & !sent.complete != 0 {
                sent.pending |= map;
                sent.repeated = true;
                sent.repeat_us = repeat_us;
                sent.repeat_at_us = now_us.saturating_add(repeat_us);
                self.due_us = self.due_us.min(sent.repeat_at_us);
                again.push(index);
            }
        }
        for index in again {
            self.order_last(index);
        }
    }

    /// Time at which [`Sender::handle_timeout`] is to be called, in µs: no later than something is
    /// due.
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.under_way > 0).then_some(self.due_us)
    }

    /// Repeats what is overdue, and tells outcomes as unknown. True if something is repeated.
    pub fn handle_timeout(&mut self, now_us: u64) -> bool {
        if self.due_us > now_us {
            return false;
        }
        let patience_us = self.patience_us();
        let longest_us = self.config.longest_repeat_us.max(patience_us);
        let mut again = Vec::new();
        self.due_us = u64::MAX;
        for (index, lane) in (0u8..).zip(&mut self.lanes) {
            let Some(sent) = &mut lane.sent else {
                continue;
            };
            if sent.repeat_at_us <= now_us {
                again.push(index);
                sent.pending = sent.destinations & !sent.complete;
                sent.repeated = true;
                let doubled = sent.repeat_us.max(patience_us).saturating_mul(2);
                sent.repeat_us = doubled.min(longest_us);
                sent.repeat_at_us = now_us.saturating_add(sent.repeat_us);
                let overdue = now_us.saturating_sub(sent.began_us) >= self.config.give_up_us;
                if overdue && !sent.told_unknown {
                    sent.told_unknown = true;
                    let call = MessageId {
                        session: self.config.session,
                        lane: index,
                        number: lane.number,
                    };
                    self.events.push_back(Event::Unknown { call });
                }
            }
            self.due_us = self.due_us.min(sent.repeat_at_us);
        }
        let repeats = !again.is_empty();
        for index in again {
            self.order_last(index);
        }
        repeats
    }

    /// The next START, and the group to whose leader it goes.
    pub fn poll_transmit(&mut self) -> Option<(u8, Repr<'_>)> {
        let is_empty = |lane: &Lane| lane.sent.as_ref().is_none_or(|sent| sent.pending == 0);
        while self
            .lanes
            .get(usize::from(*self.starts.front()?))
            .is_none_or(is_empty)
        {
            self.starts.pop_front();
        }
        let index = *self.starts.front()?;
        let lane = self.lanes.get_mut(usize::from(index))?;
        let sent = lane.sent.as_mut()?;
        let group = u8::try_from(sent.pending.trailing_zeros()).ok()?;
        sent.pending &= sent.pending - 1;
        let start = Repr {
            flags: flag::PAYLOAD,
            group,
            destinations: sent.destinations,
            session: self.config.session,
            lane: index,
            number: lane.number,
            final_time: self.greatest,
            payload: &sent.payload,
            ..Repr::new(MessageType::Start)
        };
        Some((group, start))
    }

    /// The next event for the program.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests;
