use super::*;
use stateplane_interp::Interp;
use stateplane_switch::{ETHERTYPE_GENERATED, SwitchConfig};

fn coordination() -> Coordination {
    Coordination {
        switch: 7,
        address: Ipv4Addr::new(10, 255, 0, 1),
        port: 1,
    }
}

fn switch(program: &str) -> Switch<Interp> {
    let program = stateplane_compile::shipped(program).program();
    let program = program.expect("the application compiles");
    let engine = Interp::new(program, Default::default()).expect("it loads");
    let config = SwitchConfig {
        ports: vec![0, 1],
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("a switch")
}

#[test]
fn the_program_is_set_up() {
    let mut switch = switch("apps/coordination/coordination_switch.p4");
    coordination()
        .apply(&mut switch, 99, true)
        .expect("it fits");
    let state = switch.engine().state();
    let (_, data) = state.table(IDENTITY_TABLE).expect("it").default_action();
    assert_eq!(data, [BigUint::from(7u32), BigUint::from(0x0aff_0001_u32)]);
    let incarnation = state.register(INCARNATION).expect("it").word(0);
    assert_eq!(incarnation, Some(99));
    assert_eq!(
        switch.poll_timeout(),
        Some(0),
        "the generators' first frames"
    );
}

#[test]
fn each_group_has_a_frame_of_its_own_in_a_round() {
    let ticks = tick(TICK_LEASE, LEASE_PERIOD_US, 64);
    assert_eq!((ticks.batch, ticks.port), (64, TICK_PORT));
    assert_eq!(ticks.index_at, Some(16));
    assert_eq!(ticks.frame.len(), 20);
    assert_eq!(ticks.frame[12..15], [0x88, 0xb5, TICK_LEASE]);
}

#[test]
fn another_program_is_refused() {
    let mut switch = switch("apps/nat/unprotected.p4");
    let error = coordination().apply(&mut switch, 99, true).unwrap_err();
    assert!(matches!(error, SetupError::State(_)));
    assert!(error.to_string().contains("coordination.p4"), "{error}");
}

#[test]
fn numbers_are_those_of_the_library() {
    let library = |path: &str| stateplane_library::text(path).expect("a library's file");
    let text = library("lib/coordination/ports.p4");
    for declared in [
        format!("COORDINATION_SESSION = {SESSION};"),
        format!("COORDINATION_TICK_PORT = {TICK_PORT};"),
        format!("TICK_LEASE = {TICK_LEASE};"),
        format!("TICK_COPY = {TICK_COPY};"),
    ] {
        assert!(text.contains(&declared), "{declared}");
    }
    let generated = format!("ETHERTYPE_GENERATED = {ETHERTYPE_GENERATED:#x};");
    assert!(library("lib/headers.p4").contains(&generated));
    let lease = library("lib/coordination/lease.p4");
    let promise = format!(
        "COORDINATION_PROMISE_MICROSECONDS {}\n",
        4 * LEASE_PERIOD_US
    );
    assert!(lease.contains(&promise), "{promise}");
}

#[test]
fn packet_tests_include_the_same_session() {
    let text = stateplane_library::included_script("test.stf", "coordination.stf", |_| None);
    let text = text.expect("a script of the library");
    let session = coordination().session();
    let expected = format!(
        "mirroring_add {SESSION} 510 truncate {}",
        session.truncate.expect("a length")
    );
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, [expected]);
}
