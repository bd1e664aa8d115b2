//! Messages that nobody should believe change no record of a switch: damaged, cut, forged and
//! repeated ones, and noise.

use crate::device::Device;
use crate::options::{Options, Rule};
use crate::places::{CONTROLLER, CONTROLLER_PORT, Places, SWITCHES, client_address, switch_socket};
use crate::scenario::Scenario;
use crate::simulator::{LANES, Simulator};
use core::net::SocketAddrV4;
use stateplane_apps::datagram::{datagram, frame};
use stateplane_wire::coordination::{
    Key, Kind, MessageType, Operand, Operation, Outcome, Packet, Repr, flag,
};
use stateplane_world::Random;

/// Messages, unless the environment variable `STATEPLANE_ATTACKS` asks for more.
const ATTACKS: u64 = 100_000;
/// Messages between two looks at the records.
const ROUND: u64 = 5_000;
pub(crate) const INCARNATION: u32 = 77;
pub(crate) const EPOCH: u32 = 5;
pub(crate) const GENERATION: u16 = 1;
/// The group that the switch keeps alone, and that of which it is the tail behind switch 1.
const ALONE: u16 = 0;
const TAIL: u16 = 1;
/// The lane whose first life ended.
const ENDED_LANE: u16 = 3;
/// Registers that hold records, lanes, entries and configurations.
const KEPT: [&str; 7] = [
    "slot_",
    "lane_",
    "ring_",
    "group_applied",
    "group_epoch",
    "group_generation",
    "group_place",
];
/// Indices of `coordination_events`: bad messages, messages of another epoch and of another sender,
/// refusals, configurations for another incarnation, decided entries.
const SEEN: [u64; 6] = [0, 4, 5, 15, 17, 19];

struct Attacked {
    device: Box<dyn Device>,
    now: u64,
    random: Random,
    /// Messages that the switch believed, with port and sender.
    believed: Vec<(u16, SocketAddrV4, Vec<u8>)>,
    sent: u64,
}

impl Attacked {
    fn new(without: Option<Rule>) -> Attacked {
        let mut options = Options::new(Scenario::quiet());
        options.without = without;
        let simulator = Simulator::new(options).expect("the program compiles");
        let places = Places { clients: 4 };
        let device = simulator.device(&places, 0, INCARNATION);
        let mut attacked = Attacked {
            device: device.expect("a switch"),
            now: 1_000,
            random: Random::new(1),
            believed: Vec::new(),
            sent: 0,
        };
        for (to, port) in places.routes(0, &[true; SWITCHES]) {
            attacked.device.route(to, port);
        }
        for (group, members) in [(ALONE, vec![0]), (TAIL, vec![1, 0])] {
            let configure = configure(group, &members, EPOCH, INCARNATION);
            attacked.believe(CONTROLLER_PORT, CONTROLLER, &configure);
        }
        for number in 1..=20 {
            let mut message = request(ALONE, Operation::Write, number);
            let value = vec![number as u8; [8, 16, 128, 300][number as usize % 4]];
            message.value = &value;
            attacked.believe(Places::client_port(0), client_address(0), &message);
            let mut entry = attacked.entry(number.into());
            let value = vec![number as u8; 16];
            entry.value = &value;
            attacked.believe(0, switch_socket(1), &entry);
        }
        let mut next = request(ALONE, Operation::LaneNext, 21);
        next.slot = ENDED_LANE;
        next.handle = 1;
        attacked.believe(Places::client_port(0), client_address(0), &next);
        let mut acquire = request(ALONE, Operation::Acquire, 22);
        acquire.key = Key([200; 16]);
        acquire.session = 9;
        attacked.believe(Places::client_port(0), client_address(0), &acquire);
        assert_eq!(
            attacked.device.word("group_applied", ALONE.into()) as u64,
            number(22)
        );
        assert_eq!(
            attacked.device.word("group_applied", TAIL.into()) as u64,
            number(20)
        );
        attacked
    }

    fn entry(&mut self, count: u64) -> Repr<'static> {
        let mut message = Repr::new(MessageType::Entry);
        message.operation = Operation::Write as u8;
        message.outcome = Outcome::Done as u8;
        message.kind = Kind::Value as u8;
        message.group = TAIL;
        message.generation = GENERATION;
        message.epoch = EPOCH;
        message.hops = 2;
        message.set_client(client_address(0));
        message.set_chain([1, 0].map(|switch| *switch_socket(switch).ip()));
        message.request = count as u32;
        message.number = number(count);
        message.newest = number(count);
        message.record = number(count);
        message.slot = (count % 16) as u16;
        message.key = Key([count as u8; 16]);
        message
    }

    fn believe(&mut self, port: u16, from: SocketAddrV4, message: &Repr<'_>) {
        let bytes = message.to_vec().expect("a message");
        self.give(port, from, &bytes);
        self.believed.push((port, from, bytes));
    }

    fn give(&mut self, port: u16, from: SocketAddrV4, bytes: &[u8]) {
        self.now += 1;
        let frame = frame(from, switch_socket(0), bytes);
        self.device.handle_frame(self.now, port, &frame);
        let mut answers = 0;
        while let Some((_, frame)) = self.device.poll_transmit() {
            assert!(frame.len() <= 1_226, "{} bytes", frame.len());
            answers += 1;
        }
        assert!(answers <= 20, "{answers} messages follow from one");
        self.sent += answers;
    }

    fn attack(&mut self) {
        let from = [
            switch_socket(1),
            switch_socket(2),
            client_address(1),
            CONTROLLER,
        ];
        let ports = [0, 1, CONTROLLER_PORT, Places::client_port(1)];
        let known = self.random.place(self.believed.len());
        let (port, sender, mut bytes) = self.believed[known].clone();
        match self.random.place(5) {
            // Damaged on its way: one word of the message.
            0 => {
                let at = self.random.place(bytes.len() / 2) * 2;
                let word = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                let mut other = self.random.next() as u16;
                // A sum knows 0 and 65,535 as one; so many bits do not change at once.
                if [word, other].iter().all(|word| [0, 0xffff].contains(word)) || word == other {
                    other = word ^ 0x10;
                }
                bytes[at..at + 2].copy_from_slice(&other.to_be_bytes());
                self.give(port, sender, &bytes);
            }
            1 => {
                let length = self.random.place(bytes.len());
                self.give(port, sender, &bytes[..length]);
            }
            2 => {
                let length = self.random.place(1_400);
                let noise: Vec<u8> = (0..length).map(|_| self.random.next() as u8).collect();
                let which = self.random.place(4);
                self.give(ports[which], from[which], &noise);
            }
            3 => {
                let behind = self.random.place(40);
                bytes.resize(bytes.len() + behind, 0xa5);
                self.give(port, sender, &bytes);
            }
            _ => self.forge(ports, from),
        }
    }

    /// A message that is well-formed, of which one field or its sender is wrong.
    fn forge(&mut self, ports: [u16; 4], from: [SocketAddrV4; 4]) {
        let kinds = [
            MessageType::Request,
            MessageType::Entry,
            MessageType::Copy,
            MessageType::HandOver,
            MessageType::Begin,
            MessageType::Configure,
        ];
        let kind = kinds[self.random.place(kinds.len())];
        let next = self.device.word("group_applied", TAIL.into()) as u64 + 1;
        let mut message = self.entry(1);
        message.message_type = kind;
        message.number = next;
        message.newest = next;
        message.record = next;
        message.request = self.random.next() as u32 | 1 << 20;
        message.guard_number = number(self.random.between(0, 30));
        message.slot = self.random.place(90) as u16;
        message.key = Key([self.random.place(256) as u8; 16]);
        message.group = [ALONE, TAIL][self.random.place(2)];
        self.forged(message, ports, from);
    }

    /// Makes one thing wrong about a message, and sends it.
    fn forged(&mut self, message: Repr<'_>, ports: [u16; 4], from: [SocketAddrV4; 4]) {
        let mut message = message;
        let which = self.random.place(4);
        let (port, mut sender) = (ports[which], from[which]);
        match message.message_type {
            MessageType::Request => {
                message.operation = self.random.between(2, 7) as u8;
                match self.random.place(4) {
                    0 => message.generation = GENERATION + 1 + self.random.place(9) as u16,
                    1 => {
                        message.generation = GENERATION;
                        message.lane = ENDED_LANE;
                        message.lane_incarnation = 0;
                    }
                    2 => message.group = 2 + self.random.place(60_000) as u16,
                    _ => message.lane = LANES as u16 + self.random.place(60_000) as u16,
                }
            }
            MessageType::Configure => {
                let members = [vec![0], vec![0, 2], vec![2]];
                let members = &members[self.random.place(3)];
                let epoch = EPOCH + 1 + self.random.place(9) as u32;
                let (epoch, incarnation) = if self.random.permille(500) {
                    (self.random.place(EPOCH as usize + 1) as u32, INCARNATION)
                } else {
                    (epoch, INCARNATION + 1 + self.random.place(9) as u32)
                };
                message = configure(message.group, members, epoch, incarnation);
            }
            _ => {
                if self.random.permille(500) {
                    message.epoch = EPOCH + 1 + self.random.place(9) as u32;
                    sender = switch_socket(1);
                } else {
                    message.epoch = EPOCH;
                    sender = if sender == switch_socket(1) {
                        CONTROLLER
                    } else {
                        sender
                    };
                }
            }
        }
        let bytes = message.to_vec().expect("a message");
        self.give(port, sender, &bytes);
    }

    fn kept(&self) -> Vec<Vec<u128>> {
        KEPT.iter().map(|name| self.device.words(name)).collect()
    }
}

/// A client's request to switch 0, which is alone in `group`.
pub(crate) fn request(group: u16, operation: Operation, number: u32) -> Repr<'static> {
    let mut message = Repr::new(MessageType::Request);
    message.operation = operation as u8;
    message.group = group;
    message.generation = GENERATION;
    message.epoch = EPOCH;
    message.set_chain([*switch_socket(0).ip()]);
    message.set_client(client_address(0));
    message.request = number;
    message.key = Key([number as u8 % 6 + 1; 16]);
    message
}

fn number(count: u64) -> u64 {
    u64::from(GENERATION) << 48 | count
}

pub(crate) fn configure(
    group: u16,
    members: &[usize],
    epoch: u32,
    incarnation: u32,
) -> Repr<'static> {
    let mut message = Repr::new(MessageType::Configure);
    message.group = group;
    message.generation = GENERATION;
    message.epoch = epoch;
    message.hops = members.len() as u8;
    message.flags = flag::FOUNDS;
    message.set_chain(members.iter().map(|switch| *switch_socket(*switch).ip()));
    message.set_client(CONTROLLER);
    message.handle = incarnation;
    message.operand = Operand([7; 16]);
    message
}

#[test]
fn fuzzed_messages_change_no_record() {
    let count: u64 = std::env::var("STATEPLANE_ATTACKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ATTACKS);
    let mut attacked = Attacked::new(None);
    let before = attacked.kept();
    assert!(
        before
            .iter()
            .all(|words| words.iter().any(|word| *word != 0))
    );
    for attack in 0..count {
        attacked.attack();
        if attack % ROUND == 0 {
            assert!(
                attacked.kept() == before,
                "a record changed by message {attack}"
            );
        }
    }
    assert!(attacked.kept() == before, "a record changed");
    for event in SEEN {
        assert!(
            attacked.device.events(event) > 0,
            "event {event} never happened"
        );
    }
    // And it serves on.
    let sent = attacked.sent;
    let write = request(ALONE, Operation::Write, 23);
    attacked.believe(Places::client_port(0), client_address(0), &write);
    assert_eq!(
        attacked.device.word("group_applied", ALONE.into()) as u64,
        number(23)
    );
    assert_eq!(attacked.sent, sent + 1);
}

/// The same messages change records of a switch that believes one of them.
#[test]
fn a_switch_that_believes_them_is_noticed() {
    for rule in [
        Rule::Epoch,
        Rule::Predecessor,
        Rule::Incarnation,
        Rule::Duplicate,
    ] {
        let mut attacked = Attacked::new(Some(rule));
        let before = attacked.kept();
        (0..ROUND).for_each(|_| attacked.attack());
        assert!(attacked.kept() != before, "nobody misses {rule}");
    }
}

/// An entry that members refuse would stop the group for good: whatever the client put there, its
/// place is one of the group's.
#[test]
fn entries_name_places_that_members_take() {
    let mut attacked = Attacked::new(None);
    let configure = configure(ALONE, &[0, 1], EPOCH + 1, INCARNATION);
    attacked.believe(CONTROLLER_PORT, CONTROLLER, &configure);
    let operations = [
        Operation::Write,
        Operation::Delete,
        Operation::Acquire,
        Operation::Release,
        Operation::Resolve,
    ];
    for (number, operation) in (1..).zip(operations) {
        let mut message = request(ALONE, operation, number);
        message.slot = 60_000;
        message.handle = 1;
        message.key = Key([operation as u8; 16]);
        let bytes = message.to_vec().expect("a message");
        let frame = frame(client_address(0), switch_socket(0), &bytes);
        attacked
            .device
            .handle_frame(attacked.now, Places::client_port(0), &frame);
        let sent = std::iter::from_fn(|| attacked.device.poll_transmit());
        let entries: Vec<u16> = sent
            .filter_map(|(_, frame)| {
                let (_, _, bytes) = datagram(&frame)?;
                let message = Repr::parse(&Packet::new_checked(bytes).ok()?);
                (message.message_type == MessageType::Entry).then_some(message.slot)
            })
            .collect();
        assert_eq!(entries.len(), 1, "{operation:?}");
        assert!(
            u32::from(entries[0]) < Scenario::quiet().slots,
            "{operation:?}"
        );
    }
}
