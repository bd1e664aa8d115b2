//! Ports that go down and up with a register.

use super::engine::at;
use super::{assert_balanced, config, frame, switch_with, transmitted};
use crate::{DropReason, Switch, SwitchConfig, Watch};
use stateplane_ir::{Type, builder::Builder};
use stateplane_runtime::{TargetState, Value};

/// A state with the registers `ingress.heard` of four times and `ingress.narrow` of
/// one byte.
pub(crate) fn state() -> TargetState {
    let mut builder = Builder::new();
    let nothing = builder.structure("nothing", &[]);
    builder.pipeline(nothing, nothing);
    builder.register("ingress.heard", Type::Bits(48), 4);
    builder.register("ingress.narrow", Type::Bits(8), 1);
    let program = builder.finish().expect("the program is well formed");
    TargetState::new(&program, 1).expect("the program has nothing but registers")
}

fn watch(index: u64, ports: &[u16]) -> Watch {
    Watch {
        register: "heard".to_owned(),
        index,
        max_age_us: 100,
        ports: ports.to_vec(),
    }
}

fn watching(watches: Vec<Watch>) -> Switch<super::engine::FakeEngine> {
    switch_with(SwitchConfig {
        watches,
        ..config()
    })
}

fn hear(switch: &mut Switch<super::engine::FakeEngine>, index: u64, time: u64) {
    use stateplane_runtime::Engine;
    let register = switch
        .engine_mut()
        .state_mut()
        .register_mut("heard")
        .unwrap();
    register.write(index, &Value::from(time)).unwrap();
}

fn changes(switch: &mut Switch<super::engine::FakeEngine>) -> Vec<(u16, bool)> {
    std::iter::from_fn(|| switch.poll_port_state()).collect()
}

#[test]
fn ports_are_down_until_the_first_sign_of_life_and_again_when_it_is_old() {
    let mut switch = watching(vec![watch(1, &[2, 3])]);
    assert_eq!(
        switch.poll_timeout(),
        Some(0),
        "the watch is looked at at once"
    );
    switch.handle_timeout(1000);
    assert_eq!(changes(&mut switch), [(2, false), (3, false)]);
    assert!(switch.port_is_up(1) && !switch.port_is_up(2));
    assert_eq!(switch.poll_timeout(), None);

    switch.handle_frame(1001, 0, &frame(&[(at::TARGET, 2)]));
    switch.handle_frame(1001, 3, &frame(&[(at::TARGET, 0)]));
    assert!(transmitted(&mut switch).is_empty());
    assert_eq!(switch.counters().dropped(DropReason::PortDown), 2);

    hear(&mut switch, 1, 1050);
    switch.handle_timeout(1060);
    assert_eq!(changes(&mut switch), [(2, true), (3, true)]);
    assert_eq!(switch.poll_timeout(), Some(1151));
    switch.handle_timeout(1150);
    assert!(changes(&mut switch).is_empty());
    switch.handle_timeout(1151);
    assert_eq!(changes(&mut switch), [(2, false), (3, false)]);
    assert_balanced(&switch);
}

#[test]
fn a_sign_of_life_in_time_keeps_the_ports_up() {
    let mut switch = watching(vec![watch(0, &[1])]);
    hear(&mut switch, 0, 500);
    switch.handle_timeout(500);
    for time in (560..2000).step_by(60) {
        hear(&mut switch, 0, time);
        switch.handle_timeout(time);
        assert!(switch.poll_timeout().is_some_and(|due| due > time));
    }
    assert!(changes(&mut switch).is_empty());
}

#[test]
fn a_port_of_two_watches_needs_both() {
    let mut switch = watching(vec![watch(0, &[1]), watch(1, &[1])]);
    switch.handle_timeout(1000);
    assert_eq!(changes(&mut switch), [(1, false)]);
    hear(&mut switch, 0, 1000);
    switch.handle_timeout(1001);
    assert!(changes(&mut switch).is_empty());
    hear(&mut switch, 1, 1000);
    switch.handle_timeout(1002);
    assert_eq!(changes(&mut switch), [(1, true)]);
}

#[test]
fn a_change_that_was_not_fetched_and_undone_is_not_told() {
    let mut switch = watching(vec![watch(0, &[1])]);
    switch.handle_timeout(1000);
    hear(&mut switch, 0, 1000);
    switch.handle_timeout(1001);
    assert!(changes(&mut switch).is_empty());
    assert!(switch.port_is_up(1));
}

#[test]
fn a_link_that_is_down_stays_down_whatever_the_watch_says() {
    let mut switch = watching(vec![watch(0, &[1])]);
    switch.set_link_up(1, false).unwrap();
    hear(&mut switch, 0, 1000);
    switch.handle_timeout(1000);
    assert!(!switch.port_is_up(1));
}

#[test]
fn watches_that_cannot_be_are_refused() {
    let mut switch = watching(vec![]);
    let mut refused = |watch| {
        let error = switch.add_watch(watch).unwrap_err();
        (error.code(), error.to_string())
    };
    let (code, text) = refused(Watch {
        register: "haerd".to_owned(),
        ..watch(0, &[1])
    });
    assert_eq!(code, "SW011");
    assert!(text.contains("did you mean `ingress.heard`"), "{text}");
    assert_eq!(refused(watch(4, &[1])).0, "SW011");
    let (code, text) = refused(Watch {
        register: "narrow".to_owned(),
        ..watch(0, &[1])
    });
    assert_eq!(code, "SW011");
    assert!(text.contains("8 bits"), "{text}");
    assert_eq!(refused(watch(0, &[7])).0, "SW003");
    assert_eq!(
        refused(Watch {
            max_age_us: 0,
            ..watch(0, &[1])
        })
        .0,
        "SW005"
    );
}
