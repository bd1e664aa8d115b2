//! Generated programs on two to four workers: there is one order of all packets in which an
//! interpreter that passes them one by one, and checks the units that blocks name, ends with the
//! same registers.
//!
//! Each block counts in the units that it names, so that the counts tell the order of the blocks
//! that had a unit; the orders of all units have to fit together.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

mod support;

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_runtime::{Engine, Fellow, Value};
use std::collections::{BTreeMap, VecDeque};
use support::Numbers;

const PACKETS: u64 = 2_000;

/// Elements of the registers of which units consist.
const ELEMENTS: u64 = 32;

/// A statement of a block, whose effect depends on those of others before it.
fn statement(numbers: &mut Numbers, depth: usize) -> String {
    let element = |numbers: &mut Numbers| {
        let unit = ["x", "y"][numbers.below(2)];
        let place = ["at", "3 - at", "2"][numbers.below(3)];
        format!("{unit} * 4 + {place}")
    };
    let array = |numbers: &mut Numbers| ["items", "more"][numbers.below(2)];
    match numbers.below(if depth > 2 { 2 } else { 8 }) {
        0..=2 => {
            let (from, to) = (element(numbers), element(numbers));
            let (read, written) = (array(numbers), array(numbers));
            format!(
                "{read}.read(a, {from}); {written}.read(b, {to}); \
                 {written}.write({to}, a * 3 + (b << 1) + (bit<64>)id);\n"
            )
        }
        3 => {
            let inner = statement(numbers, depth + 1);
            let other = statement(numbers, depth + 1);
            let bit = numbers.below(4);
            format!("if (id[{bit}:{bit}] == 1) {{ {inner} }} else {{ {other} }}\n")
        }
        4 => {
            let inner = statement(numbers, depth + 1);
            format!("for (bit<8> n = 0; n < 3; n = n + 1) {{ {inner} }}\n")
        }
        5 => "@atomic @apart { single.read(c, 0); single.write(0, c + 1); }\n".to_owned(),
        // The block holds them.
        6 => "@atomic @uses(\"u\", y, x) { }\n".to_owned(),
        _ => {
            let inner = statement(numbers, depth + 1);
            format!("if (id[5:3] == 6) {{ {inner} exit; }}\n")
        }
    }
}

fn program(seed: u64) -> Program {
    let mut numbers = Numbers(seed * 0x9e37_79b9 + 1);
    let again = [
        "",
        "if (id[0:0] == 1) { @atomic @uses(\"u\", y, x) { } }",
        "@atomic @uses(\"u\", x, y, x) { }",
        // Others that the block lets go of; what it reads of them a fellow may have changed.
        "@atomic @uses(\"u\", y) { } items.read(b, y * 4 + at);",
        "if (id[1:0] != 1) { @atomic @uses(\"u\", z, x) { } }",
    ];
    let again = again[numbers.below(again.len())];
    let own = "own.read(c, id); own.write(id, c + 1);";
    let [before, behind] = [own, ""].map(|it| if numbers.below(2) == 0 { it } else { "" });
    let count = 2 + numbers.below(5);
    let body: String = (0..count).map(|_| statement(&mut numbers, 0)).collect();
    let declarations = format!(
        "struct headers_t {{ }}\nstruct metadata_t {{ }}\n\
         @unit[\"u\", 4] register<bit<64>>({ELEMENTS}) items;\n\
         @unit[\"u\", 4] register<bit<64>>({ELEMENTS}) more;\n\
         @unit[\"u\", 4] register<bit<64>>({ELEMENTS}) turns;\n\
         register<bit<64>>({PACKETS}) first;\nregister<bit<64>>({PACKETS}) second;\n\
         register<bit<32>>({PACKETS}) xs;\nregister<bit<32>>({PACKETS}) ys;\n\
         register<bit<64>>({PACKETS}) own;\nregister<bit<64>>(1) single;\n"
    );
    let ingress = format!(
        "bit<64> a = 0; bit<64> b = 0; bit<64> c = 0;\n\
             bit<32> x; bit<32> y; bit<32> z; bit<32> at;\n\
             apply {{\n\
                 bit<32> id = (bit<32>)s.ingress_global_timestamp;\n\
                 s.egress_spec = 1;\n\
                 hash(x, HashAlgorithm.crc32, 32w0, {{ id, 8w1 }}, 32w8);\n\
                 hash(y, HashAlgorithm.crc32, 32w0, {{ id, 8w2 }}, 32w8);\n\
                 hash(z, HashAlgorithm.crc32, 32w0, {{ id, 8w4 }}, 32w8);\n\
                 hash(at, HashAlgorithm.crc32, 32w0, {{ id, 8w3 }}, 32w3);\n\
                 xs.write(id, x); ys.write(id, y);\n\
                 @atomic {{\n\
                     {before} {again} @atomic @uses(\"u\", x, y) {{ }}\n\
                     turns.read(a, x * 4); turns.write(x * 4, a + 1); first.write(id, a + 1);\n\
                     if (x != y) {{ turns.read(a, y * 4); turns.write(y * 4, a + 1);\n\
                                    second.write(id, a + 1); }}\n\
                     {body}\n\
                     {behind}\n\
                 }}\n\
             }}\n"
    );
    support::ingress_alone(&declarations, &ingress)
}

fn elements(engine: &impl Engine, name: &str) -> Vec<u64> {
    let register = engine.state().register(name).expect("the register exists");
    let number = |at| match register.read(at) {
        Ok(Value::Bits(bits)) => u64::try_from(bits).ok(),
        _ => None,
    };
    (0..).map_while(number).collect()
}

/// Lets workers share the packets, and compares what they leave with a run in an order.
fn compare<E: Fellow + Send>(first: E, workers: u64, program: &Program) {
    let mut engines = first.with_fellows(workers as usize);
    support::at_once(&mut engines, |worker, engine| {
        let share = (worker..PACKETS).step_by(workers as usize);
        for (packet, id) in (0..).zip(share) {
            support::burst(worker, packet, engine);
            support::pass(engine, 0, id);
        }
        engine.end_burst();
    });
    let mut one = Interp::checked(program.clone(), Default::default()).expect("it loads");
    for id in order(&engines[0]) {
        support::pass(&mut one, 0, id);
    }
    for register in ["items", "more", "turns", "own", "single"] {
        assert_eq!(
            elements(&engines[0], register),
            elements(&one, register),
            "{register}"
        );
    }
}

/// An order of all packets that fits the turns that they took in their units.
fn order(engine: &impl Engine) -> Vec<u64> {
    let [xs, ys, first, second] = ["xs", "ys", "first", "second"].map(|it| elements(engine, it));
    let mut turns: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for id in 0..PACKETS {
        let at = id as usize;
        let mut took = vec![(xs[at], first[at])];
        if xs[at] != ys[at] {
            took.push((ys[at], second[at]));
        }
        for turn in took {
            assert_eq!(turns.insert(turn, id), None, "one turn of {turn:?}");
        }
    }
    // Each packet comes behind the one that had the turn before its own.
    let mut behind: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut before = vec![0; PACKETS as usize];
    for (((unit, _), id), ((next, _), later)) in turns.iter().zip(turns.iter().skip(1)) {
        if unit == next {
            behind.entry(*id).or_default().push(*later);
            before[*later as usize] += 1;
        }
    }
    let mut free: VecDeque<u64> = (0..PACKETS)
        .filter(|id| before[*id as usize] == 0)
        .collect();
    let mut order = Vec::new();
    while let Some(id) = free.pop_front() {
        order.push(id);
        for later in behind.get(&id).into_iter().flatten() {
            before[*later as usize] -= 1;
            if before[*later as usize] == 0 {
                free.push_back(*later);
            }
        }
    }
    assert_eq!(order.len() as u64, PACKETS, "the turns have an order");
    order
}

#[test]
fn blocks_of_generated_programs_have_one_order() {
    for seed in 0..24 {
        let program = program(seed);
        let workers = 2 + seed % 3;
        let native = Compiled::guarded(program.clone()).expect("it loads");
        let native = native.engine(Default::default()).expect("it loads");
        compare(native, workers, &program);
        let interp = Interp::guarded(program.clone(), Default::default()).expect("it loads");
        compare(interp, workers, &program);
    }
}
