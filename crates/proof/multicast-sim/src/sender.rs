//! A host that sends: the shipped sender, and what the world knows of its messages; with a store, its
//! client.

mod client;

use crate::options::Rule;
use crate::parcel::Told;
use crate::places::Places;
use crate::scenario::Scenario;
use client::ClientPart;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_history::multicast::{EventKind, MulticastEvent};
use stateplane_multicast::{Event, MessageId, Sender, SenderConfig};
use stateplane_multicast_store::Operation;
use stateplane_wire::multicast::{MessageType, PORT, Packet, Repr};
use stateplane_world::{Node, NodePort};
use std::collections::{BTreeMap, VecDeque};

/// A message that waits for a lane.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) message: u64,
    pub(crate) to: u32,
    pub(crate) payload: Vec<u8>,
}

/// A host that sends.
pub(crate) struct SenderNode {
    sender: Sender,
    place: usize,
    leaders: BTreeMap<u8, Ipv4Addr>,
    leaders_version: u64,
    waiting: VecDeque<Waiting>,
    /// Numbers of messages that have lanes.
    under_way: BTreeMap<MessageId, (u64, u32)>,
    /// Ids that messages got, for the world.
    pub(crate) sent: Vec<(MessageId, Waiting)>,
    /// Events that became known, for the history.
    pub(crate) notes: Vec<EventKind>,
    /// The client of the store, from its first operation on, and messages that it sent.
    client: Option<ClientPart>,
    asked: u64,
    without: Option<Rule>,
}

/// Number of a sender in histories.
pub(crate) fn sender_number(sender: usize) -> u32 {
    200 + sender as u32
}

/// Slot of a sender's session.
pub(crate) fn session_of(sender: usize) -> u16 {
    sender as u16 + 1
}

/// Digest of a payload, for histories.
pub(crate) fn digest(payload: &[u8]) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    for byte in payload {
        digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    digest
}

impl SenderNode {
    pub(crate) fn new(place: usize, scenario: &Scenario, without: Option<Rule>) -> Self {
        let config = SenderConfig {
            session: session_of(place),
            lanes: scenario.lanes,
            first_number: 1,
            longest: scenario.longest.into(),
            repeat_us: 2_000,
            longest_repeat_us: 16_000,
            give_up_us: 100_000,
        };
        Self {
            sender: Sender::new(config),
            place,
            leaders: BTreeMap::new(),
            leaders_version: 0,
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            sent: Vec::new(),
            notes: Vec::new(),
            client: None,
            asked: 0,
            without,
        }
    }

    /// The program at the host calls an operation of the store.
    pub(crate) fn call(&mut self, now: u64, scenario: &Scenario, operation: Operation) {
        let new = || ClientPart::new(now, self.place, scenario);
        self.client.get_or_insert_with(new).push(operation);
        self.go_on(now);
    }

    /// Takes a datagram of a replica of the store.
    pub(crate) fn handle_store(&mut self, now: u64, bytes: &[u8]) {
        if let Some(client) = &mut self.client {
            client.handle_datagram(bytes);
        }
        self.go_on(now);
    }

    /// Sends a message, or has it wait for a lane.
    pub(crate) fn send(&mut self, now: u64, waiting: Waiting) {
        self.waiting.push_back(waiting);
        self.go_on(now);
    }

    fn go_on(&mut self, now: u64) {
        while let Some(next) = self.waiting.front() {
            let Ok(id) = self.sender.send(now, next.to, next.payload.clone()) else {
                return;
            };
            if let Some(next) = self.waiting.pop_front() {
                self.note_sent(id, next);
            }
        }
        self.go_on_with_client(now);
    }

    fn go_on_with_client(&mut self, now: u64) {
        let Some(client) = &mut self.client else {
            return;
        };
        if let Some(time) = client.go_on(now) {
            self.sender.handle_final(time);
        }
        self.notes.append(&mut client.notes);
        let Some((to, payload)) = client.poll_send() else {
            return;
        };
        match self.sender.send(now, to, payload.clone()) {
            Ok(id) => {
                self.asked += 1;
                let message = (u64::from(sender_number(self.place)) << 32) | self.asked;
                let sent = Waiting {
                    message,
                    to,
                    payload,
                };
                self.note_sent(id, sent);
            }
            // It waits for a lane.
            Err(_) => client.handle_no_lane(),
        }
    }

    fn note_sent(&mut self, id: MessageId, sent: Waiting) {
        let event = MulticastEvent::Sent {
            node: sender_number(self.place),
            message: sent.message,
            to: sent.to,
            digest: digest(&sent.payload),
        };
        self.notes.push(EventKind::Of(event));
        self.under_way.insert(id, (sent.message, sent.to));
        self.sent.push((id, sent));
    }

    fn take(&mut self, now: u64, message: &Repr<'_>) {
        self.sender.handle_message(now, message);
        let early = self.without == Some(Rule::AllAnswered);
        if early && message.message_type == MessageType::Complete {
            for group in 0..32 {
                let group = Repr { group, ..*message };
                self.sender.handle_message(now, &group);
            }
        }
        let node = sender_number(self.place);
        while let Some(event) = self.sender.poll_event() {
            let (call, note): (_, fn(u32, u64) -> MulticastEvent) = match event {
                Event::Complete { call, .. } => (call, |node, message| MulticastEvent::Completed {
                    node,
                    message,
                }),
                Event::Refused { call, .. } => {
                    if let Some(client) = &mut self.client {
                        client.handle_refusal(now);
                    }
                    (call, |node, message| MulticastEvent::Refused {
                        node,
                        message,
                    })
                }
                Event::Unknown { .. } => continue,
            };
            if let Some((message, _)) = self.under_way.remove(&call) {
                self.notes.push(EventKind::Of(note(node, message)));
            }
        }
        self.go_on(now);
    }

    /// Takes what the authority tells.
    pub(crate) fn hear(&mut self, told: &Told) {
        if let Told::Leaders { version, leaders } = told
            && *version > self.leaders_version
        {
            self.leaders_version = *version;
            self.leaders = leaders.clone();
        }
    }
}

impl Node for SenderNode {
    type Message = Vec<u8>;
    type Transmit = Vec<u8>;

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, bytes: Vec<u8>) {
        let Some((_, _, bytes)) = datagram(&bytes) else {
            return;
        };
        if let Ok(packet) = Packet::new_checked(bytes) {
            self.take(now, &Repr::parse(&packet));
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        self.sender.handle_timeout(now);
        while self.sender.poll_event().is_some() {}
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
            self.go_on(now);
        }
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Vec<u8>> {
        loop {
            let (group, start) = self.sender.poll_transmit()?;
            let Some(leader) = self.leaders.get(&group) else {
                continue;
            };
            let final_time = match self.without {
                Some(Rule::GreatestTold) => 0,
                _ => start.final_time,
            };
            let start = Repr {
                final_time,
                ..start
            };
            let to = SocketAddrV4::new(*leader, PORT);
            let bytes = start.to_vec().unwrap_or_default();
            return Some(frame(Places::sender_socket(self.place), to, &bytes));
        }
    }

    fn poll_timeout(&self) -> Option<u64> {
        let client = self.client.as_ref().and_then(ClientPart::poll_timeout);
        let sender = self.sender.poll_timeout();
        sender.into_iter().chain(client).min()
    }
}
