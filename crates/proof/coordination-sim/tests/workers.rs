//! Several workers that run the program of a switch at once, on threads: clients on all of them compare
//! and set one record, and the entries of its log, in their order, explain all outcomes. Without its atomic
//! blocks the program loses writes, which shows that the threads do meet.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test has threads"
)]

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_coordination_setup::Coordination;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{Engine as _, Fellow as _, KeyMatch};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_wire::coordination::{
    Key, MessageType, Operand, Operation, Outcome, PORT, Packet, Repr, flag,
};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

const WORKERS: usize = 4;
/// Writes of each worker.
const WRITES: u32 = 10_000;
/// Rounds that have to be right; and those in which threads meet at least once, also on a busy machine.
const ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 100;
const OWN: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 1), 5000);
const INCARNATION: u32 = 77;
const EPOCH: u32 = 5;
const GENERATION: u16 = 1;
/// The condition that a record has the number of the operand (`CONDITION_NUMBER` of the library).
const OF_NUMBER: u8 = 3;
/// Bytes of values: in the slot, and behind it.
const LENGTHS: [usize; 3] = [16, 128, 300];

/// The program of the switches, with its atomic blocks or without.
fn program(blocks: bool) -> Compiled {
    let text = stateplane_library::text("apps/coordination/coordination_switch.p4");
    let source = stateplane_compile::with_blocks(text.expect("it is built in"), blocks)
        .define("COORDINATION_GROUPS", "2");
    let program = source.program().expect("the program compiles");
    Compiled::guarded(program).expect("it loads")
}

struct Worker {
    switch: Switch<Native>,
    now: u64,
}

impl Worker {
    fn new(place: usize, engine: Native) -> Worker {
        let config = SwitchConfig {
            ports: vec![0],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, config).expect("a switch");
        let coordination = Coordination {
            switch: 1,
            address: OWN,
            port: 0,
        };
        let applied = coordination.apply(&mut switch, INCARNATION, place == 0);
        applied.expect("it fits");
        let state = switch.engine_mut().state_mut();
        let client = address(*CLIENT.ip());
        let whole = KeyMatch::Prefix {
            value: client.clone(),
            length: 32,
        };
        insert(state, "routes", vec![whole], "connected", Vec::new()).expect("a route");
        let data = vec![number(0u8), number(2u8), number(1u8)];
        insert(state, "neighbours", exact(client), "forward", data).expect("a neighbour");
        Worker { switch, now: 1_000 }
    }

    /// The answer to a message, if there is one.
    fn ask(&mut self, message: &Repr<'_>) -> Option<Vec<u8>> {
        let bytes = message.to_vec().expect("a message");
        let frame = frame(CLIENT, SocketAddrV4::new(OWN, PORT), &bytes);
        self.now += 1;
        self.switch.handle_frame(self.now, 0, &frame);
        self.switch.handle_timeout(self.now);
        let mut answer = None;
        while let Some(transmit) = self.switch.poll_transmit() {
            let (_, _, bytes) = datagram(&transmit.frame).expect("a datagram");
            answer = Some(bytes.to_vec());
        }
        answer
    }
}

fn message(message_type: MessageType) -> Repr<'static> {
    let mut message = Repr {
        generation: GENERATION,
        epoch: EPOCH,
        key: Key([9; 16]),
        ..Repr::new(message_type)
    };
    message.set_chain([OWN]);
    message.set_client(CLIENT);
    message
}

fn request(lane: u16, operation: Operation, request: u32) -> Repr<'static> {
    Repr {
        operation: operation as u8,
        lane,
        request,
        ..message(MessageType::Request)
    }
}

/// A write that was answered.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// The number that the record was to have.
    expected: u64,
    outcome: u8,
    /// The record's number behind it.
    record: u64,
    /// Times, on a clock that all workers share.
    asked: u64,
    answered: u64,
}

/// What one worker's client did and saw.
#[derive(Debug, Default)]
struct Seen {
    /// By their number.
    writes: Vec<(u64, Write)>,
    complaints: Vec<String>,
}

/// An answer, unless it was torn.
fn whole(bytes: &[u8]) -> Option<Packet<'_>> {
    Packet::new_checked(bytes).ok()
}

/// Reads the record and sets it if nobody else did, again and again.
fn use_record(lane: u16, worker: &mut Worker, clock: &AtomicU64) -> Seen {
    let mut seen = Seen::default();
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    for count in 1..=WRITES {
        let read = worker.ask(&request(lane, Operation::Read, 0));
        let Some(read) = read.as_deref().and_then(whole) else {
            seen.complaints
                .push("a read has no whole answer".to_owned());
            continue;
        };
        if !read
            .value()
            .iter()
            .all(|byte| Some(byte) == read.value().first())
        {
            seen.complaints.push("a value is torn".to_owned());
        }
        let value = vec![(count % 251) as u8; LENGTHS[count as usize % 3]];
        let write = Repr {
            condition: OF_NUMBER,
            operand: Operand::number(read.record()),
            value: &value,
            ..request(lane, Operation::Write, count)
        };
        let asked = now();
        let answer = worker.ask(&write);
        let answered = now();
        let Some(reply) = answer.as_deref().and_then(whole) else {
            seen.complaints
                .push("a write has no whole answer".to_owned());
            continue;
        };
        let write = Write {
            expected: read.record(),
            outcome: reply.outcome(),
            record: reply.record(),
            asked,
            answered,
        };
        seen.writes.push((reply.number(), write));
    }
    seen
}

/// Complaints about what clients saw whose requests go through workers that run a program at once.
fn raced(compiled: &Compiled) -> Vec<String> {
    let first = compiled.engine(Default::default()).expect("it loads");
    let engines = first.with_fellows(WORKERS);
    let engines = engines.into_iter().enumerate();
    let mut workers: Vec<Worker> = engines
        .map(|(at, engine)| Worker::new(at, engine))
        .collect();
    let configure = Repr {
        hops: 1,
        flags: flag::FOUNDS,
        handle: INCARNATION,
        operand: Operand([7; 16]),
        ..message(MessageType::Configure)
    };
    workers[0].ask(&configure).expect("it answers");
    let first = Repr {
        value: &[1; 16],
        ..request(WORKERS as u16, Operation::Write, 1)
    };
    let answer = workers[0].ask(&first).expect("it answers");
    let mut record = Packet::new_checked(&answer).expect("a reply").number();

    let (begin, clock) = (Barrier::new(WORKERS), AtomicU64::new(0));
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let threads = (0..).zip(&mut workers).map(|(lane, worker)| {
            let (begin, clock) = (&begin, &clock);
            scope.spawn(move || {
                begin.wait();
                use_record(lane, worker, clock)
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|seen| seen.expect("no panic")).collect()
    });
    let mut complaints = Vec::new();
    let mut log: BTreeMap<u64, Write> = BTreeMap::new();
    for seen in seen {
        complaints.extend(seen.complaints);
        for (number, write) in seen.writes {
            if log.insert(number, write).is_some() {
                complaints.push(format!("two writes have the number {number:x}"));
            }
        }
    }
    let count = WORKERS as u64 * u64::from(WRITES);
    if !log.keys().copied().eq(record + 1..=record + count) {
        complaints.push(format!("{} numbers, of {count}", log.len()));
    }
    let (mut done, mut asked) = (0, 0);
    for (number, write) in &log {
        // What was asked when another one was answered has a greater number.
        asked = asked.max(write.asked);
        if write.answered < asked {
            complaints.push(format!("{number:x} has a greater number than a later one"));
        }
        let holds = write.expected == record;
        if holds {
            (record, done) = (*number, done + 1);
        }
        let outcome = [Outcome::Mismatch, Outcome::Done][usize::from(holds)];
        if (write.outcome, write.record) != (outcome as u8, record) {
            complaints.push(format!("{number:x}: {write:?}, the record had {record:x}"));
        }
    }
    if done == 0 || done == count {
        complaints.push(format!(
            "{done} of {count} writes were done: none met another"
        ));
    }
    complaints
}

#[test]
fn clients_that_compare_and_set_one_record_see_one_log() {
    let program = program(true);
    for _ in 0..ROUNDS {
        assert_eq!(raced(&program), [""; 0]);
    }
}

#[test]
fn without_the_blocks_writes_are_lost() {
    let program = program(false);
    assert!((0..MOST_ROUNDS).any(|_| !raced(&program).is_empty()));
}
