//! A receiver: puts what leaders tell into one order (rules 18 to 20, 26).

use std::collections::{BTreeMap, VecDeque};

use stateplane_wire::multicast::{MessageType, Repr, flag};

use crate::{FinalTime, MessageId};

/// Settings of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The group.
    pub group: u8,
    /// Number of the receiver in the group's list.
    pub number: u8,
    /// Version of the list that has it (rule 26).
    pub list_version: u16,
    /// Index up to which it has all already: 0, or that of a peer's snapshot.
    pub position: u32,
    /// Entries of the group's window: what is further ahead is not kept.
    pub window: u32,
    /// Most messages that wait for [`Receiver::poll_deliver`]; from there on no entry is taken,
    /// which stops the lanes of senders (rule 26).
    pub queue: usize,
}

/// Event for the program, in the order that all receivers have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The next message.
    Message {
        /// Its id.
        id: MessageId,
        /// Its place in the order.
        at: FinalTime,
        /// Map of the groups that it addressed.
        destinations: u32,
        /// Its payload.
        payload: Vec<u8>,
    },
    /// The controller took the receiver off the list; there are no more messages.
    Evicted,
}

/// Reason for which a message changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// It is of another group.
    #[error("the message is of group {0}")]
    OtherGroup(u8),
    /// It is not one that leaders send to receivers.
    #[error("a {0:?} is not for receivers")]
    OtherType(MessageType),
    /// Its index is taken already.
    #[error("index {0} is taken already")]
    Taken(u32),
    /// Its index is beyond the window.
    #[error("index {0} is beyond the window")]
    BeyondWindow(u32),
    /// The receiver is not on the list any more.
    #[error("the receiver was taken off the group's list")]
    Evicted,
}

/// Entries behind a message to several groups with which its DELIVER counts as lost if that of another
/// such message came: groups decide messages in about the order of their logs.
const PASSED: i32 = 32;

/// An entry that a leader told.
#[derive(Debug, Clone, Copy)]
struct Fact {
    timestamp: u64,
    /// None for a no-op and for what is void.
    message: Option<Told>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    id: MessageId,
    at: FinalTime,
    destinations: u32,
}

/// Furthest indices that came: what is lost before them is a gap.
#[derive(Debug, Clone, Copy)]
struct Furthest {
    payload: u32,
    /// Of a DELIVER.
    told: u32,
    /// Of the DELIVER of a message to several groups.
    shared: u32,
}

impl Furthest {
    fn at(position: u32) -> Furthest {
        Furthest {
            payload: position,
            told: position,
            shared: position,
        }
    }
}

/// A payload, and the entry with which it came.
#[derive(Debug, Clone)]
struct Came {
    epoch: u32,
    timestamp: u64,
    id: MessageId,
    destinations: u32,
    /// A later entry is answered in its place.
    later: bool,
    payload: Vec<u8>,
}

/// State of a receiver, with which another begins that joins (rule 26). It belongs to the state of
/// the program at the same moment: what the program had fetched is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    position: u32,
    timestamp: u64,
    waiting: BTreeMap<FinalTime, (Told, Vec<u8>)>,
    ready: VecDeque<Delivery>,
    taken: BTreeMap<(u16, u8), u64>,
}

impl Snapshot {
    /// Index up to which all entries are taken.
    pub fn position(&self) -> u32 {
        self.position
    }
}

/// A receiver of one group.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    /// Index up to which all entries are taken, and the timestamp of that one.
    position: u32,
    timestamp: u64,
    /// Entries behind the position, at most a window of them.
    facts: BTreeMap<u32, Fact>,
    /// Payloads by the index with which they came, at most a window of them.
    payloads: BTreeMap<u32, Came>,
    /// The latest epoch heard of, and up to which index its leader said that all is committed.
    committed: Option<(u32, u32)>,
    /// Messages that are taken and whose final timestamp is beyond the position's.
    waiting: BTreeMap<FinalTime, (Told, Vec<u8>)>,
    ready: VecDeque<Delivery>,
    /// Last number of each lane that was taken (rule 20).
    taken: BTreeMap<(u16, u8), u64>,
    answers: bool,
    furthest: Furthest,
    /// Position at which it said that it has later entries.
    gap_at: Option<u32>,
    evicted: bool,
}

/// How far `index` is ahead of `position`, of serial numbers; 0 or below 0 if it is not.
fn ahead(index: u32, position: u32) -> i32 {
    index.wrapping_sub(position).cast_signed()
}

/// Moves an index on, and not back.
fn move_on(furthest: &mut u32, index: u32) {
    if ahead(index, *furthest) > 0 {
        *furthest = index;
    }
}

impl Receiver {
    /// A receiver that has nothing but its position.
    pub fn new(config: ReceiverConfig) -> Receiver {
        Receiver {
            config,
            position: config.position,
            timestamp: 0,
            facts: BTreeMap::new(),
            payloads: BTreeMap::new(),
            committed: None,
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            taken: BTreeMap::new(),
            answers: true,
            furthest: Furthest::at(config.position),
            gap_at: None,
            evicted: false,
        }
    }

    /// A receiver that joins with a peer's state: that of `snapshot`, whatever position `config`
    /// names. The snapshot's position must not be behind the last entry of the leader that first
    /// had this receiver on its list (rule 26): what lies before is not kept for it.
    pub fn joining(config: ReceiverConfig, snapshot: Snapshot) -> Receiver {
        Receiver {
            position: snapshot.position,
            timestamp: snapshot.timestamp,
            waiting: snapshot.waiting,
            ready: snapshot.ready,
            taken: snapshot.taken,
            furthest: Furthest::at(snapshot.position),
            ..Receiver::new(config)
        }
    }

    /// The state for one that joins.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            position: self.position,
            timestamp: self.timestamp,
            waiting: self.waiting.clone(),
            ready: self.ready.clone(),
            taken: self.taken.clone(),
        }
    }

    /// Index up to which all entries are taken.
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Messages that wait for [`Receiver::poll_deliver`].
    pub fn queued(&self) -> usize {
        self.ready.len()
    }

    /// Takes a PAYLOAD or a DELIVER.
    ///
    /// # Errors
    ///
    /// [`Ignored`] if the message changed nothing; that is no fault of anyone.
    pub fn handle_message(&mut self, message: &Repr<'_>) -> Result<(), Ignored> {
        if self.evicted {
            return Err(Ignored::Evicted);
        }
        if message.group != self.config.group {
            return Err(Ignored::OtherGroup(message.group));
        }
        let kind = message.message_type;
        if !matches!(kind, MessageType::Payload | MessageType::Deliver) {
            return Err(Ignored::OtherType(kind));
        }
        self.note_commit(message);
        let kept = self.keep_entry(message);
        self.take();
        // The leader learns at once that the next entry is lost, and once.
        self.answers |= self.gap_at != Some(self.position) && self.has_gap();
        kept
    }

    /// Keeps the entry of a PAYLOAD or DELIVER.
    fn keep_entry(&mut self, message: &Repr<'_>) -> Result<(), Ignored> {
        let distance = ahead(message.index, self.position);
        if distance <= 0 {
            // A leader that repeats a taken entry has not heard of it.
            self.answers = true;
            return Err(Ignored::Taken(message.index));
        }
        if distance.cast_unsigned() > self.config.window {
            return Err(Ignored::BeyondWindow(message.index));
        }
        let id = MessageId {
            session: message.session,
            lane: message.lane,
            number: message.number,
        };
        if message.flags & flag::PAYLOAD != 0 {
            self.keep_payload(message, id);
        }
        if message.message_type == MessageType::Deliver {
            let told = Told {
                id,
                at: FinalTime {
                    time: message.final_time,
                    group: message.final_group,
                },
                destinations: message.destinations,
            };
            let nothing = message.flags & (flag::NO_OP | flag::VOID) != 0;
            // What is void now was a message when a leader told it before: both are true, and a
            // copy is dropped by its id.
            move_on(&mut self.furthest.told, message.index);
            if !self.is_alone(message.destinations) {
                move_on(&mut self.furthest.shared, message.index);
            }
            self.facts.entry(message.index).or_insert(Fact {
                timestamp: message.timestamp,
                message: (!nothing).then_some(told),
            });
        }
        Ok(())
    }

    /// All that a leader sends says up to which index its log is committed.
    fn note_commit(&mut self, message: &Repr<'_>) {
        let said = (message.epoch, message.commit);
        match &mut self.committed {
            Some((epoch, index)) if *epoch == message.epoch => {
                move_on(index, message.commit);
            }
            Some((epoch, _)) if ahead(message.epoch, *epoch) < 0 => {}
            committed => *committed = Some(said),
        }
    }

    /// Keeps a payload. An entry that was cut off leaves its place to another, of a later epoch.
    fn keep_payload(&mut self, message: &Repr<'_>, id: MessageId) {
        let kept = self.payloads.get(&message.index);
        if kept.is_none_or(|kept| ahead(message.epoch, kept.epoch) >= 0) {
            let came = Came {
                epoch: message.epoch,
                timestamp: message.timestamp,
                id,
                destinations: message.destinations,
                later: message.flags & flag::LATER != 0,
                payload: message.payload.to_vec(),
            };
            self.payloads.insert(message.index, came);
            move_on(&mut self.furthest.payload, message.index);
        }
    }

    /// True if the next entry cannot be taken though later ones came: a leader sends payloads in the
    /// order of entries, and DELIVERs of a group's own messages. Those of messages to several groups
    /// go out as these decide, which is about that order.
    fn has_gap(&self) -> bool {
        let next = self.position.wrapping_add(1);
        let Some(came) = self.payloads.get(&next) else {
            return match self.fact(next) {
                Some(fact) => fact.message.is_some(),
                None => {
                    ahead(self.furthest.payload, next) > 0 || ahead(self.furthest.told, next) > 0
                }
            };
        };
        let passed = if self.is_alone(came.destinations) {
            ahead(self.furthest.told, next) > 0
        } else {
            ahead(self.furthest.shared, next) > PASSED
        };
        passed && self.fact(next).is_none()
    }

    /// True of the destinations of a message to this group alone.
    fn is_alone(&self, destinations: u32) -> bool {
        Some(destinations) == 1u32.checked_shl(self.config.group.into())
    }

    /// The entry `index`, if a leader told it, or if it came with its payload from a leader that said
    /// later, in the same epoch, that its log is committed up to there: a leader's log only grows. The
    /// final timestamp of a message to several groups has to be told.
    fn fact(&self, index: u32) -> Option<Fact> {
        if let Some(&fact) = self.facts.get(&index) {
            return Some(fact);
        }
        let came = self.payloads.get(&index)?;
        let (epoch, committed) = self.committed?;
        let group = self.config.group;
        let alone = self.is_alone(came.destinations);
        let is_committed = came.epoch == epoch && ahead(index, committed) <= 0;
        (alone && is_committed).then_some(Fact {
            timestamp: came.timestamp,
            message: Some(Told {
                id: came.id,
                at: FinalTime {
                    time: came.timestamp,
                    group,
                },
                destinations: came.destinations,
            }),
        })
    }

    /// Takes entries in their order while there is room (rule 18).
    fn take(&mut self) {
        while self.ready.len() < self.config.queue {
            if let Some((at, _)) = self.waiting.first_key_value()
                && at.time <= self.timestamp
            {
                let Some((at, (told, payload))) = self.waiting.pop_first() else {
                    return;
                };
                self.ready.push_back(Delivery::Message {
                    id: told.id,
                    at,
                    destinations: told.destinations,
                    payload,
                });
                continue;
            }
            if !self.take_next() {
                return;
            }
        }
    }

    /// Takes the next entry, if it and its payload are there.
    fn take_next(&mut self) -> bool {
        let next = self.position.wrapping_add(1);
        let Some(fact) = self.fact(next) else {
            return false;
        };
        let mut later = false;
        if let Some(told) = fact.message {
            let lane = (told.id.session, told.id.lane);
            let last = self.taken.get(&lane).copied().unwrap_or(0);
            if told.id.number > last {
                // A payload that came with the index of an entry which was cut off is another's.
                match self.payloads.remove(&next) {
                    Some(came) if came.id == told.id => {
                        later = came.later;
                        self.taken.insert(lane, told.id.number);
                        self.waiting.insert(told.at, (told, came.payload));
                    }
                    _ => return false,
                }
            }
        }
        self.payloads.remove(&next);
        self.facts.remove(&next);
        self.position = next;
        self.timestamp = fact.timestamp;
        self.answers |= !later;
        true
    }

    /// The list has another version, which still has this receiver.
    pub fn handle_list(&mut self, list_version: u16) {
        self.config.list_version = list_version;
        self.answers = true;
    }

    /// The controller took the receiver off the list: what is not ready is not delivered.
    pub fn handle_eviction(&mut self) {
        if !self.evicted {
            self.evicted = true;
            self.facts.clear();
            self.payloads.clear();
            self.waiting.clear();
            self.ready.push_back(Delivery::Evicted);
        }
    }

    /// The hold time of RECEIVED is over: it is said again, since it may have been lost.
    pub fn handle_tick(&mut self) {
        self.answers = true;
    }

    /// The next event for the program, in order.
    pub fn poll_deliver(&mut self) -> Option<Delivery> {
        let next = self.ready.pop_front();
        if !self.evicted {
            self.take();
        }
        next
    }

    /// Timestamp up to which every message was fetched, also those of other groups' timestamps;
    /// `None` while one that may be fetched waits, or when the receiver was taken off the list.
    pub fn passed(&self) -> Option<u64> {
        (self.ready.is_empty() && !self.evicted).then_some(self.timestamp)
    }

    /// RECEIVED for the group's leader, if there is something to say.
    pub fn poll_transmit(&mut self) -> Option<Repr<'static>> {
        if !self.answers || self.evicted {
            return None;
        }
        self.answers = false;
        let has_gap = self.has_gap();
        self.gap_at = has_gap.then_some(self.position);
        let waits = self.waiting.last_key_value();
        Some(Repr {
            flags: if has_gap { flag::GAP } else { 0 },
            group: self.config.group,
            origin: self.config.number,
            list_version: self.config.list_version,
            index: self.position,
            final_time: waits.map_or(0, |(at, _)| at.time),
            ..Repr::new(MessageType::Received)
        })
    }
}

#[cfg(test)]
mod tests;
