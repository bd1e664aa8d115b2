//! Entries, and what is found by them.

use super::{Entry, KeyMatch, Table};
use crate::bits::{put_biguint, word_count};
use crate::{StateError, TargetState};
use num_bigint::BigUint;
use proptest::prelude::*;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{ActionCall, Const, KeySet, MatchKind, Program, Type};

fn n(value: u128) -> BigUint {
    BigUint::from(value)
}

fn exact(value: u128) -> KeyMatch {
    KeyMatch::Exact(n(value))
}

fn prefix(value: u128, length: u32) -> KeyMatch {
    KeyMatch::Prefix {
        value: n(value),
        length,
    }
}

fn masked(value: u128, mask: u128) -> KeyMatch {
    KeyMatch::Mask {
        value: n(value),
        mask: n(mask),
    }
}

fn range(low: u128, high: u128) -> KeyMatch {
    KeyMatch::Range {
        low: n(low),
        high: n(high),
    }
}

/// A program with the table `c.t`, whose actions are `c.set(bit<16> v)` and `c.none`.
fn program(keys: &[(MatchKind, u32)]) -> Program {
    let mut b = Builder::new();
    let headers = b.structure("headers", &[]);
    let metadata = b.structure("metadata", &[]);
    b.pipeline(headers, metadata);
    let v = b.var("c.set.v", Type::Bits(16));
    let set = b.action("c.set", &[v], Vec::new());
    let none = b.action("c.none", &[], Vec::new());
    let keys = keys
        .iter()
        .map(|&(kind, width)| (kind, bits(width, 0)))
        .collect();
    b.table("c.t", keys, &[set, none]);
    b.finish().unwrap()
}

fn table(keys: &[(MatchKind, u32)]) -> Table {
    let program = program(keys);
    Table::new(&program, &program.tables[0]).unwrap()
}

fn entry(keys: Vec<KeyMatch>, priority: u32, value: u128) -> Entry {
    Entry {
        keys,
        priority,
        action: "set".to_owned(),
        data: vec![n(value)],
    }
}

/// The value that a lookup gives, or `None` of the default action.
fn look(table: &Table, keys: &[(u128, u32)]) -> Option<u128> {
    let mut words = Vec::new();
    for (value, width) in keys {
        let start = words.len();
        words.resize(start + word_count(*width), 0);
        put_biguint(&n(*value), *width, &mut words[start..]);
    }
    let entry = table.lookup(&mut words);
    let (action, data) = table.action(entry);
    assert_eq!(entry.is_some(), action == 0);
    data.first().copied()
}

fn code(result: Result<(), StateError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn exact_keys() {
    let mut t = table(&[(MatchKind::Exact, 8), (MatchKind::Exact, 200)]);
    t.insert(&entry(vec![exact(1), exact(2)], 0, 12)).unwrap();
    t.insert(&entry(vec![exact(2), exact(1)], 0, 21)).unwrap();
    assert_eq!(look(&t, &[(1, 8), (2, 200)]), Some(12));
    assert_eq!(look(&t, &[(2, 8), (1, 200)]), Some(21));
    assert_eq!(look(&t, &[(1, 8), (1, 200)]), None);
    assert_eq!(
        code(t.insert(&entry(vec![exact(1), exact(2)], 0, 1))),
        "TG013"
    );
    t.modify(&entry(vec![exact(1), exact(2)], 0, 99)).unwrap();
    assert_eq!(look(&t, &[(1, 8), (2, 200)]), Some(99));
    t.delete(&[exact(1), exact(2)], 0).unwrap();
    assert_eq!(look(&t, &[(1, 8), (2, 200)]), None);
    assert_eq!(code(t.delete(&[exact(1), exact(2)], 0)), "TG014");
    assert_eq!(t.len(), 1);
}

#[test]
fn the_longest_prefix_wins_beside_exact_keys() {
    let mut t = table(&[(MatchKind::Exact, 8), (MatchKind::Lpm, 32)]);
    for (first, value, length, data) in [
        (1, 0x0a00_0000, 8, 8),
        (1, 0x0a01_0000, 16, 16),
        (1, 0, 0, 0),
        (2, 0x0a01_0203, 32, 32),
    ] {
        t.insert(&entry(vec![exact(first), prefix(value, length)], 0, data))
            .unwrap();
    }
    assert_eq!(look(&t, &[(1, 8), (0x0a01_ffff, 32)]), Some(16));
    assert_eq!(look(&t, &[(1, 8), (0x0aff_ffff, 32)]), Some(8));
    assert_eq!(look(&t, &[(1, 8), (0x0b00_0000, 32)]), Some(0));
    assert_eq!(look(&t, &[(2, 8), (0x0a01_0203, 32)]), Some(32));
    assert_eq!(look(&t, &[(2, 8), (0x0a01_0204, 32)]), None);
    // A whole value is a prefix of full length, and any value one of none.
    assert_eq!(
        code(t.insert(&entry(vec![exact(2), exact(0x0a01_0203)], 0, 0))),
        "TG013"
    );
    assert_eq!(
        code(t.insert(&entry(vec![exact(1), KeyMatch::Any], 0, 0))),
        "TG013"
    );
    t.delete(&[exact(1), prefix(0x0a01_0000, 16)], 0).unwrap();
    assert_eq!(look(&t, &[(1, 8), (0x0a01_ffff, 32)]), Some(8));
}

#[test]
fn the_greatest_priority_wins() {
    let mut t = table(&[
        (MatchKind::Ternary, 16),
        (MatchKind::Range, 16),
        (MatchKind::Optional, 8),
        (MatchKind::Lpm, 16),
    ]);
    assert!(t.has_priority());
    let any = || KeyMatch::Any;
    t.insert(&entry(vec![any(), any(), any(), any()], 1, 1))
        .unwrap();
    t.insert(&entry(
        vec![masked(0x1200, 0xff00), range(10, 20), exact(5), any()],
        10,
        2,
    ))
    .unwrap();
    t.insert(&entry(
        vec![prefix(0x1230, 12), any(), any(), prefix(0x8000, 1)],
        20,
        3,
    ))
    .unwrap();
    let at = |t: &Table, a, b, c, d| look(t, &[(a, 16), (b, 16), (c, 8), (d, 16)]);
    assert_eq!(at(&t, 0x1234, 15, 5, 0x8001), Some(3));
    assert_eq!(at(&t, 0x1234, 15, 5, 0x7fff), Some(2));
    assert_eq!(at(&t, 0x1234, 20, 5, 0), Some(2));
    assert_eq!(at(&t, 0x1234, 21, 5, 0), Some(1));
    assert_eq!(at(&t, 0x1334, 15, 5, 0), Some(1));
    assert_eq!(at(&t, 0x1234, 15, 6, 0), Some(1));
    // Equal keys with another priority are another entry.
    t.insert(&entry(vec![any(), any(), any(), any()], 30, 4))
        .unwrap();
    assert_eq!(at(&t, 0x1234, 15, 5, 0x8001), Some(4));
    assert_eq!(
        code(t.insert(&entry(vec![any(), any(), any(), any()], 30, 4))),
        "TG013"
    );
    t.delete(&[any(), any(), any(), any()], 30).unwrap();
    assert_eq!(at(&t, 0x1234, 15, 5, 0x8001), Some(3));
}

#[test]
fn wrong_entries_are_refused() {
    let mut t = table(&[(MatchKind::Lpm, 32)]);
    let refused = |t: &mut Table, keys, priority, action: &str, data: &[u128]| {
        let entry = Entry {
            keys,
            priority,
            action: action.to_owned(),
            data: data.iter().map(|&value| n(value)).collect(),
        };
        let error = t.insert(&entry).unwrap_err();
        (error.code(), error.to_string())
    };
    let key = || vec![prefix(0x0a00_0000, 8)];
    let (code, text) = refused(&mut t, Vec::new(), 0, "set", &[1]);
    assert_eq!(
        (code, text.as_str()),
        ("TG005", "table `c.t` has 1 keys (`key0`), 0 are given")
    );
    let (code, text) = refused(&mut t, vec![range(1, 2)], 0, "set", &[1]);
    assert_eq!(
        (code, text.as_str()),
        (
            "TG006",
            "key `key0` of table `c.t` is lpm; give a prefix, not a range"
        )
    );
    let (code, text) = refused(&mut t, vec![prefix(1 << 40, 8)], 0, "set", &[1]);
    assert_eq!(
        (code, text.as_str()),
        (
            "TG007",
            "0x10000000000 does not fit key `key0` of table `c.t`, which has 32 bits"
        )
    );
    assert_eq!(
        refused(&mut t, vec![prefix(0, 33)], 0, "set", &[1]).0,
        "TG008"
    );
    assert_eq!(
        refused(&mut t, vec![prefix(0x0a01_0000, 8)], 0, "set", &[1]).0,
        "TG009"
    );
    assert_eq!(refused(&mut t, key(), 3, "set", &[1]).0, "TG012");
    let (code, text) = refused(&mut t, key(), 0, "sat", &[1]);
    assert_eq!(
        (code, text.as_str()),
        (
            "TG003",
            "table `c.t` has no action `sat`; did you mean `c.set`?"
        )
    );
    let (code, text) = refused(&mut t, key(), 0, "set", &[1, 2]);
    assert_eq!(
        (code, text.as_str()),
        ("TG011", "action `c.set` takes 1 values (`v`), 2 are given")
    );
    assert_eq!(refused(&mut t, key(), 0, "set", &[1 << 16]).0, "TG007");
    assert!(t.is_empty());

    let mut t = table(&[(MatchKind::Range, 8)]);
    assert_eq!(
        refused(&mut t, vec![range(9, 3)], 1, "set", &[1]).0,
        "TG010"
    );
    assert_eq!(
        refused(&mut t, vec![range(3, 300)], 1, "set", &[1]).0,
        "TG007"
    );
    assert_eq!(
        refused(&mut t, vec![range(3, 9)], 0, "set", &[1]).0,
        "TG012"
    );
    let mut t = table(&[]);
    assert_eq!(refused(&mut t, Vec::new(), 0, "set", &[1]).0, "TG005");
}

#[test]
fn a_full_table_refuses_and_is_emptied() {
    let mut program = program(&[(MatchKind::Exact, 8)]);
    program.tables[0].size = 2;
    let mut t = Table::new(&program, &program.tables[0]).unwrap();
    for key in 0..2 {
        t.insert(&entry(vec![exact(key)], 0, key)).unwrap();
    }
    assert_eq!(code(t.insert(&entry(vec![exact(9)], 0, 9))), "TG015");
    t.delete(&[exact(0)], 0).unwrap();
    t.insert(&entry(vec![exact(9)], 0, 9)).unwrap();
    let listed: Vec<_> = t.entries().into_iter().map(|e| e.entry).collect();
    let expected = |key| Entry {
        action: "c.set".to_owned(),
        ..entry(vec![exact(key)], 0, key)
    };
    assert_eq!(listed, [expected(1), expected(9)], "in order of insertion");
    t.clear().unwrap();
    assert!(t.is_empty());
    assert_eq!(look(&t, &[(9, 8)]), None);
}

fn source_entry(
    keys: Vec<KeySet>,
    priority: u32,
    value: u32,
    is_const: bool,
) -> stateplane_ir::Entry {
    stateplane_ir::Entry {
        keys,
        priority,
        call: ActionCall {
            action: 0,
            data: vec![Const::Bits(BigUint::from(value))],
        },
        is_const,
    }
}

#[test]
fn entries_of_the_source() {
    let mut program = program(&[(MatchKind::Ternary, 8)]);
    let mask = KeySet::Mask(BigUint::from(0xffu32), BigUint::from(0xf0u32));
    program.tables[0].entries = vec![
        source_entry(vec![KeySet::Any], 1, 7, false),
        source_entry(vec![mask], 2, 5, true),
    ];
    let mut t = Table::new(&program, &program.tables[0]).unwrap();
    assert_eq!(look(&t, &[(0xf3, 8)]), Some(5), "the greater priority wins");
    assert_eq!(look(&t, &[(0x03, 8)]), Some(7));
    let entries = t.entries();
    assert_eq!(entries[0].entry.keys, [masked(0xf0, 0xf0)]);
    let (first, second) = (&entries[0].entry, &entries[1].entry);
    assert_eq!(code(t.delete(&first.keys, first.priority)), "TG016");
    assert_eq!(code(t.modify(first)), "TG016");
    t.delete(&second.keys, second.priority).unwrap();
    assert_eq!(look(&t, &[(0x03, 8)]), None);

    program.tables[0].const_entries = true;
    program.tables[0].const_default = true;
    let mut t = Table::new(&program, &program.tables[0]).unwrap();
    assert_eq!(code(t.insert(&entry(vec![exact(1)], 1, 1))), "TG016");
    assert_eq!(code(t.clear()), "TG016");
    assert_eq!(code(t.set_default("none", &[])), "TG016");
}

#[test]
fn default_actions_and_where_actions_may_stand() {
    let mut program = program(&[(MatchKind::Exact, 8)]);
    program.tables[0].actions[0].as_default = false;
    program.tables[0].actions[1].in_entries = false;
    let mut t = Table::new(&program, &program.tables[0]).unwrap();
    assert_eq!(code(t.set_default("set", &[n(1)])), "TG004");
    let none = Entry {
        action: "c.none".to_owned(),
        data: Vec::new(),
        ..entry(vec![exact(1)], 0, 0)
    };
    assert_eq!(code(t.insert(&none)), "TG004");

    let mut t = table(&[(MatchKind::Exact, 8)]);
    t.set_default("c.set", &[n(77)]).unwrap();
    assert_eq!(t.default_action(), ("c.set".to_owned(), vec![n(77)]));
    let (_, data) = t.action(None);
    assert_eq!(data, [77]);
    t.reset_default().unwrap();
    assert_eq!(t.default_action().0, "c.none");
}

#[test]
fn a_state_finds_its_objects_by_name() {
    let mut state = TargetState::new(&program(&[(MatchKind::Exact, 8)]), 0).unwrap();
    assert_eq!(state.table("t").unwrap().name(), "c.t");
    assert_eq!(state.table("x").unwrap_err().code(), "TG001");
    assert_eq!(state.register("r").unwrap_err().code(), "TG001");
    assert_eq!(state.counter_mut("r").unwrap_err().code(), "TG001");
    assert_eq!(state.meter_mut("r").unwrap_err().code(), "TG001");
}

proptest! {
    #[test]
    fn longest_prefix_agrees_with_a_linear_scan(
        width in prop::sample::select(vec![8u32, 32, 128, 150]),
        entries in prop::collection::vec((any::<u128>(), any::<u8>()), 0..40),
        deleted in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        keys in prop::collection::vec((any::<u128>(), any::<prop::sample::Index>(), any::<bool>()), 1..20),
    ) {
        let mut t = table(&[(MatchKind::Lpm, width)]);
        // Near each other, so that prefixes nest.
        let spread = |value: u128| ((value % 4) << (width.min(128) - 2)) | (value % 16);
        let mask = |length: u32| {
            let ones = (n(1) << length) - 1u32;
            ones << (width - length)
        };
        let mut linear: Vec<(BigUint, u32, u128)> = Vec::new();
        for (index, (value, length)) in entries.iter().enumerate() {
            let length = u32::from(*length) % (width + 1);
            let value = n(spread(*value)) & mask(length);
            let key = KeyMatch::Prefix { value: value.clone(), length };
            let fresh = linear.iter().all(|other| (&other.0, other.1) != (&value, length));
            let data = index as u128;
            prop_assert_eq!(t.insert(&entry(vec![key], 0, data)).is_ok(), fresh);
            if fresh {
                linear.push((value, length, data));
            }
        }
        for index in deleted {
            if !linear.is_empty() {
                let (value, length, _) = linear.remove(index.index(linear.len()));
                t.delete(&[KeyMatch::Prefix { value, length }], 0).unwrap();
            }
        }
        for (value, near, take_near) in keys {
            let mut value = n(spread(value));
            if take_near && !linear.is_empty() {
                value = linear[near.index(linear.len())].0.clone();
            }
            let expected = linear.iter()
                .filter(|(prefix, length, _)| &value & mask(*length) == *prefix)
                .max_by_key(|(_, length, _)| *length)
                .map(|(_, _, data)| *data);
            let mut words = vec![0; word_count(width)];
            put_biguint(&value, width, &mut words);
            let found = t.lookup(&mut words);
            prop_assert_eq!(found.map(|found| t.action(Some(found)).1[0]), expected);
        }
    }

    #[test]
    fn any_request_is_answered(
        kind in prop::sample::select(vec![
            MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary,
            MatchKind::Range, MatchKind::Optional,
        ]),
        requests in prop::collection::vec((0u8..5, any::<u16>(), any::<u16>(), 0u32..40, 0u8..3), 0..30),
    ) {
        let mut t = table(&[(kind, 9)]);
        for (form, first, second, number, request) in requests {
            let key = match form {
                0 => exact(u128::from(first)),
                1 => prefix(u128::from(first), number),
                2 => masked(u128::from(first), u128::from(second)),
                3 => range(u128::from(first), u128::from(second)),
                _ => KeyMatch::Any,
            };
            let before = t.len();
            let changed = match request {
                0 => t.insert(&entry(vec![key], number, 1)).is_ok(),
                1 => t.delete(&[key], number).is_ok(),
                _ => t.modify(&entry(vec![key], number, 1)).is_err(),
            };
            let expected = match (request, changed) {
                (0, true) => before + 1,
                (1, true) => before - 1,
                _ => before,
            };
            prop_assert_eq!(t.len(), expected);
            prop_assert_eq!(t.entries().len() as u64, expected);
            t.lookup(&mut [u128::from(first) & 0x1ff]);
        }
    }
}
