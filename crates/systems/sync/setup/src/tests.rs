use super::*;
use stateplane_interp::Interp;
use stateplane_switch::SwitchConfig;

fn sync() -> Sync {
    Sync {
        switch: 7,
        address: Ipv4Addr::new(10, 255, 0, 1),
        turn_us: Some(TURN_US),
        rates: vec![(1, Rates::default())],
        read_only: true,
    }
}

fn switch(program: &str) -> Switch<Interp> {
    let program = stateplane_compile::shipped(program).program();
    let program = program.expect("the application compiles");
    let engine = Interp::new(program, Default::default()).expect("it loads");
    let config = SwitchConfig {
        ports: vec![0, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("a switch")
}

#[test]
fn the_program_is_set_up() {
    let mut switch = switch("apps/packet-counter/packet_counter.p4");
    sync().apply(&mut switch, 99, true).expect("it fits");
    let state = switch.engine().state();
    let (_, data) = state.table(IDENTITY_TABLE).expect("it").default_action();
    assert_eq!(data, [BigUint::from(7u32), BigUint::from(0x0aff_0001_u32)]);
    let word = |name| state.register(name).expect("it").word(0);
    assert_eq!((word(INCARNATION), word(READ_ONLY)), (Some(99), Some(1)));
    assert_eq!(
        switch.poll_timeout(),
        Some(0),
        "the generator's first frame"
    );
}

#[test]
fn each_group_has_a_carrier_of_its_own() {
    let carriers = sync().carriers(2);
    assert_eq!((carriers.batch, carriers.port), (2, TICK_PORT));
    assert_eq!(carriers.index_at, Some(14));
    assert_eq!(carriers.frame.len(), 18);
    assert_eq!((carriers.period_us, carriers.spread), (TURN_US, false));
    let unset = Sync {
        turn_us: None,
        ..sync()
    };
    let carriers = unset.carriers(2);
    assert_eq!((carriers.period_us, carriers.spread), (2 * GROUP_US, true));
}

/// Rates of the configuration take the place of those that an instrumented program has.
#[test]
fn rates_of_the_program_are_replaced() {
    let rates = "1: sync_set(1, 2, 3, 4, 5);".to_owned();
    let program = stateplane_compile::shipped("apps/packet-counter/packet_counter.p4")
        .defines([("SYNC_RATES".to_owned(), rates)])
        .program();
    let program = program.expect("the application compiles");
    let engine = Interp::new(program, Default::default()).expect("it loads");
    let mut switch = Switch::new(engine, SwitchConfig::default()).expect("a switch");
    let data = |switch: &Switch<Interp>| {
        let table = switch.engine().state().table(SETTINGS_TABLE).expect("it");
        let entries = table.entries();
        assert_eq!(entries.len(), 1);
        entries[0].entry.data.clone()
    };
    let own: Vec<BigUint> = (1..=5u32).map(BigUint::from).collect();
    assert_eq!(data(&switch), own);
    sync().apply(&mut switch, 99, false).expect("it fits");
    assert_eq!(data(&switch)[0], BigUint::from(Rates::default().byte_time));
    assert_eq!(data(&switch)[4], BigUint::from(Rates::default().coarsest));
}

#[test]
fn another_program_is_refused() {
    let mut switch = switch("apps/nat/unprotected.p4");
    let error = sync().apply(&mut switch, 99, true).unwrap_err();
    assert!(matches!(error, SetupError::State(_)));
    assert!(error.to_string().contains("sync.p4"), "{error}");
}

#[test]
fn numbers_are_those_of_the_library() {
    let ports = stateplane_library::text("lib/sync/ports.p4").expect("a file");
    assert!(ports.contains(&format!("SYNC_TICK_PORT = {TICK_PORT};")));
    assert!(ports.contains(&format!("#define SYNC_CONTROL_PORT {CONTROL_PORT}\n")));
    let carrier = stateplane_library::text("lib/sync/carrier.p4").expect("a file");
    let rates = Rates::default();
    let settings = format!(
        "sync_set({}, {}, {}, {}, {:#x})",
        rates.byte_time, rates.slowest_byte_time, rates.window_us, rates.finest, rates.coarsest
    );
    assert!(carrier.contains(&settings), "{settings}");
}
