//! Groups whose leaders order messages: switches, receivers, and a sender with many lanes.

use super::node::{
    Deployment, Frames, INCARNATION, MEMBERS, Node, SENDER, SENDER_PORT, TO_LEADERS, TO_MEMBERS,
    member_address, receiver_address,
};
use stateplane_bench::frame;
use stateplane_multicast::{Delivery, Receiver, ReceiverConfig};
use stateplane_native::Compiled;
use stateplane_wire::multicast::{MessageType, NO_LEARNER, PORT, Packet, Repr, field, flag};
use std::collections::VecDeque;
use std::net::SocketAddrV4;

/// Messages that each group orders in a burst.
pub const BURST: usize = 32;

/// µs of the switches' time for a message of each group. A slot of the window holds two copies at
/// most, and followers hold theirs for 16 ms: with a window of 1,024 that is 128 messages a ms.
const MESSAGE_US: u64 = 16;

/// Entries of a group's window.
const WINDOW: u32 = 1024;

/// Epoch in which all leaders lead, and version of their lists.
const EPOCH: u32 = 1;
const LIST: u16 = 1;

/// Bytes before the message in a frame.
const BEFORE: usize = 14 + 20 + 8;

/// Offset of the checksum of UDP.
const CHECKSUM: usize = BEFORE - 2;

/// Work of a switch, by the packets that cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// START: append, PROP, PAYLOAD and HINT.
    Start,
    /// ACK: commit, DELIVER and DECIDED.
    Ack,
    /// HINT, DECIDED, DONE of other leaders.
    Leader,
    /// RECEIVED: COMPLETE, DONE, and freeing.
    Received,
    /// Copies that were held come back.
    Held,
    /// PROP, at a follower.
    Prop,
}

/// Number of kinds.
pub const KINDS: usize = 6;

/// ns that a switch spent on each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub ns: [f64; KINDS],
}

impl Work {
    /// ns of all kinds.
    pub fn total(&self) -> f64 {
        self.ns.iter().sum()
    }
}

/// Frames for a leader, by kind, with the switch that made them.
#[derive(Default)]
struct Inbox {
    acks: Vec<(usize, Frames)>,
    leaders: Vec<(usize, Frames)>,
    received: Vec<Vec<u8>>,
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.leaders.is_empty() && self.received.is_empty()
    }
}

/// A message that is under way in a lane.
#[derive(Clone, Copy, Default)]
struct Lane {
    number: u64,
    /// Destinations that did not say COMPLETE.
    missing: u32,
}

/// STARTs for the leader of a group.
struct Starts {
    /// A frame of which ids and destinations are written anew.
    frame: Vec<u8>,
    burst: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl Starts {
    /// STARTs with payloads of `length` bytes.
    fn new(group: usize, length: usize) -> Starts {
        let start = Repr {
            flags: flag::PAYLOAD,
            group: group as u8,
            payload: &vec![0x5a; length],
            ..Repr::new(MessageType::Start)
        };
        let mut frame = frame_of(&start, group, 0);
        // The checksum would be of other bytes than are sent.
        frame[CHECKSUM..CHECKSUM + 2].fill(0);
        Starts {
            frame,
            burst: Vec::new(),
            spare: Vec::new(),
        }
    }
}

/// How often receivers say RECEIVED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Each for each DELIVER.
    Each,
    /// One of them for each DELIVER, in turn: the least that frees the window as fast as messages come.
    InTurn,
}

/// The groups.
pub struct Groups {
    of: Deployment,
    answers: Answers,
    starts: Vec<Starts>,
    nodes: Vec<Node>,
    receivers: Vec<Vec<Receiver>>,
    heard: usize,
    /// It is a receiver's turn to say RECEIVED.
    owes: Vec<Vec<bool>>,
    inboxes: Vec<Inbox>,
    lanes: Vec<Lane>,
    free: VecDeque<usize>,
    now: u64,
    /// Work of each switch: three of each group, its leader first.
    pub work: Vec<Work>,
    /// ns that the relay spent on the frames that the first leader took.
    pub relayed: f64,
    /// Messages that were delivered by the first receiver of each group.
    pub delivered: u64,
}

impl Groups {
    /// Groups with leaders; payloads have `length` bytes.
    pub fn new(compiled: &Compiled, of: Deployment, answers: Answers, length: usize) -> Groups {
        let all = (0..of.groups).flat_map(|group| (0..MEMBERS).map(move |number| (group, number)));
        let nodes: Vec<Node> = all
            .map(|(group, number)| Node::member(compiled, of, group, number))
            .collect();
        let receiver = |group: usize, number: usize| {
            Receiver::new(ReceiverConfig {
                group: group as u8,
                number: number as u8,
                list_version: LIST,
                position: 0,
                window: WINDOW,
                queue: WINDOW as usize,
            })
        };
        let receivers = (0..of.groups)
            .map(|group| {
                (0..of.receivers)
                    .map(|number| receiver(group, number))
                    .collect()
            })
            .collect();
        let lanes = usize::from(of.sessions) * usize::from(of.lanes);
        let mut groups = Groups {
            of,
            answers,
            starts: (0..of.groups)
                .map(|group| Starts::new(group, length))
                .collect(),
            receivers,
            heard: 0,
            owes: vec![vec![false; of.receivers]; of.groups],
            inboxes: (0..of.groups).map(|_| Inbox::default()).collect(),
            lanes: vec![Lane::default(); lanes],
            free: (0..lanes).collect(),
            now: 1_000_000,
            work: vec![Work::default(); nodes.len()],
            relayed: 0.0,
            delivered: 0,
            nodes,
        };
        for group in 0..of.groups {
            groups.appoint(group);
        }
        groups.settle(&mut None);
        groups
    }

    /// Appoints the first member of a group.
    fn appoint(&mut self, group: usize) {
        for number in 0..MEMBERS {
            let prepare = Repr {
                epoch: EPOCH,
                incarnation: INCARNATION,
                group: group as u8,
                ..Repr::new(MessageType::Prepare)
            };
            let sent = self.tell(group, number, &prepare);
            assert_eq!(sent.len(), 1, "it promises");
        }
        let lead = Repr {
            epoch: EPOCH,
            incarnation: INCARNATION,
            group: group as u8,
            destinations: (1 << MEMBERS) - 1,
            before: (1 << self.of.receivers) - 1,
            list_version: LIST,
            learner: NO_LEARNER,
            ..Repr::new(MessageType::Lead)
        };
        let sent = self.tell(group, 0, &lead);
        assert_eq!(sent.len(), MEMBERS - 1, "its no-op goes out");
        self.route(group * MEMBERS, sent);
    }

    fn tell(&mut self, group: usize, number: usize, message: &Repr<'_>) -> Frames {
        let frame = frame_of(message, group, number);
        let node = &mut self.nodes[group * MEMBERS + number];
        node.pass(self.now, [&frame[..]].into_iter(), &mut 0.0)
    }

    /// Lets each group order [`BURST`] messages, of which `shared` address all groups. The frames that
    /// the first leader takes pass `relay` too.
    pub fn burst(&mut self, shared: usize, mut relay: Option<&mut Node>) {
        self.now += BURST as u64 * MESSAGE_US;
        for node in 0..self.nodes.len() {
            let sent =
                self.nodes[node].wait(self.now, &mut self.work[node].ns[Kind::Held as usize]);
            self.route(node, sent);
        }
        for at in 0..BURST {
            if at < shared {
                let map = (1 << self.of.groups) - 1;
                let lane = self.begin(map);
                for group in 0..self.of.groups {
                    self.start(lane, map, group);
                }
            } else {
                for group in 0..self.of.groups {
                    let lane = self.begin(1 << group);
                    self.start(lane, 1 << group, group);
                }
            }
        }
        for group in 0..self.of.groups {
            let mut burst = std::mem::take(&mut self.starts[group].burst);
            let frames = burst.iter().map(|frame| &frame[..]);
            self.lead(group, Kind::Start, frames, &mut relay);
            self.starts[group].spare.append(&mut burst);
            self.starts[group].burst = burst;
        }
        self.settle(&mut relay);
    }

    /// A free lane, which is taken by a message.
    fn begin(&mut self, destinations: u32) -> usize {
        let at = self.free.pop_front();
        let at = at.expect("COMPLETE comes before all lanes are taken");
        let lane = &mut self.lanes[at];
        lane.number += 1;
        lane.missing = destinations;
        at
    }

    /// Puts START of a lane's message for one of its groups at the end of a burst.
    fn start(&mut self, lane: usize, destinations: u32, group: usize) {
        let lanes = u16::from(self.of.lanes);
        let starts = &mut self.starts[group];
        let mut frame = starts.spare.pop().unwrap_or_else(|| starts.frame.clone());
        let number = self.lanes[lane].number.to_be_bytes();
        let (session, lane) = (lane as u16 / lanes, lane as u16 % lanes);
        let mut put = |at: usize, bytes: &[u8]| {
            frame[BEFORE + at..][..bytes.len()].copy_from_slice(bytes);
        };
        put(field::DESTINATIONS, &destinations.to_be_bytes());
        put(field::SESSION, &session.to_be_bytes());
        put(field::LANE, &[lane as u8]);
        put(field::NUMBER, &number[3..]);
        starts.burst.push(frame);
    }

    /// Gives frames to the leader of a group.
    fn lead<'a>(
        &mut self,
        group: usize,
        kind: Kind,
        frames: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
        relay: &mut Option<&mut Node>,
    ) {
        let node = group * MEMBERS;
        if group == 0
            && let Some(relay) = relay
        {
            let sent = relay.pass(self.now, frames.clone(), &mut self.relayed);
            assert_eq!(sent.len(), frames.len(), "it sends all on");
            relay.recycle(sent);
        }
        let work = &mut self.work[node];
        let sent = self.nodes[node].pass(self.now, frames, &mut work.ns[kind as usize]);
        self.route(node, sent);
    }

    /// Lets messages pass until none is under way.
    fn settle(&mut self, relay: &mut Option<&mut Node>) {
        while self.inboxes.iter().any(|inbox| !inbox.is_empty()) {
            for group in 0..self.of.groups {
                let inbox = std::mem::take(&mut self.inboxes[group]);
                for (kind, mails) in [(Kind::Ack, inbox.acks), (Kind::Leader, inbox.leaders)] {
                    for (from, mail) in mails {
                        self.lead(group, kind, mail.iter().map(|(_, frame)| &frame[..]), relay);
                        self.nodes[from].recycle(mail);
                    }
                }
                let received = inbox.received;
                if !received.is_empty() {
                    let frames = received.iter().map(|frame| &frame[..]);
                    self.lead(group, Kind::Received, frames, relay);
                }
            }
        }
    }

    /// Brings what a switch sent to its targets.
    fn route(&mut self, from: usize, sent: Frames) {
        let group = from / MEMBERS;
        let mut mails: [Frames; TO_LEADERS as usize + 1] = Default::default();
        for (port, frame) in sent {
            mails[usize::from(port)].push((port, frame));
        }
        let mut mails = mails.into_iter().skip(usize::from(TO_MEMBERS));
        for number in 0..MEMBERS {
            let mail = mails.next().unwrap_or_default();
            if mail.is_empty() {
                continue;
            }
            if number == 0 {
                self.inboxes[group].acks.push((from, mail));
            } else {
                let node = group * MEMBERS + number;
                let work = &mut self.work[node];
                let frames = mail.iter().map(|(_, frame)| &frame[..]);
                let sent =
                    self.nodes[node].pass(self.now, frames, &mut work.ns[Kind::Prop as usize]);
                self.nodes[from].recycle(mail);
                self.route(node, sent);
            }
        }
        let [to_receivers, to_sender, to_leaders] =
            std::array::from_fn(|_| mails.next().unwrap_or_default());
        self.receive(group, &to_receivers);
        self.complete(group, &to_sender);
        self.nodes[from].recycle(to_receivers);
        self.nodes[from].recycle(to_sender);
        if !to_leaders.is_empty() {
            assert_eq!(self.of.groups, 2, "one other leader");
            self.inboxes[1 - group].leaders.push((from, to_leaders));
        }
    }

    /// Receivers take frames, and answer.
    fn receive(&mut self, group: usize, frames: &Frames) {
        for (_, frame) in frames {
            let number = usize::from(frame[33] - 1);
            let packet = Packet::new_checked(&frame[BEFORE..]).expect("a message");
            let message = Repr::parse(&packet);
            let receiver = &mut self.receivers[group][number];
            receiver
                .handle_message(&message)
                .expect("each message comes once");
            let mut taken = 0;
            while let Some(delivery) = receiver.poll_deliver() {
                assert!(
                    matches!(delivery, Delivery::Message { .. }),
                    "nobody is taken off"
                );
                taken += u64::from(number == 0);
            }
            self.delivered += taken;
            if message.message_type == MessageType::Deliver {
                self.heard += usize::from(number == 0);
                let turn = self.heard % self.of.receivers == number;
                self.owes[group][number] |= turn || self.answers == Answers::Each;
            }
            // A receiver whose entry bears LATER answers with a later one.
            if self.owes[group][number]
                && let Some(received) = receiver.poll_transmit()
            {
                self.owes[group][number] = false;
                let from = SocketAddrV4::new(receiver_address(group, number), PORT);
                let to = SocketAddrV4::new(member_address(group, 0), PORT);
                let bytes = received.to_vec().expect("a message has bytes");
                self.inboxes[group]
                    .received
                    .push(frame::datagram(from, to, &bytes));
            }
        }
    }

    /// The sender gets its lanes back.
    fn complete(&mut self, group: usize, frames: &Frames) {
        for (_, frame) in frames {
            let packet = Packet::new_checked(&frame[BEFORE..]).expect("a message");
            let message = Repr::parse(&packet);
            assert_eq!(
                message.message_type,
                MessageType::Complete,
                "code {}",
                message.code
            );
            let at = usize::from(message.session) * usize::from(self.of.lanes)
                + usize::from(message.lane);
            let lane = &mut self.lanes[at];
            assert_eq!(
                lane.number, message.number,
                "COMPLETE is of the lane's message"
            );
            lane.missing &= !(1 << group);
            if lane.missing == 0 {
                self.free.push_back(at);
            }
        }
    }

    /// Forgets what was measured.
    pub fn reset(&mut self) {
        self.work.fill(Work::default());
        self.relayed = 0.0;
    }

    /// Checks that all that was ordered is delivered, but for the last ones, which bear LATER, and that
    /// lanes come back as fast as they are taken.
    pub fn check(&self) {
        let sent: u64 = self.lanes.iter().map(|lane| lane.number).sum();
        assert!(
            self.delivered + 4 > sent,
            "{} of {sent} are delivered",
            self.delivered
        );
        let waiting = self.lanes.len() - self.free.len();
        let few = self.lanes.len() / 2;
        assert!(waiting < few, "{waiting} messages wait for COMPLETE");
    }
}

/// A message to a member, from the sender or the controller.
fn frame_of(message: &Repr<'_>, group: usize, number: usize) -> Vec<u8> {
    let from = SocketAddrV4::new(SENDER, SENDER_PORT);
    let to = SocketAddrV4::new(member_address(group, number), PORT);
    frame::datagram(from, to, &message.to_vec().expect("a message has bytes"))
}
