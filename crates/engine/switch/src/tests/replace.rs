//! Replacement of the program while packets are in flight.

use super::engine::{FakeEngine, at};
use super::{assert_balanced, config, frame, switch, switch_with, transmitted, watches};
use crate::{DropReason, SwitchConfig, Watch};
use stateplane_runtime::{Engine, Value};

#[test]
fn packets_that_wait_leave_and_copies_that_are_held_are_counted() {
    let mut switch = switch();
    // To port 1, and a copy that session 2 holds.
    let copied = frame(&[(at::TARGET, 1), (at::INGRESS_CLONE, 2)]);
    switch.handle_frame(1000, 0, &copied);
    assert_eq!(switch.occupancy().held, 1);
    drop(switch.replace_engine(FakeEngine::new(watches::state())));
    assert_eq!(
        transmitted(&mut switch).len(),
        1,
        "what was sent stays sent"
    );
    assert_eq!(switch.occupancy().total(), 0);
    assert_eq!(switch.counters().dropped(DropReason::ProgramReplaced), 1);
    assert_balanced(&switch);
    switch.handle_frame(2000, 0, &frame(&[(at::TARGET, 3)]));
    let sent = transmitted(&mut switch);
    assert_eq!(sent.len(), 1, "the new program forwards");
    assert_eq!(sent[0].port, 3);
    assert_balanced(&switch);
}

#[test]
fn state_that_is_kept_keeps_ports_up() {
    let watch = Watch {
        register: "heard".to_owned(),
        index: 0,
        max_age_us: 1000,
        ports: vec![1],
    };
    let mut switch = switch_with(SwitchConfig {
        watches: vec![watch],
        ..config()
    });
    let register = switch.engine_mut().state_mut().register_mut("heard");
    register.unwrap().write(0, &Value::from(500u64)).unwrap();
    switch.handle_timeout(600);
    assert!(switch.port_is_up(1));
    while switch.poll_port_state().is_some() {}
    let (_, adopted) = switch.replace_engine_keeping_state(FakeEngine::new(watches::state()));
    assert_eq!((adopted.objects, adopted.lost.len()), (2, 0));
    assert!(switch.port_is_up(1));
    assert_eq!(switch.poll_port_state(), None, "it never went down");
    drop(switch.replace_engine(FakeEngine::new(watches::state())));
    assert!(!switch.port_is_up(1), "without the state it does");
}
