use super::*;
use crate::counter::Count;
use crate::table::KeyMatch;
use crate::value::Value;
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{CounterKind, MatchKind, Type};

/// Differences between the test's programs.
struct Shape {
    key: u32,
    register: u32,
    size: u64,
    actions: &'static [&'static str],
}

const FIRST: Shape = Shape {
    key: 16,
    register: 32,
    size: 4,
    actions: &["c.keep", "c.gone", "c.none"],
};

fn state(shape: &Shape) -> TargetState {
    let mut b = Builder::new();
    let nothing = b.structure("nothing", &[]);
    b.pipeline(nothing, nothing);
    let actions: Vec<_> = shape
        .actions
        .iter()
        .map(|name| b.action(name, &[], Vec::new()))
        .collect();
    let keys = vec![(MatchKind::Exact, bits(shape.key, 0))];
    b.table("c.t", keys, &actions);
    b.register("c.r", Type::Bits(shape.register), shape.size);
    b.program.counters.push(stateplane_ir::Counter {
        name: "c.n".to_owned(),
        kind: CounterKind::Packets,
        size: shape.size,
        table: None,
    });
    TargetState::new(&b.finish().unwrap(), 1).unwrap()
}

fn entry(key: u32, action: &str) -> Entry {
    Entry {
        keys: vec![KeyMatch::Exact(BigUint::from(key))],
        priority: 0,
        action: action.to_owned(),
        data: Vec::new(),
    }
}

fn filled() -> TargetState {
    let mut state = state(&FIRST);
    let table = state.table_mut("c.t").unwrap();
    table.insert(&entry(1, "keep")).unwrap();
    table.insert(&entry(2, "gone")).unwrap();
    table.set_default("keep", &[]).unwrap();
    for index in 0..4 {
        let register = state.register_mut("c.r").unwrap();
        register.write(index, &Value::from(10 + index)).unwrap();
        let counter = state.counter_mut("c.n").unwrap();
        let count = Count {
            packets: index,
            bytes: 64,
        };
        counter.write(index, count).unwrap();
    }
    state
}

#[test]
fn the_same_program_keeps_all() {
    let before = filled();
    let mut after = state(&FIRST);
    let adopted = after.adopt(&before, 5);
    assert_eq!(
        adopted.to_string(),
        "kept 2 registers, counters, meters and value sets, and 3 entries"
    );
    assert_eq!(after.registers(), before.registers());
    assert_eq!(after.counters(), before.counters());
    let (new, old) = (after.table("t").unwrap(), before.table("t").unwrap());
    assert_eq!(new.entries(), old.entries());
    assert_eq!(new.default_action(), old.default_action());
}

#[test]
fn a_register_of_another_size_keeps_the_elements_that_both_have() {
    let mut after = state(&Shape { size: 2, ..FIRST });
    after.adopt(&filled(), 0);
    let register = after.register("c.r").unwrap();
    assert_eq!(register.read(1), Ok(Value::from(11u64)));
    let mut larger = state(&Shape { size: 6, ..FIRST });
    larger.adopt(&after, 0);
    let register = larger.register("c.r").unwrap();
    assert_eq!(register.read(1), Ok(Value::from(11u64)));
    assert_eq!(register.read(2), Ok(Value::from(0u64)));
}

#[test]
fn what_has_another_type_is_lost_and_named() {
    let mut after = state(&Shape {
        register: 33,
        key: 17,
        ..FIRST
    });
    let adopted = after.adopt(&filled(), 0);
    assert_eq!(adopted.lost, ["c.r"]);
    assert_eq!((adopted.entries, adopted.entries_lost), (0, 2));
    assert!(after.table("t").unwrap().is_empty());
}

#[test]
fn an_entry_whose_action_is_gone_is_lost_alone() {
    let mut after = state(&Shape {
        actions: &["c.keep", "c.none"],
        ..FIRST
    });
    let adopted = after.adopt(&filled(), 0);
    assert_eq!((adopted.entries, adopted.entries_lost), (2, 1));
    assert_eq!(after.table("t").unwrap().len(), 1);
}

#[test]
fn a_default_that_nobody_chose_does_not_hide_the_programs() {
    let before = state(&FIRST);
    let mut after = state(&Shape {
        actions: &["c.none", "c.gone", "c.keep"],
        ..FIRST
    });
    after.adopt(&before, 0);
    assert_eq!(after.table("t").unwrap().default_action().0, "c.keep");
}
