//! Keys of frames: the index of the first lock that a packet takes, known before it runs.

#![allow(
    clippy::disallowed_methods,
    reason = "other tests' support has threads"
)]

mod support;

use stateplane_ir::Program;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{
    Engine, Entry, Fellow, IngressInput, InstanceType, KeyMatch, Preserved, Value,
};
use support::Numbers;

/// A program whose ingress has `before` in front of `apply { body }`. Registers `a` and `b` have 512
/// elements, `kinds` has 256, `single` has one; `drawn` is written by no packet. The header has four
/// bytes, and the parser reads a second one behind it if the first byte is 7.
fn program(before: &str, body: &str) -> Program {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header key_t {{ bit<8> kind; bit<8> i; bit<8> j; bit<8> k; }}\n\
         struct headers_t {{ key_t key; key_t inner; }}\n\
         struct metadata_t {{ bit<32> x; bit<32> y; bit<32> z; }}\n\
         register<bit<64>>(512) a;\nregister<bit<64>>(512) b;\n\
         register<bit<64>>(256) kinds;\nregister<bit<64>>(1) single;\n\
         register<bit<32>>(4) drawn;\n\
         @unit[\"u\", 2] register<bit<64>>(1024) items;\n\
         parser P(packet_in p, out headers_t h, inout metadata_t m,\n\
                  inout standard_metadata_t s) {{\n\
             state start {{ p.extract(h.key);\n\
                 transition select(h.key.kind) {{ 7: inner; default: accept; }} }}\n\
             state inner {{ p.extract(h.inner); transition accept; }} }}\n\
         control C(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             bit<64> v; bit<32> at; bit<32> salt;\n\
             {before}\n\
             apply {{ s.egress_spec = 1; {body} }}\n\
         }}\n\
         control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             apply {{ }}\n\
         }}\n\
         control D(packet_out p, in headers_t h) {{ apply {{ p.emit(h.key); }} }}\n\
         V1Switch(P(), C(), I(), E(), C(), D()) main;\n"
    );
    let program = stateplane_compile::text(text).program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

fn engine(before: &str, body: &str) -> Native {
    let compiled = Compiled::guarded(program(before, body)).expect("it compiles");
    compiled.engine(Default::default()).expect("it loads")
}

/// Counts at `index`.
fn count(register: &str, index: &str) -> String {
    format!("@atomic {{ {register}.read(v, {index}); {register}.write({index}, v + 1); }}")
}

/// A frame with these bytes in front.
fn frame(bytes: &[u8]) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[..bytes.len()].copy_from_slice(bytes);
    frame
}

fn key(engine: &mut Native, bytes: &[u8]) -> Option<u16> {
    engine.state_key(3, &frame(bytes))
}

/// Elements of a register that are not 0.
fn counted(engine: &Native, register: &str) -> Vec<u64> {
    let register = engine.state().register(register).expect("it exists");
    let is_counted = |at: &u64| register.read(*at).expect("it exists") != Value::from(0u64);
    (0..register.size()).filter(is_counted).collect()
}

/// An entry of `t` in [`TABLE`].
fn entry(kind: u8, value: u8) -> Entry {
    Entry {
        keys: vec![KeyMatch::Exact(kind.into())],
        priority: 0,
        action: "to".to_owned(),
        data: vec![value.into()],
    }
}

fn pass(engine: &mut Native, bytes: &[u8]) {
    let outcome = engine.ingress(&IngressInput {
        frame: &frame(bytes),
        port: 3,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now: 5,
    });
    engine.release(outcome.packet);
}

#[test]
fn a_key_is_the_index_of_the_element_that_is_locked_first() {
    let both = format!(
        "{} {}",
        count("a", "(bit<32>)h.key.i"),
        count("b", "(bit<32>)h.key.j")
    );
    let mut engine = engine("", &both);
    assert_eq!(key(&mut engine, &[0, 5, 6]), Some(5));
    assert_eq!(key(&mut engine, &[0, 63, 6]), Some(63));
    assert!(
        counted(&engine, "a").is_empty(),
        "a question changes nothing"
    );
    pass(&mut engine, &[0, 5, 6]);
    assert_eq!(
        (counted(&engine, "a"), counted(&engine, "b")),
        (vec![5], vec![6])
    );
}

#[test]
fn a_key_is_that_of_the_way_that_the_frame_takes() {
    let body = format!(
        "if (h.inner.isValid()) {{ at = (bit<32>)h.inner.i; {} return; }} \
         if (h.key.kind == 9) {{ return; }} \
         switch (h.key.kind) {{ 1: {{ at = 1 + (bit<32>)h.key.k; }} default: {{ at = 2; }} }} {}",
        count("a", "at"),
        count("b", "at + (bit<32>)h.key.j"),
    );
    let mut engine = engine("", &body);
    assert_eq!(key(&mut engine, &[7, 1, 1, 1, 0, 40]), Some(40));
    assert_eq!(key(&mut engine, &[1, 1, 10, 20]), Some(31));
    assert_eq!(key(&mut engine, &[2, 1, 10, 20]), Some(12));
    assert_eq!(key(&mut engine, &[9, 1, 10, 20]), None, "it locks nothing");
    assert_eq!(
        key(&mut engine, &[1, 1, 10, 20]),
        Some(31),
        "nothing is left of others"
    );
}

#[test]
fn units_are_keys() {
    let body = "at = (bit<32>)h.key.i; salt = 3; @atomic { @atomic @uses(\"u\", at, salt) { } \
                items.read(v, at * 2 + 1); items.write(at * 2 + 1, v + 1); }";
    let mut engine = engine("", body);
    assert_eq!(key(&mut engine, &[0, 12]), Some(12));
}

/// `table` is keyed by `kind`, and its action sets `at`.
const TABLE: &str = "action to(bit<32> value) { at = value; } action none() { at = 0; } \
     table t { key = { h.key.kind: exact; } actions = { to; none; } default_action = none(); }";

#[test]
fn a_key_follows_the_entries_of_the_tables_on_its_way_for_each_worker() {
    let body = format!("t.apply(); {}", count("a", "at + (bit<32>)h.key.i"));
    let mut engines = engine(TABLE, &body).with_fellows(2);
    let keys = |engines: &mut Vec<Native>| {
        let keys = engines.iter_mut().map(|engine| key(engine, &[4, 1]));
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys(&mut engines), [Some(1), Some(1)]);
    let table = engines[0].state_mut().table_mut("t").expect("it exists");
    table.insert(&entry(4, 30)).expect("it fits");
    let [first, second] = &mut engines[..] else {
        panic!("two engines");
    };
    second.state_mut().follow(first.state());
    assert_eq!(keys(&mut engines), [Some(31), Some(31)]);
    let table = engines[0].state_mut().table_mut("t").expect("it exists");
    table.delete(&entry(4, 30).keys, 0).expect("it is there");
    assert_eq!(key(&mut engines[0], &[4, 1]), Some(1));
}

#[test]
fn tables_on_the_way_are_looked_up_by_keys_that_ingress_computes() {
    let before = TABLE.replace("h.key.kind: exact", "m.x: exact");
    let body = format!(
        "m.x = (bit<32>)h.key.j + 1; t.apply(); {}",
        count("a", "at + (bit<32>)h.key.i")
    );
    let mut engine = engine(&before, &body);
    let table = engine.state_mut().table_mut("t").expect("it exists");
    table.insert(&entry(4, 30)).expect("it fits");
    assert_eq!(key(&mut engine, &[0, 1, 3]), Some(31));
    assert_eq!(key(&mut engine, &[0, 1, 4]), Some(1));
}

#[test]
fn an_action_of_a_table_may_take_the_lock() {
    let before = format!(
        "action use_it() {{ {} }} \
         table t {{ key = {{ h.key.kind: exact; }} actions = {{ use_it; NoAction; }} \
                    default_action = use_it(); }}",
        count("a", "(bit<32>)h.key.i")
    );
    let mut known = engine(&before, "t.apply();");
    assert_eq!(key(&mut known, &[4, 9]), Some(9));
    // Nobody knows whether the entry that this packet meets is the one that uses the register.
    let before = before.replace("h.key.kind", "v[7:0]");
    let body = format!("{} t.apply();", count("single", "0"));
    let mut unknown = engine(&before, &body);
    assert_eq!(key(&mut unknown, &[4, 9]), Some(9));
}

#[test]
fn registers_that_no_packet_writes_are_read() {
    let salted = format!(
        "drawn.read(salt, 1); {}",
        count("a", "(bit<32>)h.key.i ^ salt")
    );
    let mut engines = engine("", &salted).with_fellows(2);
    let drawn = engines[0]
        .state_mut()
        .register_mut("drawn")
        .expect("it exists");
    drawn.write(1, &Value::from(33u64)).expect("it fits");
    for engine in &mut engines {
        assert_eq!(key(engine, &[0, 1]), Some(32));
    }
}

#[test]
fn no_key_follows_from_what_packets_write_nor_from_time_nor_chance() {
    for at in [
        "single.read(v, 0); at = (bit<32>)h.key.i + (bit<32>)v; single.write(0, v + 1);",
        "at = (bit<32>)h.key.i + (bit<32>)s.ingress_global_timestamp[3:0];",
        "random(at, 0, 7); at = at + (bit<32>)h.key.i;",
        "hash(at, HashAlgorithm.random, 32w0, { h.key.i }, 32w60);",
        "at = (bit<32>)h.key.i; for (; h.key.j > 0; h.key.j = h.key.j - 1) { at = at + 1; }",
    ] {
        let body = format!("@atomic {{ {at} a.read(v, at); a.write(at, v + 1); }}");
        let mut engine = engine("", &body);
        assert_eq!(key(&mut engine, &[0, 1]), None, "{at}");
    }
}

#[test]
fn a_lock_that_all_frames_take_is_no_key() {
    // Else one worker would have all frames, or all of a port.
    for at in ["5", "(bit<32>)s.ingress_port"] {
        let alone = count("a", at);
        assert_eq!(key(&mut engine("", &alone), &[0, 1]), None, "{at}");
        let then = format!("{alone} {}", count("b", "(bit<32>)h.key.i"));
        assert_eq!(key(&mut engine("", &then), &[0, 1]), Some(1), "{at}");
    }
    let whole = "@atomic { a.read(v, (bit<32>)h.key.i); a.write((bit<32>)h.key.j, v); }";
    assert_eq!(
        key(&mut engine("", whole), &[0, 1]),
        None,
        "one lock for all elements"
    );
    let free = "a.read(v, (bit<32>)h.key.i); a.write((bit<32>)h.key.i, v + 1);";
    assert_eq!(key(&mut engine("", free), &[0, 1]), None, "no lock at all");
}

#[test]
fn a_lock_that_many_frames_share_is_no_key() {
    let kind = count("kinds", "(bit<32>)h.key.kind");
    assert_eq!(key(&mut engine("", &kind), &[0, 1]), None);
    let then = format!("{kind} {}", count("a", "(bit<32>)h.key.i"));
    assert_eq!(
        key(&mut engine("", &then), &[0, 1]),
        Some(1),
        "the next one is"
    );
}

#[test]
fn what_the_frame_does_not_tell_is_taken_to_lead_to_a_lock() {
    let body = format!(
        "@atomic {{ single.read(v, 0); single.write(0, v + 1); }} \
         if (v == 0) {{ mark_to_drop(s); return; }} \
         if (v < 10) {{ h.key.j = 1; }} else {{ at = (bit<32>)h.key.i; {} }}",
        count("a", "at"),
    );
    assert_eq!(key(&mut engine("", &body), &[0, 8]), Some(8));
    // The lock's index depends on which way was taken before.
    let body = format!(
        "@atomic {{ single.read(v, 0); single.write(0, v + 1); }} \
         at = (bit<32>)h.key.i; if (v == 0) {{ at = at + 1; }} {}",
        count("a", "at"),
    );
    assert_eq!(key(&mut engine("", &body), &[0, 8]), None);
}

#[test]
fn a_value_is_followed_through_calls_and_structs() {
    let before = "action set(in bit<8> from, out bit<32> to) { to = (bit<32>)from; } \
         action swap(inout metadata_t it) { bit<32> x = it.x; it.x = it.y; it.y = x; }";
    let body = format!(
        "@atomic {{ single.read(v, 0); single.write(0, v + 1); }} m.y = (bit<32>)v; \
         set(h.key.k, m.x); swap(m); swap(m); {}",
        count("a", "m.x"),
    );
    assert_eq!(key(&mut engine(before, &body), &[0, 1, 2, 17]), Some(17));
    let swapped = body.replacen("swap(m); swap(m);", "swap(m);", 1);
    assert_eq!(key(&mut engine(before, &swapped), &[0, 1, 2, 17]), None);
}

#[test]
fn an_action_that_is_left_before_its_lock_leads_to_the_next_one() {
    let first = format!(
        "action first() {{ if (h.key.k == 0) {{ return; }} {} }}",
        count("a", "(bit<32>)h.key.i")
    );
    let body = format!("first(); {}", count("b", "(bit<32>)h.key.j"));
    let mut engine = engine(&first, &body);
    assert_eq!(key(&mut engine, &[0, 5, 6, 1]), Some(5));
    assert_eq!(key(&mut engine, &[0, 5, 6, 0]), Some(6));
}

#[test]
fn frames_that_are_too_short_have_a_key_or_none_and_break_nothing() {
    let mut engine = engine("", &count("a", "(bit<32>)h.key.i"));
    for length in 0..8 {
        let _ = engine.state_key(3, &[1; 8][..length]);
    }
    assert_eq!(key(&mut engine, &[0, 8]), Some(8));
}

/// A statement on the way to a lock.
fn statement(numbers: &mut Numbers, depth: usize) -> String {
    let to = numbers.of(&["m.x", "m.y", "m.z", "at"]);
    let from = numbers.of(&[
        "m.x",
        "m.y",
        "m.z",
        "at",
        "(bit<32>)h.key.i",
        "(bit<32>)h.key.j",
    ]);
    match numbers.below(if depth > 2 { 4 } else { 8 }) {
        0 | 1 => format!("{to} = {from};\n"),
        2 if numbers.below(4) == 0 => "if (h.key.k[4:4] == 1) { left(); }\n".to_owned(),
        2 => format!("{to} = {to} + {from};\n"),
        3 => format!("drawn.read({to}, {});\n", numbers.below(4)),
        4 => format!("t.apply(); {to} = {to} ^ at;\n"),
        5 => {
            let condition = numbers.of(&[
                "h.key.k[0:0] == 1",
                "m.x < m.y",
                "h.inner.isValid()",
                "t.apply().hit",
                "!u.apply().miss",
            ]);
            let (then, otherwise) = (statement(numbers, depth + 1), statement(numbers, depth + 1));
            format!("if ({condition}) {{ {then} }} else {{ {otherwise} }}\n")
        }
        6 => {
            let inner = statement(numbers, depth + 1);
            format!("if (h.key.k[7:6] == 3) {{ {inner} return; }}\n")
        }
        _ => {
            let (register, step) = (numbers.of(&["a", "b"]), numbers.below(5));
            let lock = count(register, &format!("({from} + h_i + {step}) & 63"));
            let other = statement(numbers, depth + 1);
            let condition = numbers.of(&["m.z[0:0] == 0", "h.key.j[1:1] == 1"]);
            format!(
                "{{ bit<32> h_i = (bit<32>)h.key.i; if ({condition}) {{ {lock} exit; }} else {{ {other} }} }}\n"
            )
        }
    }
}

#[test]
fn generated_programs_lock_first_the_element_of_their_frames_keys() {
    let before = format!(
        "{TABLE} action low() {{ m.z = m.z & 15; }} action high(bit<32> by) {{ m.z = m.z + by; }} \
         table u {{ key = {{ h.key.i: ternary; m.x & 3: exact @name(\"x\"); }} actions = {{ low; high; }} \
                    default_action = low(); }} \
         action left() {{ if (h.key.k[5:5] == 1) {{ return; }} m.y = m.y + 1; {} exit; }}",
        count("b", "(m.y + (bit<32>)h.key.j) & 63")
    );
    let (mut known, mut none) = (0, 0);
    for seed in 0..120 {
        let mut numbers = Numbers(0x9e37_79b9 * (seed + 1));
        let mut body = String::new();
        for _ in 0..1 + numbers.below(4) {
            body += &statement(&mut numbers, 0);
        }
        body += &count("a", "(at + (bit<32>)h.key.i) & 63");
        let mut engine = engine(&before, &body);
        let drawn = engine.state_mut().register_mut("drawn").expect("it exists");
        for at in 0..4 {
            drawn
                .write(at, &Value::from(at * 7 + seed))
                .expect("it fits");
        }
        let table = engine.state_mut().table_mut("t").expect("it exists");
        for kind in [1u8, 7] {
            table.insert(&entry(kind, kind * 5)).expect("it fits");
        }
        let table = engine.state_mut().table_mut("u").expect("it exists");
        for x in [0u8, 1, 3] {
            let even = KeyMatch::Mask {
                value: 0u8.into(),
                mask: 1u8.into(),
            };
            table
                .insert(&Entry {
                    keys: vec![even, KeyMatch::Exact(x.into())],
                    priority: 1,
                    action: "high".to_owned(),
                    data: vec![(x + 5).into()],
                })
                .expect("it fits");
        }
        for _ in 0..40 {
            let mut byte = || numbers.below(256) as u8;
            let mut bytes = [byte(), byte(), byte(), byte(), byte(), byte()];
            bytes[0] = [1, 7, 9][usize::from(bytes[0] % 3)];
            let key = key(&mut engine, &bytes).map(u64::from);
            pass(&mut engine, &bytes);
            let mut locked = counted(&engine, "a");
            locked.extend(counted(&engine, "b"));
            assert_eq!(
                key.into_iter().collect::<Vec<_>>(),
                locked,
                "{bytes:?}\n{body}"
            );
            known += locked.len();
            none += usize::from(locked.is_empty());
            for register in ["a", "b"] {
                let register = engine
                    .state_mut()
                    .register_mut(register)
                    .expect("it exists");
                for at in 0..64 {
                    register.write(at, &Value::from(0u64)).expect("it exists");
                }
            }
        }
    }
    assert!(
        known > 1000 && none > 100,
        "{known} keys, {none} frames without"
    );
}
