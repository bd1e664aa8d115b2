//! A sender: lanes of a session, repetition that backs off, refusals and unknown outcomes (rules
//! 17, 21, 22, 27).

use std::collections::VecDeque;

use stateplane_wire::multicast::{Code, MessageType, NUMBER_END, Repr, flag};

use crate::{FinalTime, MessageId};

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
    /// µs after which a START is repeated first; the time doubles with each.
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
    /// Each lane carries a message: wait for an event.
    #[error("each of the session's lanes carries a message")]
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
    /// STARTs were sent more than once, or to several groups.
    spread: bool,
    told_unknown: bool,
}

#[derive(Debug)]
struct Lane {
    /// Number of the message that is under way, or of the next one.
    number: u64,
    sent: Option<Sent>,
}

/// A sender: one session.
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    lanes: Vec<Lane>,
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
        Sender {
            config,
            lanes: (0..config.lanes).map(|_| lane()).collect(),
            greatest: 0,
            events: VecDeque::new(),
        }
    }

    /// Messages that are under way.
    pub fn under_way(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.sent.is_some()).count()
    }

    /// The host learned of a final timestamp, by a delivery or from another sender (rule 17).
    pub fn handle_final(&mut self, time: u64) {
        self.greatest = self.greatest.max(time);
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
        let mut lanes = (0u8..).zip(&mut self.lanes);
        let (index, lane) = lanes
            .find(|(_, lane)| lane.sent.is_none() && lane.number < NUMBER_END)
            .ok_or(SendError::NoLane)?;
        lane.sent = Some(Sent {
            destinations,
            payload,
            complete: 0,
            pending: destinations,
            at: FinalTime { time: 0, group: 0 },
            began_us: now_us,
            repeat_at_us: now_us.saturating_add(self.config.repeat_us),
            repeat_us: self.config.repeat_us,
            spread: destinations.count_ones() > 1,
            told_unknown: false,
        });
        Ok(MessageId {
            session: self.config.session,
            lane: index,
            number: lane.number,
        })
    }

    /// Takes a COMPLETE or a REFUSED; others, and those of messages that are over, change nothing.
    pub fn handle_message(&mut self, message: &Repr<'_>) {
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
                Event::Complete { call, at: sent.at }
            }
            MessageType::Refused => match Code::from_u8(message.code) {
                // A START that was lost to sight may have been taken by someone else.
                Some(code) if !passes(code) && !sent.spread => Event::Refused { call, code },
                _ => return,
            },
            _ => return,
        };
        self.events.push_back(event);
        lane.number += 1;
        lane.sent = None;
    }

    /// Time at which [`Sender::handle_timeout`] is due, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        let sent = self.lanes.iter().filter_map(|lane| lane.sent.as_ref());
        sent.map(|sent| sent.repeat_at_us).min()
    }

    /// Repeats what is overdue, and tells outcomes as unknown.
    pub fn handle_timeout(&mut self, now_us: u64) {
        for (index, lane) in (0u8..).zip(&mut self.lanes) {
            let Some(sent) = &mut lane.sent else {
                continue;
            };
            if sent.repeat_at_us > now_us {
                continue;
            }
            sent.pending = sent.destinations & !sent.complete;
            sent.spread = true;
            let doubled = sent.repeat_us.saturating_mul(2);
            sent.repeat_us = doubled.min(self.config.longest_repeat_us);
            sent.repeat_at_us = now_us.saturating_add(sent.repeat_us.max(1));
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
    }

    /// The next START, and the group to whose leader it goes.
    pub fn poll_transmit(&mut self) -> Option<(u8, Repr<'_>)> {
        let lanes = (0u8..).zip(&mut self.lanes);
        let mut pending = lanes.filter_map(|(index, lane)| {
            let sent = lane.sent.as_mut().filter(|sent| sent.pending != 0)?;
            Some((index, lane.number, sent))
        });
        let (lane, number, sent) = pending.next()?;
        let group = u8::try_from(sent.pending.trailing_zeros()).ok()?;
        sent.pending &= sent.pending - 1;
        let start = Repr {
            flags: flag::PAYLOAD,
            group,
            destinations: sent.destinations,
            session: self.config.session,
            lane,
            number,
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
