//! A host that receives: the shipped receiver, and a program that fetches what it delivers, or a
//! replica of the store.

mod replica;

use crate::options::Rule;
use crate::parcel::{Begin, Told};
use crate::places::Places;
use crate::scenario::Scenario;
use crate::sender::digest;
use core::net::{Ipv4Addr, SocketAddrV4};
use replica::ReplicaPart;
use stateplane_apps::datagram::{datagram, frame};
use stateplane_history::multicast::{Filled, Final, MulticastEvent};
use stateplane_multicast::{Delivery, FinalTime, MessageId, Receiver, ReceiverConfig, Snapshot};
use stateplane_wire::multicast::{MessageType, PORT, Packet, Repr};
use stateplane_world::{Node, NodePort};

/// µs between two RECEIVED that nothing else asks for.
const TICK: u64 = 2_000;
/// Bits of a number below the index, when a receiver is to take each entry for another message.
const INDEX_AT: u32 = 20;

/// Part of a host in its group.
enum Part {
    /// It is not on the list, or waits for a peer's state.
    Out,
    In(Box<Receiver>),
}

/// A host that receives.
pub(crate) struct ReceiverNode {
    part: Part,
    place: usize,
    group: u8,
    config: ReceiverConfig,
    /// Version of the list that was told last; its number there, and since which version; the place
    /// from which it may join.
    version: u16,
    listed: Option<(u8, u16)>,
    begin: Option<Begin>,
    /// Last index of the leader's log when it began at a place.
    last: u32,
    /// It cannot have all any more, and asks to be listed anew.
    pub(crate) lost: bool,
    left: Option<(u8, u16)>,
    leader: Option<Ipv4Addr>,
    leaders_version: u64,
    /// µs between two messages that the program fetches; 0: it fetches all.
    slow: u64,
    fetches_at: u64,
    ticks_at: u64,
    most: u64,
    /// The replica, if there is a store.
    pub(crate) replica: Option<ReplicaPart>,
    /// Delivered messages by their ids, and what became known, for the history.
    pub(crate) delivered: Vec<(MessageId, Final, u64)>,
    pub(crate) notes: Vec<MulticastEvent>,
    without: Option<Rule>,
}

/// Number of a receiver in histories.
pub(crate) fn receiver_number(receiver: usize) -> u32 {
    100 + receiver as u32
}

impl ReceiverNode {
    pub(crate) fn new(place: usize, group: u8, scenario: &Scenario, without: Option<Rule>) -> Self {
        let bounded = without != Some(Rule::QueueBound);
        Self {
            part: Part::Out,
            place,
            group,
            config: ReceiverConfig {
                group,
                number: 0,
                list_version: 0,
                position: scenario.first_index,
                window: scenario.window,
                queue: if bounded {
                    scenario.queue.into()
                } else {
                    usize::MAX
                },
            },
            version: 0,
            listed: None,
            begin: None,
            last: scenario.first_index,
            lost: false,
            left: None,
            leader: None,
            leaders_version: 0,
            slow: 0,
            fetches_at: 0,
            ticks_at: 0,
            most: 0,
            replica: ReplicaPart::new(place, group, scenario, without),
            delivered: Vec::new(),
            notes: Vec::new(),
            without,
        }
    }

    /// The group begins with it.
    pub(crate) fn found(&mut self, number: u8, list_version: u16) {
        self.version = list_version;
        self.listed = Some((number, list_version));
        self.config.number = number;
        self.config.list_version = list_version;
        self.part = Part::In(Box::new(Receiver::new(self.config)));
        if let Some(replica) = &mut self.replica {
            replica.found();
        }
        self.note_joined(None, None);
    }

    /// The program fetches a message each `slow` µs from here on; 0: all at once.
    pub(crate) fn fetch_slowly(&mut self, slow: u64) {
        self.slow = slow;
    }

    fn note_joined(&mut self, peer: Option<usize>, after: Option<u64>) {
        self.notes.push(MulticastEvent::Joined {
            node: receiver_number(self.place),
            group: self.group,
            peer: peer.map(receiver_number),
            after,
        });
    }

    /// From where it may join, while it is listed and does not take part.
    fn may_begin(&self) -> Option<Begin> {
        self.begin
            .filter(|_| self.listed.is_some() && matches!(self.part, Part::Out))
    }

    /// Index that a peer's state has to have for it, while it waits for one.
    pub(crate) fn waits_for(&self) -> Option<u32> {
        let begin = self.may_begin().filter(|_| self.replica.is_none())?;
        Some(begin.last)
    }

    /// Timestamp that the state of a peer's replica has to cover, while its own waits for one.
    pub(crate) fn replica_waits_for(&self) -> Option<u64> {
        let replica = self.replica.as_ref().filter(|_| self.is_in())?;
        replica.waits_for()
    }

    /// Final timestamp behind which it gets all messages, if it began at a place.
    pub(crate) fn after(&self) -> Option<u64> {
        let replica = self.replica.as_ref().filter(|_| self.is_in())?;
        Some(replica.after())
    }

    /// True once it takes part.
    pub(crate) fn is_in(&self) -> bool {
        matches!(self.part, Part::In(_))
    }

    /// True if another receiver of its group can begin with what it has.
    pub(crate) fn has_state(&self) -> bool {
        // Before it has all up to the place from which the list began, a leader that was deposed may
        // have freed more.
        let position = self.snapshot().map(|(position, _)| position);
        let caught_up = position.is_some_and(|at| at.wrapping_sub(self.last).cast_signed() >= 0);
        caught_up && self.replica_waits_for().is_none()
    }

    /// Position and state, if it takes part.
    pub(crate) fn snapshot(&self) -> Option<(u32, Snapshot)> {
        match &self.part {
            Part::In(receiver) => Some((receiver.position(), receiver.snapshot())),
            Part::Out => None,
        }
    }

    /// Goes on with a peer's state.
    pub(crate) fn join(&mut self, peer: usize, snapshot: Snapshot) {
        self.config.number = self.listed.map_or(0, |(number, _)| number);
        self.config.list_version = self.version;
        self.part = Part::In(Box::new(Receiver::joining(self.config, snapshot)));
        self.most = 0;
        self.note_joined(Some(peer), None);
    }

    /// Begins at a place in the order, as the receivers of the store's replicas do.
    fn begin_at_place(&mut self) {
        let begin = self.may_begin();
        if let (Some(begin), Some(replica)) = (begin, &mut self.replica) {
            replica.begin(begin.time);
            self.config.number = self.listed.map_or(0, |(number, _)| number);
            self.config.list_version = self.version;
            self.last = begin.last;
            self.config.position = begin.base;
            self.part = Part::In(Box::new(Receiver::new(self.config)));
            self.most = 0;
            self.note_joined(None, Some(begin.time));
        }
    }

    /// Takes what the authority tells.
    pub(crate) fn hear(&mut self, told: &Told) {
        match told {
            Told::Leaders { version, leaders } if *version > self.leaders_version => {
                self.leaders_version = *version;
                self.leader = leaders.get(&self.group).copied();
            }
            Told::List {
                version,
                listed,
                begin,
            } if version.wrapping_sub(self.version).cast_signed() >= 0 => {
                match &mut self.part {
                    Part::In(receiver) if *listed == self.listed => receiver.handle_list(*version),
                    Part::In(_) => self.leave(),
                    Part::Out => {}
                }
                self.version = *version;
                // It does not come back to the number that it left.
                let stale = self.left.is_some() && *listed == self.left;
                self.listed = listed.filter(|_| !stale);
                self.begin = *begin;
                self.begin_at_place();
            }
            _ => {}
        }
    }

    /// Takes no part any more.
    fn leave(&mut self) {
        self.part = Part::Out;
        self.left = self.listed.take();
        if let Some(replica) = &mut self.replica {
            replica.end();
        }
        self.notes.push(MulticastEvent::Left {
            node: receiver_number(self.place),
            group: self.group,
        });
    }

    /// The message as the receiver is given it, where a rule is turned off.
    fn altered<'a>(&self, message: Repr<'a>) -> Repr<'a> {
        match self.without {
            Some(Rule::Watermark) if message.message_type == MessageType::Deliver => Repr {
                timestamp: u64::MAX,
                ..message
            },
            Some(Rule::Once) => Repr {
                number: (u64::from(message.index) << INDEX_AT) | message.number,
                ..message
            },
            _ => message,
        }
    }

    fn fetch(&mut self, now: u64) {
        let Part::In(receiver) = &mut self.part else {
            return;
        };
        let queued = receiver.queued() as u64;
        if queued > self.most {
            self.most = queued;
            self.notes.push(MulticastEvent::Fills {
                node: receiver_number(self.place),
                group: self.group,
                what: Filled::Queue,
                count: queued,
            });
        }
        let all = self.slow == 0;
        let mut left = if all {
            usize::MAX
        } else {
            usize::from(now >= self.fetches_at)
        };
        while left > 0 && self.replica.as_ref().is_none_or(ReplicaPart::has_room) {
            let Some(Delivery::Message {
                mut id,
                at,
                destinations,
                payload,
            }) = receiver.poll_deliver()
            else {
                break;
            };
            if self.replica.as_ref().is_some_and(|of| of.is_before(at)) {
                continue;
            }
            if self.without == Some(Rule::Once) {
                id.number &= (1 << INDEX_AT) - 1;
            }
            let at = Final {
                time: at.time,
                group: at.group,
            };
            self.delivered.push((id, at, digest(&payload)));
            self.fetches_at = now + self.slow;
            left -= 1;
            if let Some(replica) = &mut self.replica {
                let at = FinalTime {
                    time: at.time,
                    group: at.group,
                };
                replica.handle_delivery(now, at, destinations, payload);
                replica.collect(&mut self.notes);
            }
        }
        if let (Some(replica), Some(time)) = (&mut self.replica, receiver.passed()) {
            replica.handle_passed(time);
        }
    }

    /// Takes a datagram of the replica at another receiver.
    pub(crate) fn handle_store(&mut self, now: u64, from: usize, bytes: &[u8]) {
        if let Some(replica) = &mut self.replica {
            replica.handle_datagram(now, from, bytes);
            replica.collect(&mut self.notes);
        }
        self.fetch(now);
    }
}

impl Node for ReceiverNode {
    type Message = Vec<u8>;
    type Transmit = Vec<u8>;

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, bytes: Vec<u8>) {
        let Some((_, _, bytes)) = datagram(&bytes) else {
            return;
        };
        if let Ok(packet) = Packet::new_checked(bytes) {
            let message = self.altered(Repr::parse(&packet));
            if let Part::In(receiver) = &mut self.part {
                let ahead = |index: u32| index.wrapping_sub(receiver.position()).cast_signed();
                let lacks = message.message_type == MessageType::Deliver && ahead(message.base) > 0;
                if lacks && self.replica.is_some() {
                    // The log went on without it, as it may behind a place in the order.
                    self.lost = true;
                    self.leave();
                } else if !lacks || ahead(message.index) > 0 {
                    // A receiver may ignore any message.
                    let _ = receiver.handle_message(&message);
                }
            }
        }
        self.fetch(now);
    }

    fn handle_timeout(&mut self, now: u64) {
        if now >= self.ticks_at {
            self.ticks_at = now + TICK;
            if let Part::In(receiver) = &mut self.part {
                receiver.handle_tick();
            }
        }
        if let Some(replica) = &mut self.replica {
            replica.handle_timeout(now);
        }
        self.fetch(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Vec<u8>> {
        let Part::In(receiver) = &mut self.part else {
            return None;
        };
        let received = receiver.poll_transmit()?;
        let own = SocketAddrV4::new(Places::receiver_address(self.place), PORT);
        let to = SocketAddrV4::new(self.leader?, PORT);
        Some(frame(own, to, &received.to_vec().unwrap_or_default()))
    }

    fn poll_timeout(&self) -> Option<u64> {
        let asks_at = self.replica.as_ref().and_then(ReplicaPart::poll_timeout);
        let due = self.ticks_at.min(asks_at.unwrap_or(u64::MAX));
        match self.slow {
            0 => Some(due),
            _ => Some(due.min(self.fetches_at)),
        }
    }
}
