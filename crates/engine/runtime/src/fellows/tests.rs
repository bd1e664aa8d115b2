use super::*;
use crate::{Color, Count, Digest, Entry, Group, Invocation, Listed, MeterConfig, Runs, Value};
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{
    ActionProfile, ActionProfileId, CounterId, CounterKind, HashAlgorithm, MatchKind, MeterId,
    Selector, Type,
};
use stateplane_random::Random;

const TABLES: [(&str, MatchKind); 3] = [
    ("c.exact", MatchKind::Exact),
    ("c.prefix", MatchKind::Lpm),
    ("c.ternary", MatchKind::Ternary),
];

/// A table of each kind, counted and aging; `c.exact` has a direct meter, `c.paths` an action
/// selector.
fn state() -> TargetState {
    let mut b = Builder::new();
    let nothing = b.structure("nothing", &[]);
    b.pipeline(nothing, nothing);
    let v = b.var("c.set.v", Type::Bits(16));
    let set = b.action("c.set", &[v], Vec::new());
    let none = b.action("c.none", &[], Vec::new());
    for (name, kind) in TABLES {
        b.table(name, vec![(kind, bits(8, 0))], &[set, none]);
    }
    let selected = vec![
        (MatchKind::Selector, bits(8, 0)),
        (MatchKind::Exact, bits(8, 0)),
    ];
    b.table("c.selected", selected, &[set, none]);
    for at in 0..TABLES.len() {
        b.program.tables[at].support_timeout = true;
        b.program.tables[at].direct_counter = Some(CounterId(at as u32));
        b.program.counters.push(stateplane_ir::Counter {
            name: format!("c.hits{at}"),
            kind: CounterKind::PacketsAndBytes,
            size: 0,
            table: Some(TableId(at as u32)),
        });
    }
    b.program.counters.push(stateplane_ir::Counter {
        name: "c.seen".to_owned(),
        kind: CounterKind::PacketsAndBytes,
        size: 4,
        table: None,
    });
    b.program.tables[0].direct_meter = Some(MeterId(0));
    b.program.meters.push(stateplane_ir::Meter {
        name: "c.rate".to_owned(),
        bytes: false,
        size: 0,
        table: Some(TableId(0)),
    });
    b.program.action_profiles = vec![ActionProfile {
        name: "c.paths".to_owned(),
        size: 64,
        selector: Some(Selector {
            algorithm: HashAlgorithm::Crc16,
            output_width: 16,
        }),
        annotations: Vec::new(),
    }];
    b.program.tables[3].implementation = Some(ActionProfileId(0));
    TargetState::new(&b.finish().unwrap(), 0).unwrap()
}

fn key(kind: MatchKind, value: u32) -> KeyMatch {
    let value = BigUint::from(value);
    match kind {
        MatchKind::Lpm => KeyMatch::Prefix { value, length: 8 },
        MatchKind::Ternary => KeyMatch::Mask {
            value,
            mask: BigUint::from(255u32),
        },
        _ => KeyMatch::Exact(value),
    }
}

fn entry(kind: MatchKind, value: u32, data: u32) -> Entry {
    Entry {
        keys: vec![key(kind, value)],
        priority: u32::from(kind == MatchKind::Ternary),
        action: "set".to_owned(),
        data: vec![BigUint::from(data)],
    }
}

fn hit(state: &mut TargetState, table: usize, value: u128, now: u64) -> Option<Color> {
    let table = state.table_at(TableId(table as u32));
    let entry = table.lookup(&mut [value])?;
    Some(table.hit(entry, 100, now))
}

/// A table's entries but for what they counted, and its default action.
fn shown(table: &Table) -> (Vec<Listed>, (String, Vec<BigUint>)) {
    let uncounted = |listed| Listed {
        count: Count::default(),
        ..listed
    };
    let entries = table.entries().into_iter().map(uncounted).collect();
    (entries, table.default_action())
}

fn assert_follows(first: &TargetState, fellow: &TargetState) {
    for (own, first) in fellow.tables().iter().zip(first.tables()) {
        assert_eq!(shown(own), shown(first), "{}", first.name());
        assert_eq!(own.version(), first.version());
        assert_eq!(own.is_aging(), first.is_aging());
        assert_eq!(own.len(), first.len());
        for value in 0..256 {
            assert_eq!(
                own.lookup(&mut [value]),
                first.lookup(&mut [value]),
                "{value}"
            );
        }
    }
    let profile = |state: &TargetState| {
        let profile = &state.profiles()[0];
        (profile.members(), profile.groups())
    };
    assert_eq!(profile(fellow), profile(first));
}

fn change(state: &mut TargetState, random: &mut Random, step: u32) {
    let at = random.place(TABLES.len());
    let kind = TABLES[at].1;
    let value = random.place(24) as u32;
    let wanted = entry(kind, value, step % 65_536);
    let id = value % 8;
    let invocation = Invocation {
        action: "set".to_owned(),
        data: vec![BigUint::from(step % 65_536)],
    };
    // A change that does not fit is refused, and changes nothing.
    let table = state.table_at(TableId(at as u32));
    let _ = match random.place(12) {
        0..4 => table.insert(&wanted),
        4..6 => table.delete(&wanted.keys, wanted.priority),
        6 => table.modify(&wanted),
        7 => table.set_default("set", &wanted.data),
        8 => table.set_idle_timeout(&wanted.keys, wanted.priority, Some(7), u64::from(step)),
        9 => state
            .insert_member("paths", id, &invocation)
            .or_else(|_| state.modify_member("paths", id, &invocation)),
        10 => {
            let members = vec![(id, 1)];
            let keys = [key(MatchKind::Exact, value)];
            state
                .insert_group("paths", id, &Group { members })
                .and_then(|()| state.insert_indirect("selected", &keys, 0, &Runs::Group(id)))
        }
        _ => {
            let keys = [key(MatchKind::Exact, value)];
            let deleted = state.table_at(TableId(3)).delete(&keys, 0);
            deleted
                .and_then(|()| state.delete_group("paths", id))
                .and_then(|()| state.delete_member("paths", id))
        }
    };
}

#[test]
fn fellows_follow_any_changes() {
    let mut random = Random::new(7);
    let mut first = state();
    let mut fellow = first.fellow(1);
    for step in 0..4000 {
        change(&mut first, &mut random, step);
        if random.place(5) == 0 {
            fellow.follow(&first);
            assert_follows(&first, &fellow);
        }
    }
    fellow.follow(&first);
    assert_follows(&first, &fellow);
    // More than logs remember.
    for step in 0..200_000 {
        change(&mut first, &mut random, step);
    }
    let before = fellow.tables()[0].version();
    fellow.follow(&first);
    assert_follows(&first, &fellow);
    let changes = fellow.tables()[0].changes(before);
    assert!(matches!(changes, crate::table::Changes::Many));
    // It goes on from there.
    for step in 0..100 {
        change(&mut first, &mut random, step);
        fellow.follow(&first);
        assert_follows(&first, &fellow);
    }
    let other = first.fellow(2);
    assert_follows(&first, &other);
}

#[test]
fn counts_stay_with_entries_that_stay_and_are_gathered_once() {
    let mut first = state();
    let mut fellow = first.fellow(1);
    for value in 0..3 {
        let wanted = entry(MatchKind::Exact, value, 1);
        first.table_at(TableId(0)).insert(&wanted).unwrap();
    }
    fellow.follow(&first);
    for value in [0, 0, 1, 2] {
        assert_eq!(hit(&mut fellow, 0, value, 5), Some(Color::Green));
    }
    hit(&mut first, 0, 0, 6);
    fellow.table_at(TableId(0)).miss(60, 7);
    fellow.counter_mut("seen").unwrap().count(3, 60);

    // Another entry with the same keys counts anew; a change of the action does not.
    let table = first.table_at(TableId(0));
    let keys = [key(MatchKind::Exact, 1)];
    table.delete(&keys, 0).unwrap();
    table.insert(&entry(MatchKind::Exact, 1, 2)).unwrap();
    table.modify(&entry(MatchKind::Exact, 2, 2)).unwrap();
    fellow.follow(&first);
    let counts = |state: &TargetState| -> Vec<u64> {
        let table = &state.tables()[0];
        let count = |value| table.get(&[key(MatchKind::Exact, value)], 0).unwrap().count;
        (0..3).map(|value| count(value).packets).collect()
    };
    assert_eq!(counts(&fellow), [2, 0, 1]);
    first.gather_entry(&mut fellow, TableId(0), &[key(MatchKind::Exact, 0)], 0);
    assert_eq!(counts(&first), [3, 0, 0]);
    for _ in 0..2 {
        first.gather(&mut fellow);
        assert_eq!(counts(&first), [3, 0, 1]);
        assert_eq!(counts(&fellow), [0; 3]);
        assert_eq!(first.tables()[0].default_count().packets, 1);
        let seen = first.counter("seen").unwrap().read(3).unwrap();
        assert_eq!((seen.packets, seen.bytes), (1, 60));
    }
}

/// An entry that one engine's packets hit is not idle.
#[test]
fn an_entry_is_idle_if_no_engine_was_hit() {
    let mut first = state();
    let mut fellow = first.fellow(1);
    let keys = [key(MatchKind::Exact, 9)];
    let table = first.table_at(TableId(0));
    table.insert(&entry(MatchKind::Exact, 9, 1)).unwrap();
    table.set_idle_timeout(&keys, 0, Some(100), 0).unwrap();
    fellow.follow(&first);
    assert!(fellow.is_aging());
    hit(&mut fellow, 0, 9, 150);
    first.gather_ages(&mut fellow);
    first.sweep_idle(200);
    assert!(first.idle.is_empty());
    first.gather_ages(&mut fellow);
    first.sweep_idle(260);
    assert_eq!(first.idle.len(), 1);
    // A hit after the report lets it be reported anew.
    hit(&mut fellow, 0, 9, 300);
    first.gather_ages(&mut fellow);
    first.sweep_idle(400);
    assert_eq!(first.idle.len(), 2);
}

#[test]
fn direct_meters_are_one_for_all_engines_whenever_their_entry_came() {
    let mut first = state();
    let old = entry(MatchKind::Exact, 1, 1);
    first.table_at(TableId(0)).insert(&old).unwrap();
    let mut fellow = first.fellow(1);
    let new = entry(MatchKind::Exact, 2, 1);
    let config = MeterConfig {
        committed_rate: 1,
        committed_burst: 1,
        peak_rate: 1,
        peak_burst: 2,
    };
    let table = first.table_at(TableId(0));
    table.insert(&new).unwrap();
    for entry in [&old, &new] {
        table.set_meter(&entry.keys, 0, Some(config), 0).unwrap();
    }
    fellow.follow(&first);
    for value in [1, 2] {
        assert_eq!(hit(&mut fellow, 0, value, 0), Some(Color::Green));
        assert_eq!(hit(&mut first, 0, value, 0), Some(Color::Yellow));
        assert_eq!(hit(&mut fellow, 0, value, 0), Some(Color::Red));
    }
    let table = first.table_at(TableId(0));
    table.set_default_meter(Some(config), 0).unwrap();
    assert_eq!(table.miss(60, 0), Color::Green);
    assert_eq!(fellow.table_at(TableId(0)).miss(60, 0), Color::Yellow);
    first.table_at(TableId(0)).reset_default_resources();
    assert_eq!(fellow.table_at(TableId(0)).miss(60, 0), Color::Green);
    assert_eq!(first.lock_waits() + fellow.lock_waits(), 0);
}

#[test]
fn digests_are_gathered_in_order() {
    let mut first = state();
    let mut fellow = first.fellow(1);
    for value in 0..3 {
        fellow.digests.push_with(|| Digest {
            name: "d".to_owned(),
            data: Value::from(value),
        });
    }
    first.gather_digests(&mut fellow);
    let data = std::iter::from_fn(|| first.digests.poll().map(|digest| digest.data));
    let wanted: Vec<Value> = (0..3u64).map(Value::from).collect();
    assert_eq!(data.collect::<Vec<_>>(), wanted);
}

/// Counts of one engine's packets lie apart from those of others.
#[test]
fn engines_count_in_lines_of_the_cache_of_their_own() {
    let mut first = state();
    let wanted = entry(MatchKind::Exact, 1, 1);
    first.table_at(TableId(0)).insert(&wanted).unwrap();
    let fellows = [first.fellow(1), first.fellow(2)];
    let states = [&first, &fellows[0], &fellows[1]];
    let lines = |state: &TargetState| {
        let counts = state.counter("seen").unwrap().counts().as_ptr_range();
        // Nothing else is in memory as near as a line.
        (counts.start.addr() - 64) / 64..=counts.end.addr().div_ceil(64)
    };
    for (at, one) in states.iter().enumerate() {
        for other in &states[at + 1..] {
            let (one, other) = (lines(one), lines(other));
            let apart = one.end() <= other.start() || other.end() <= one.start();
            assert!(apart, "{one:?} {other:?}");
        }
        let table = std::ptr::from_ref(&one.tables()[0]).addr();
        assert_eq!((table % 64, size_of::<Table>() % 64), (0, 0));
    }
}
