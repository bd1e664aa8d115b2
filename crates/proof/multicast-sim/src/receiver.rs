//! A host that receives: the shipped receiver, and a program that fetches what it delivers.

use crate::options::Rule;
use crate::parcel::Told;
use crate::places::Places;
use crate::scenario::Scenario;
use crate::sender::digest;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_history::multicast::{Filled, Final, MulticastEvent};
use stateplane_multicast::{Delivery, MessageId, Receiver, ReceiverConfig, Snapshot};
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
    /// Version of the list that was told last; its number there; the index that a peer's state must
    /// have.
    version: u16,
    number: Option<u8>,
    join_at: Option<u32>,
    leader: Option<Ipv4Addr>,
    leaders_version: u64,
    /// µs between two messages that the program fetches; 0: it fetches all.
    slow: u64,
    fetches_at: u64,
    ticks_at: u64,
    most: u64,
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
            number: None,
            join_at: None,
            leader: None,
            leaders_version: 0,
            slow: 0,
            fetches_at: 0,
            ticks_at: 0,
            most: 0,
            delivered: Vec::new(),
            notes: Vec::new(),
            without,
        }
    }

    /// The group begins with it.
    pub(crate) fn found(&mut self, number: u8, list_version: u16) {
        self.version = list_version;
        self.number = Some(number);
        self.config.number = number;
        self.config.list_version = list_version;
        self.part = Part::In(Box::new(Receiver::new(self.config)));
        self.note_joined(None);
    }

    /// The program fetches a message each `slow` µs from here on; 0: all at once.
    pub(crate) fn fetch_slowly(&mut self, slow: u64) {
        self.slow = slow;
    }

    fn note_joined(&mut self, peer: Option<usize>) {
        self.notes.push(MulticastEvent::Joined {
            node: receiver_number(self.place),
            group: self.group,
            peer: peer.map(receiver_number),
            after: None,
        });
    }

    /// Index that a peer's state has to have for it, while it waits for one.
    pub(crate) fn waits_for(&self) -> Option<u32> {
        self.join_at
            .filter(|_| self.number.is_some() && matches!(self.part, Part::Out))
    }

    /// True once it takes part.
    pub(crate) fn is_in(&self) -> bool {
        matches!(self.part, Part::In(_))
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
        self.config.number = self.number.unwrap_or(0);
        self.config.list_version = self.version;
        self.part = Part::In(Box::new(Receiver::joining(self.config, snapshot)));
        self.most = 0;
        self.note_joined(Some(peer));
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
                number,
                join_at,
            } if version.wrapping_sub(self.version).cast_signed() >= 0 => {
                let number = *number;
                if let Part::In(receiver) = &mut self.part {
                    if number == self.number {
                        receiver.handle_list(*version);
                    } else {
                        self.part = Part::Out;
                        self.notes.push(MulticastEvent::Left {
                            node: receiver_number(self.place),
                            group: self.group,
                        });
                    }
                }
                self.version = *version;
                self.number = number;
                self.join_at = *join_at;
            }
            _ => {}
        }
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
        while left > 0 {
            let Some(Delivery::Message {
                mut id,
                at,
                payload,
                ..
            }) = receiver.poll_deliver()
            else {
                break;
            };
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
        }
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
                // What is ignored is no fault of anyone.
                let _ = receiver.handle_message(&message);
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
        match self.slow {
            0 => Some(self.ticks_at),
            _ => Some(self.ticks_at.min(self.fetches_at)),
        }
    }
}
