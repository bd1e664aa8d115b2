//! Several workers that run the program of the switches at once, on threads: each message has one entry,
//! and each entry one place, though all share the log. Without its atomic block the program loses
//! messages, which shows that the threads do meet.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test has threads"
)]

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_multicast_setup::{Group, Hold, Member, Multicast, Rows};
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{Engine as _, Fellow as _, KeyMatch};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_wire::multicast::{MessageType, PORT, Packet, Repr, flag};
use std::collections::BTreeMap;
use std::sync::Barrier;

const WORKERS: u16 = 4;
/// Messages of each worker's session.
const MESSAGES: u64 = 14_000;
const LANES: u8 = 8;
const WINDOW: u32 = 65_536;
/// Rounds that have to be right; and those in which threads meet at least once, also on a busy machine.
const ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 100;
const OWN: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const INCARNATION: u32 = 99;
const EPOCH: u32 = 5;
/// Index of `multicast_events`: entries that were freed.
const FREED: u64 = 26;

/// The program of the switches, with its atomic blocks or without.
fn program(blocks: bool) -> Compiled {
    let text = stateplane_library::text("apps/multicast/multicast_switch.p4");
    let source = stateplane_compile::with_blocks(text.expect("it is built in"), blocks)
        .define("MULTICAST_GROUPS", "1")
        .define("MULTICAST_WINDOW", &WINDOW.to_string());
    let program = source.program().expect("the program compiles");
    Compiled::guarded(program).expect("it loads")
}

fn host(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), PORT)
}

/// Members 1 and 2 and receivers 0 and 1, which are hosts 1 to 4.
fn rows() -> Rows {
    let member = |number: u8| Member {
        number,
        incarnation: u32::from(number),
        address: *host(number).ip(),
    };
    let group = Group {
        member: 0,
        longest: 64,
        others: vec![member(1), member(2)],
        receivers: [0, 1]
            .map(|receiver| (receiver, *host(3 + receiver).ip()))
            .into(),
    };
    Rows {
        groups: [(0, group)].into(),
        leaders: [(0, OWN)].into(),
        sessions: (0..WORKERS).map(|session| (session, LANES)).collect(),
    }
}

struct Worker {
    switch: Switch<Native>,
    now: u64,
    /// Messages that left, with their destinations.
    left: Vec<(SocketAddrV4, Vec<u8>)>,
}

impl Worker {
    fn new(engine: Native) -> Worker {
        let config = SwitchConfig {
            ports: vec![0, 1],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, config).expect("a switch");
        let multicast = Multicast {
            address: OWN,
            port: 1,
            hold: Hold::default(),
        };
        multicast.apply(&mut switch, INCARNATION).expect("it fits");
        let state = switch.engine_mut().state_mut();
        let all = KeyMatch::Prefix {
            value: address(Ipv4Addr::UNSPECIFIED),
            length: 0,
        };
        insert(state, "routes", vec![all], "connected", Vec::new()).expect("a route");
        for to in 0..64 {
            let key = exact(address(*host(to).ip()));
            let data = vec![number(0u8), number(2u8), number(1u8)];
            insert(state, "neighbours", key, "forward", data).expect("a neighbour");
        }
        let unreached = rows().apply(&mut switch).expect("rows fit");
        assert_eq!(unreached, [Ipv4Addr::UNSPECIFIED; 0]);
        Worker {
            switch,
            now: 1_000,
            left: Vec::new(),
        }
    }

    /// Takes a message of a host; what leaves is kept.
    fn take(&mut self, from: SocketAddrV4, message: &Repr<'_>) {
        let bytes = message.to_vec().expect("a message");
        let frame = frame(from, SocketAddrV4::new(OWN, PORT), &bytes);
        self.now += 1;
        self.switch.handle_frame(self.now, 0, &frame);
        self.switch.handle_timeout(self.now);
        while let Some(transmit) = self.switch.poll_transmit() {
            let (_, to, bytes) = datagram(&transmit.frame).expect("a datagram");
            self.left.push((to, bytes.to_vec()));
            self.switch.recycle(transmit.frame);
        }
    }

    fn word(&self, register: &str, index: u64) -> u64 {
        let register = self.switch.engine().state().register(register);
        register.expect("a register").word(index).expect("it") as u64
    }
}

fn message(message_type: MessageType) -> Repr<'static> {
    Repr {
        epoch: EPOCH,
        incarnation: INCARNATION,
        learner: 0xff,
        destinations: 1,
        ..Repr::new(message_type)
    }
}

/// Message `number` of a session, as its host sends it.
fn start(session: u16, number: u64) -> Repr<'static> {
    Repr {
        flags: flag::PAYLOAD,
        session,
        lane: (number % u64::from(LANES)) as u8,
        number: 1 + number / u64::from(LANES),
        payload: b"four",
        ..message(MessageType::Start)
    }
}

/// Lets all workers do `work` at once.
fn at_once(workers: &mut [Worker], work: impl Fn(u16, &mut Worker) + Sync) {
    let begin = Barrier::new(workers.len());
    std::thread::scope(|scope| {
        for (place, worker) in (0..).zip(workers) {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                begin.wait();
                work(place, worker);
            });
        }
    });
}

/// Identity of a message: session, lane, number.
type Id = (u16, u8, u64);

/// Complaints about what workers that run a program at once made of messages to one group.
fn raced(compiled: &Compiled) -> Vec<String> {
    let first = compiled.engine(Default::default()).expect("it loads");
    let engines = first.with_fellows(WORKERS.into());
    let mut workers: Vec<Worker> = engines.into_iter().map(Worker::new).collect();
    let controller = SocketAddrV4::new(*host(9).ip(), 7000);
    workers[0].take(controller, &message(MessageType::Prepare));
    let lead = Repr {
        destinations: 0b111,
        before: 0b11,
        list_version: 1,
        ..message(MessageType::Lead)
    };
    workers[0].take(controller, &lead);

    let sender = |session: u16| SocketAddrV4::new(*host(10 + session as u8).ip(), 9000);
    at_once(&mut workers, |session, worker| {
        for number in 0..MESSAGES {
            worker.take(sender(session), &start(session, number));
        }
    });
    let mut complaints = Vec::new();
    let last = 1 + MESSAGES as u32 * u32::from(WORKERS);
    let mut placed: BTreeMap<u32, (Id, u64)> = BTreeMap::new();
    let mut indices: BTreeMap<Id, u32> = BTreeMap::new();
    for (_, bytes) in workers.iter().flat_map(|worker| &worker.left) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            complaints.push("a message is torn".to_owned());
            continue;
        };
        if packet.message_type() != MessageType::Prop || packet.flags() & flag::NO_OP != 0 {
            continue;
        }
        let id = (packet.session(), packet.lane(), packet.number());
        let (index, entry) = (packet.index(), (id, packet.timestamp()));
        if *placed.entry(index).or_insert(entry) != entry {
            complaints.push(format!(
                "place {index} has {entry:?} and {:?}",
                placed[&index]
            ));
        }
        if *indices.entry(id).or_insert(index) != index {
            complaints.push(format!(
                "{id:?} has the places {index} and {}",
                indices[&id]
            ));
        }
    }
    if !placed.keys().copied().eq(2..=last) {
        complaints.push(format!("{} places up to {last}", placed.len()));
    }
    let times: Vec<u64> = placed.values().map(|(_, time)| *time).collect();
    if !times.is_sorted_by(|one, next| one < next) {
        complaints.push("timestamps do not increase".to_owned());
    }
    for (index, (id, time)) in &placed {
        let at = u64::from(*index % WINDOW);
        let kept = (
            workers[0].word("multicast_entry_id", at),
            workers[0].word("multicast_entry_time", at),
        );
        let id = u64::from(id.0) << 48 | u64::from(id.1) << 40 | id.2;
        if kept != (id, *time) {
            complaints.push(format!("place {index} keeps {kept:x?}, not {id:x}"));
        }
    }

    // A member and both receivers tell how far they are, and the senders ask again.
    at_once(&mut workers, |place, worker| {
        for index in 1..=last {
            let (from, said) = match place {
                0 => (host(1), message(MessageType::Ack)),
                1 | 2 => (host(2 + place as u8), message(MessageType::Received)),
                _ => (sender(3), start(3, u64::from(index) % MESSAGES)),
            };
            let told = place != 3;
            let said = Repr {
                origin: if place == 2 { 1 } else { u8::from(place == 0) },
                list_version: u16::from(told),
                index: if told { index } else { 0 },
                base: if place == 0 { index + 1 } else { 0 },
                ..said
            };
            worker.take(from, &said);
        }
    });
    // The last word of each, to what was said before others came.
    for _ in 0..last {
        for (origin, from) in [(0, host(3)), (1, host(4))] {
            let said = Repr {
                origin,
                list_version: 1,
                index: last,
                ..message(MessageType::Received)
            };
            workers[0].take(from, &said);
        }
        if workers[0].word("multicast_base", 0) == u64::from(last) {
            break;
        }
    }
    for register in ["multicast_end", "multicast_commit", "multicast_base"] {
        let reached = workers[0].word(register, 0);
        if reached != u64::from(last) {
            complaints.push(format!("{register} is {reached}, not {last}"));
        }
    }
    let freed = workers.iter().map(|worker| {
        let events = worker.switch.engine().state().counter("multicast_events");
        let count = events.expect("events").read(FREED);
        count.expect("an event").packets
    });
    let freed: u64 = freed.sum();
    if freed != u64::from(last) {
        complaints.push(format!("{freed} entries were freed, of {last}"));
    }
    complaints
}

#[test]
fn messages_of_many_sessions_have_one_place_each() {
    let program = program(true);
    for _ in 0..ROUNDS {
        assert_eq!(raced(&program), [""; 0]);
    }
}

#[test]
fn without_the_block_messages_are_lost() {
    let program = program(false);
    assert!((0..MOST_ROUNDS).any(|_| !raced(&program).is_empty()));
}
