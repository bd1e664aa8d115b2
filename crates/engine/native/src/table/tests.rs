//! Lookups against the target's own, while the control plane writes.

use super::{Lookup, Record};
use num_bigint::BigUint;
use proptest::prelude::*;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{MatchKind, Program, Type};
use stateplane_runtime::{Entry, KeyMatch, TargetState};
use std::slice::from_raw_parts;

/// A program with the table `c.t`, whose actions are `c.set(bit<32> v)` and `c.none`.
fn program(keys: &[(MatchKind, u32)]) -> Program {
    let mut b = Builder::new();
    let headers = b.structure("headers", &[]);
    let metadata = b.structure("metadata", &[]);
    b.pipeline(headers, metadata);
    let v = b.var("c.set.v", Type::Bits(32));
    let set = b.action("c.set", &[v], Vec::new());
    let none = b.action("c.none", &[], Vec::new());
    let keys = keys
        .iter()
        .map(|&(kind, width)| (kind, bits(width, 0)))
        .collect();
    b.table("c.t", keys, &[set, none]);
    b.finish().expect("the program keeps the rules")
}

/// Few values, so that entries meet.
fn value(random: u64, width: u32) -> u128 {
    let low = u128::from(random % 4);
    let high = u128::from(random / 4 % 4);
    let value = low | high << width.saturating_sub(3);
    value & stateplane_runtime::bits::mask(width)
}

fn key(kind: MatchKind, width: u32, random: u64) -> KeyMatch {
    let all = stateplane_runtime::bits::mask(width);
    let at = value(random, width);
    match kind {
        MatchKind::Lpm => {
            let length = (random >> 8) as u32 % (width + 1);
            let mask = all & !stateplane_runtime::bits::mask(width - length);
            KeyMatch::Prefix {
                value: BigUint::from(at & mask),
                length,
            }
        }
        MatchKind::Ternary => {
            let mask = [0, all, all >> 1, 3 & all][(random >> 8) as usize % 4];
            KeyMatch::Mask {
                value: BigUint::from(at & mask),
                mask: BigUint::from(mask),
            }
        }
        MatchKind::Range => {
            let other = value(random >> 8, width);
            KeyMatch::Range {
                low: BigUint::from(at.min(other)),
                high: BigUint::from(at.max(other)),
            }
        }
        MatchKind::Optional if random >> 8 & 1 == 1 => KeyMatch::Any,
        _ => KeyMatch::Exact(BigUint::from(at)),
    }
}

/// The action and the data of a record.
#[allow(unsafe_code, reason = "reads a record as generated code does")]
fn content(record: Record) -> (u32, u64) {
    // SAFETY: records of this table have two words.
    let words = unsafe { from_raw_parts(record.0, 2) };
    (words[0] as u32, words[1])
}

fn agree(keys: &[(MatchKind, u32)], writes: &[(u8, u64)], asked: &[u64]) {
    let program = program(keys);
    let mut state = TargetState::new(&program, 0).expect("a state");
    let def = &program.tables[0];
    let mut lookup = Lookup::new(&program, def, &state.tables()[0]);
    let mut known: Vec<Entry> = Vec::new();
    for (number, &(kind, random)) in writes.iter().enumerate() {
        let table = state.table_mut("c.t").expect("the table");
        let mut draw = random;
        let mut next = || {
            draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            draw >> 20
        };
        match (kind % 4, known.len()) {
            (0, 1..) => {
                let gone = known.swap_remove(next() as usize % known.len());
                table.delete(&gone.keys, gone.priority).expect("an entry");
            }
            (1, 1..) => {
                let index = next() as usize % known.len();
                known[index].data = vec![BigUint::from(number as u32 + 1)];
                table.modify(&known[index]).expect("an entry");
            }
            _ => {
                let entry = Entry {
                    keys: keys
                        .iter()
                        .map(|&(kind, width)| key(kind, width, next()))
                        .collect(),
                    priority: u32::from(table.has_priority()) * (1 + next() as u32 % 5),
                    action: "c.set".to_owned(),
                    data: vec![BigUint::from(number as u32 + 1)],
                };
                if table.insert(&entry).is_ok() {
                    known.push(entry);
                }
            }
        }
        // Not after each write, so that several are taken over together.
        if number % 3 != 0 && number + 1 != writes.len() {
            continue;
        }
        lookup.update(&state.tables()[0]);
        let table = &state.tables()[0];
        for &random in asked {
            let mut draw = random;
            let words: Vec<u128> = keys
                .iter()
                .map(|&(_, width)| {
                    draw = draw.rotate_left(7);
                    value(draw, width)
                })
                .collect();
            let packed = lookup.key.pack(&words, true);
            let record = match *packed {
                [one] => lookup.find_1(one),
                [one, two] => lookup.find_2(one, two),
                ref more => lookup.find(more),
            };
            let found = table.lookup(&mut words.clone());
            let (action, data) = table.action(found);
            let data = data.first().map_or(0, |word| *word as u64);
            assert_eq!(content(record), (action, data), "{keys:?}, key {words:x?}");
        }
    }
}

fn writes() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec(any::<(u8, u64)>(), 1..60)
}

fn asked() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 1..24)
}

proptest! {
    #[test]
    fn exact_keys(writes in writes(), asked in asked(), width in 1u32..=128, wide: bool) {
        agree(&[(MatchKind::Exact, width)], &writes, &asked);
        let second = if wide { 100 } else { 9 };
        agree(&[(MatchKind::Exact, width), (MatchKind::Exact, second)], &writes, &asked);
    }

    #[test]
    fn one_prefix(writes in writes(), asked in asked(), width in 3u32..=128) {
        agree(&[(MatchKind::Lpm, width)], &writes, &asked);
    }

    #[test]
    fn one_range(writes in writes(), asked in asked(), width in 3u32..=128) {
        agree(&[(MatchKind::Range, width)], &writes, &asked);
    }

    #[test]
    fn mixtures(writes in writes(), asked in asked(), width in 3u32..=70) {
        use MatchKind::{Exact, Lpm, Optional, Range, Ternary};
        agree(&[(Ternary, width), (Ternary, 16)], &writes, &asked);
        agree(&[(Exact, width), (Lpm, 32)], &writes, &asked);
        agree(&[(Lpm, 32), (Lpm, width)], &writes, &asked);
        agree(&[(Range, width), (Optional, 8), (Ternary, 64)], &writes, &asked);
    }
}

/// As many entries as make bit vectors too long: another structure takes over.
#[test]
fn many_ternary_entries() {
    let mut program = program(&[(MatchKind::Ternary, 32)]);
    let size = super::slices::MOST as u64 + 200;
    program.tables[0].size = size;
    let mut state = TargetState::new(&program, 0).expect("a state");
    let mut lookup = Lookup::new(&program, &program.tables[0], &state.tables()[0]);
    let entry = |number: u64| Entry {
        keys: vec![KeyMatch::Mask {
            value: BigUint::from(number << 8),
            mask: BigUint::from(0xffff_ff00u32),
        }],
        priority: 1,
        action: "c.set".to_owned(),
        data: vec![BigUint::from(number)],
    };
    for number in 0..size {
        let table = state.table_mut("c.t").expect("the table");
        table.insert(&entry(number)).expect("room");
        if number % 512 == 0 {
            lookup.update(&state.tables()[0]);
        }
    }
    lookup.update(&state.tables()[0]);
    for number in [0, 1, 77, size - 1] {
        assert_eq!(content(lookup.find_1(number << 8 | 5)), (0, number));
    }
    assert_eq!(content(lookup.find_1(size << 8)).0, 1, "the default action");
}
