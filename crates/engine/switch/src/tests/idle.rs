//! Entries that age in the switch's time.

use super::engine::{FakeEngine, at};
use super::{config, frame};
use crate::Switch;
use num_bigint::BigUint;
use stateplane_ir::MatchKind;
use stateplane_ir::builder::{Builder, bits};
use stateplane_runtime::{Engine, Entry, KeyMatch, SWEEP_US, TargetState};

fn key() -> KeyMatch {
    KeyMatch::Exact(BigUint::from(7u32))
}

/// A state with the table `ingress.t`, whose one entry ages.
fn aging(timeout: u64) -> TargetState {
    let mut builder = Builder::new();
    let nothing = builder.structure("nothing", &[]);
    builder.pipeline(nothing, nothing);
    let action = builder.action("ingress.none", &[], Vec::new());
    let keys = vec![(MatchKind::Exact, bits(8, 7))];
    let table = builder.table("ingress.t", keys, &[action]);
    builder.program.tables[table.index()].support_timeout = true;
    let program = builder.finish().expect("the program is well formed");
    let mut state = TargetState::new(&program, 1).expect("and small");
    let table = state.table_mut("t").expect("it exists");
    let entry = Entry {
        keys: vec![key()],
        priority: 0,
        action: "none".to_owned(),
        data: Vec::new(),
    };
    table.insert(&entry).expect("it fits");
    table
        .set_idle_timeout(&[key()], 0, Some(timeout), 0)
        .expect("its entries age");
    state
}

fn reported(switch: &mut Switch<FakeEngine>) -> usize {
    std::iter::from_fn(|| switch.engine_mut().state_mut().idle.poll()).count()
}

#[test]
fn the_switch_asks_for_the_time_of_the_next_look_and_reports_then() {
    let engine = FakeEngine::new(aging(3 * SWEEP_US / 2));
    let mut switch = Switch::new(engine, config()).expect("the configuration is valid");
    let mut looks = Vec::new();
    for _ in 0..4 {
        let due = switch.poll_timeout().expect("an entry ages");
        switch.handle_timeout(due);
        looks.push((due / SWEEP_US, reported(&mut switch)));
    }
    assert_eq!(looks, [(0, 0), (1, 0), (2, 1), (3, 0)]);
}

#[test]
fn packets_bring_the_time_as_well() {
    let engine = FakeEngine::new(aging(SWEEP_US));
    let mut switch = Switch::new(engine, config()).expect("the configuration is valid");
    switch.handle_frame(SWEEP_US - 1, 0, &frame(&[(at::TARGET, 1)]));
    assert_eq!(reported(&mut switch), 0);
    switch.handle_frame(2 * SWEEP_US, 0, &frame(&[(at::TARGET, 1)]));
    assert_eq!(reported(&mut switch), 1);
}

#[test]
fn without_entries_that_age_nothing_waits_for_time() {
    let engine = FakeEngine::new(TargetState::default());
    let switch = Switch::new(engine, config()).expect("the configuration is valid");
    assert_eq!(switch.poll_timeout(), None);
}
