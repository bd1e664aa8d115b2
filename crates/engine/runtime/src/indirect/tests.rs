//! Members, groups and sets of actions, and what entries run of them; entries that age.

use super::*;
use crate::profile::MAX_GROUP_WEIGHT;
use crate::{Entry, SWEEP_US, Table};
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{ActionProfile, HashAlgorithm, MatchKind, Program, Type};

/// Tables `c.first` and `c.second`, which share the selector `c.paths` of four members: both
/// list `c.set(bit<16> v)`, at other positions, and each another action. `c.plain` has an
/// action profile of its own without groups.
fn program() -> Program {
    let mut b = Builder::new();
    let nothing = b.structure("nothing", &[]);
    b.pipeline(nothing, nothing);
    let v = b.var("c.set.v", Type::Bits(16));
    let set = b.action("c.set", &[v], Vec::new());
    let only_first = b.action("c.only_first", &[], Vec::new());
    let none = b.action("c.none", &[], Vec::new());
    let last = b.action("c.last", &[], Vec::new());
    let keys = || {
        vec![
            (MatchKind::Selector, bits(8, 0)),
            (MatchKind::Exact, bits(8, 0)),
        ]
    };
    b.table("c.first", keys(), &[set, only_first, last]);
    b.table("c.second", keys(), &[none, set, last]);
    b.table(
        "c.plain",
        vec![(MatchKind::Exact, bits(8, 0))],
        &[set, last],
    );
    b.table(
        "c.direct",
        vec![(MatchKind::Exact, bits(8, 0))],
        &[set, last],
    );
    let profile = |name: &str, selects: bool| ActionProfile {
        name: name.to_owned(),
        size: 4,
        selector: selects.then_some(Selector {
            algorithm: HashAlgorithm::Crc16,
            output_width: 16,
        }),
        annotations: Vec::new(),
    };
    b.program.action_profiles = vec![profile("c.paths", true), profile("c.members", false)];
    b.program.tables[0].implementation = Some(ActionProfileId(0));
    b.program.tables[1].implementation = Some(ActionProfileId(0));
    b.program.tables[2].implementation = Some(ActionProfileId(1));
    b.program.tables[3].support_timeout = true;
    b.finish().unwrap()
}

fn state() -> TargetState {
    TargetState::new(&program(), 0).unwrap()
}

fn set(value: u32) -> Invocation {
    Invocation {
        action: "set".to_owned(),
        data: vec![BigUint::from(value)],
    }
}

fn keys(value: u32) -> [KeyMatch; 1] {
    [KeyMatch::Exact(BigUint::from(value))]
}

fn group(members: &[(u32, u32)]) -> Group {
    Group {
        members: members.to_vec(),
    }
}

/// Position and data of the action that a key's entry runs for a hash.
fn run(state: &mut TargetState, table: u32, key: u128, hash: u64) -> Option<(u32, Vec<u128>)> {
    let table = TableId(table);
    let entry = state.table_at(table).lookup(&mut [key]);
    let (position, data) = state.action_at(table, entry, hash)?;
    Some((position, data.to_vec()))
}

#[test]
fn a_member_is_shared_by_the_entries_that_name_it() {
    let mut state = state();
    state.insert_member("paths", 7, &set(70)).unwrap();
    state
        .insert_indirect("first", &keys(1), 0, &Runs::Member(7))
        .unwrap();
    state
        .insert_indirect("second", &keys(1), 0, &Runs::Member(7))
        .unwrap();
    // `set` is the first action of one table and the second of the other.
    assert_eq!(run(&mut state, 0, 1, 0), Some((0, vec![70])));
    assert_eq!(run(&mut state, 1, 1, 0), Some((1, vec![70])));
    state.modify_member("paths", 7, &set(71)).unwrap();
    assert_eq!(run(&mut state, 0, 1, 0), Some((0, vec![71])));
    // A miss runs the default action, here the last of the table.
    assert_eq!(run(&mut state, 0, 2, 0), Some((2, vec![])));
    let members: Vec<_> = state
        .profile("paths")
        .unwrap()
        .members()
        .into_iter()
        .collect();
    let wanted = Invocation {
        action: "c.set".to_owned(),
        ..set(71)
    };
    assert_eq!(members, [(7, wanted)]);
}

#[test]
fn a_hash_chooses_from_a_group_by_weight() {
    let mut state = state();
    for member in 1..=3 {
        state.insert_member("paths", member, &set(member)).unwrap();
    }
    state
        .insert_group("paths", 9, &group(&[(1, 1), (3, 2)]))
        .unwrap();
    state
        .insert_indirect("first", &keys(1), 0, &Runs::Group(9))
        .unwrap();
    let entry = state.table_at(TableId(0)).lookup(&mut [1]);
    assert!(state.selector_at(TableId(0), entry).is_some());
    assert_eq!(state.selector_at(TableId(0), None), None);
    let chosen: Vec<u128> = (0..6)
        .map(|hash| run(&mut state, 0, 1, hash).unwrap().1[0])
        .collect();
    assert_eq!(chosen, [1, 3, 3, 1, 3, 3]);
    state.modify_group("paths", 9, &group(&[(2, 1)])).unwrap();
    assert_eq!(run(&mut state, 0, 1, u64::MAX), Some((0, vec![2])));
    state.modify_group("paths", 9, &group(&[])).unwrap();
    assert_eq!(run(&mut state, 0, 1, 0), None, "of an empty group nothing");
}

#[test]
fn a_set_of_actions_is_the_entrys_own() {
    let mut state = state();
    let runs = Runs::Set(vec![(set(5), 2), (set(6), 1)]);
    state.insert_indirect("second", &keys(1), 0, &runs).unwrap();
    let chosen: Vec<u128> = (0..3)
        .map(|hash| run(&mut state, 1, 1, hash).unwrap().1[0])
        .collect();
    assert_eq!(chosen, [5, 5, 6]);
    assert_eq!(run(&mut state, 1, 1, 0).unwrap().0, 1);
    let listed = state.table("second").unwrap().get(&keys(1), 0).unwrap();
    let Some(Runs::Set(actions)) = &listed.runs else {
        panic!("{listed:?}")
    };
    assert_eq!(actions[1].0.action, "c.set");
    // Two of the four places are taken.
    let three = Runs::Set(vec![(set(1), 1), (set(2), 1), (set(3), 1)]);
    let error = state
        .insert_indirect("first", &keys(1), 0, &three)
        .unwrap_err();
    assert_eq!(error.code(), "TG032");
    state
        .modify_indirect("second", &keys(1), 0, &three)
        .unwrap();
    state.insert_member("paths", 1, &set(1)).unwrap();
    assert_eq!(
        state.insert_member("paths", 2, &set(1)).unwrap_err().code(),
        "TG032"
    );
    state
        .table_mut("second")
        .unwrap()
        .delete(&keys(1), 0)
        .unwrap();
    state.insert_member("paths", 2, &set(1)).unwrap();
}

#[test]
fn what_is_in_use_stays() {
    let mut state = state();
    state.insert_member("paths", 1, &set(1)).unwrap();
    state.insert_member("paths", 2, &set(2)).unwrap();
    state.insert_group("paths", 1, &group(&[(1, 1)])).unwrap();
    state
        .insert_indirect("first", &keys(1), 0, &Runs::Group(1))
        .unwrap();
    state
        .insert_indirect("second", &keys(1), 0, &Runs::Member(2))
        .unwrap();
    let code = |result: Result<(), StateError>| result.unwrap_err().code();
    assert_eq!(code(state.delete_member("paths", 1)), "TG033", "in a group");
    assert_eq!(
        code(state.delete_member("paths", 2)),
        "TG033",
        "in an entry"
    );
    assert_eq!(code(state.delete_group("paths", 1)), "TG033");
    state
        .modify_indirect("second", &keys(1), 0, &Runs::Member(1))
        .unwrap();
    state.delete_member("paths", 2).unwrap();
    state.table_mut("first").unwrap().clear().unwrap();
    state.delete_group("paths", 1).unwrap();
    assert_eq!(
        code(state.delete_member("paths", 1)),
        "TG033",
        "in an entry"
    );
    state
        .table_mut("second")
        .unwrap()
        .delete(&keys(1), 0)
        .unwrap();
    state.delete_member("paths", 1).unwrap();
}

#[test]
fn wrong_requests_are_refused() {
    let mut state = state();
    state.insert_member("paths", 1, &set(1)).unwrap();
    let code = |result: Result<(), StateError>| result.unwrap_err().code();
    assert_eq!(code(state.insert_member("path", 1, &set(1))), "TG001");
    assert_eq!(code(state.insert_member("paths", 1, &set(1))), "TG029");
    assert_eq!(
        code(state.insert_member("paths", 2, &set(1 << 16))),
        "TG007"
    );
    let elsewhere = Invocation {
        action: "only_first".to_owned(),
        data: Vec::new(),
    };
    let error = state.insert_member("paths", 2, &elsewhere).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("action profile `c.paths` has no action `only_first`"),
        "{error}"
    );
    assert_eq!(code(state.modify_member("paths", 2, &set(1))), "TG030");
    assert_eq!(code(state.delete_member("paths", 2)), "TG030");
    assert_eq!(
        code(state.insert_group("paths", 1, &group(&[(2, 1)]))),
        "TG030"
    );
    assert_eq!(
        code(state.insert_group("paths", 1, &group(&[(1, 0)]))),
        "TG034"
    );
    let heavy = MAX_GROUP_WEIGHT as u32 + 1;
    assert_eq!(
        code(state.insert_group("paths", 1, &group(&[(1, heavy)]))),
        "TG034"
    );
    assert_eq!(
        code(state.insert_group("paths", 1, &group(&[(1, 1), (1, 1)]))),
        "TG029"
    );
    assert_eq!(code(state.insert_group("members", 1, &group(&[]))), "TG023");
    assert_eq!(code(state.modify_group("paths", 1, &group(&[]))), "TG031");
    let mut insert = |table: &str, runs| code(state.insert_indirect(table, &keys(1), 0, &runs));
    assert_eq!(insert("first", Runs::Member(2)), "TG030");
    assert_eq!(insert("first", Runs::Group(1)), "TG031");
    assert_eq!(insert("plain", Runs::Group(1)), "TG023");
    assert_eq!(insert("plain", Runs::Set(vec![(set(1), 1)])), "TG023");
    assert_eq!(insert("direct", Runs::Member(1)), "TG028");
    let direct = Entry {
        keys: keys(1).to_vec(),
        priority: 0,
        action: "set".to_owned(),
        data: vec![BigUint::from(1u32)],
    };
    let first = state.table_mut("first").unwrap();
    assert_eq!(code(first.insert(&direct)), "TG027");
}

fn aging() -> TargetState {
    let mut state = state();
    let direct = state.table_mut("direct").unwrap();
    direct
        .insert(&Entry {
            keys: keys(1).to_vec(),
            priority: 0,
            action: "set".to_owned(),
            data: vec![BigUint::from(1u32)],
        })
        .unwrap();
    state
}

fn direct(state: &mut TargetState) -> &mut Table {
    state.table_mut("direct").unwrap()
}

#[test]
fn an_entry_is_reported_after_its_timeout_and_every_two_sweeps() {
    let mut state = aging();
    assert!(!state.is_aging());
    direct(&mut state)
        .set_idle_timeout(&keys(1), 0, Some(SWEEP_US), 0)
        .unwrap();
    assert!(state.is_aging());
    let mut reported = Vec::new();
    for second in 0..6 {
        let now = second * SWEEP_US;
        if second == 4 {
            // A hit between two sweeps.
            let entry = direct(&mut state).lookup(&mut [1]).unwrap();
            direct(&mut state).hit(entry, 64, now - 1);
        }
        state.sweep_idle(now);
        while let Some(entry) = state.idle.poll() {
            assert_eq!(
                (entry.table.as_str(), &entry.keys[..]),
                ("c.direct", &keys(1)[..])
            );
            reported.push(second);
        }
    }
    assert_eq!(reported, [1, 3, 5]);
    assert_eq!(
        direct(&mut state).idle_for(&keys(1), 0, 5 * SWEEP_US),
        Ok(Some(SWEEP_US + 1))
    );
}

#[test]
fn aging_ends_with_the_timeout_or_the_entry() {
    let mut state = aging();
    let table = direct(&mut state);
    table.set_idle_timeout(&keys(1), 0, Some(5), 0).unwrap();
    table.set_idle_timeout(&keys(1), 0, Some(6), 0).unwrap();
    assert_eq!(table.get(&keys(1), 0).unwrap().idle_timeout, Some(6));
    table.set_idle_timeout(&keys(1), 0, None, 0).unwrap();
    assert!(!table.is_aging());
    table.set_idle_timeout(&keys(1), 0, Some(5), 0).unwrap();
    table.delete(&keys(1), 0).unwrap();
    assert!(!table.is_aging());
    state.sweep_idle(SWEEP_US);
    assert!(state.idle.is_empty());
    assert_eq!(
        state
            .table_mut("plain")
            .unwrap()
            .set_idle_timeout(&keys(1), 0, Some(5), 0)
            .unwrap_err()
            .code(),
        "TG023"
    );
}
