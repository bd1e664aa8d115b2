use super::*;
use stateplane_interp::Interp;
use stateplane_switch::{ETHERTYPE_GENERATED, SwitchConfig};
use stateplane_term::Term;

fn replication() -> Replication {
    Replication {
        switch: 7,
        address: Ipv4Addr::new(10, 10, 0, 1),
        mac: [2, 0, 0, 0, 0xa1, 2],
        port: 2,
        chains: vec![
            Chain {
                head: Server {
                    address: Ipv4Addr::new(10, 10, 0, 11),
                    mac: [2, 0, 0, 0, 0xc0, 0],
                },
                epoch: 3,
                mtu: 1700,
            };
            4
        ],
        hold: Hold::default(),
        probe: Probe {
            ports: vec![0, 1],
            ..Probe::default()
        },
    }
}

fn switch(program: &str) -> Switch<Interp> {
    let program = stateplane_compile::shipped(program).program();
    let program = program.expect("the application compiles");
    let engine = Interp::new(program, Default::default()).expect("it loads");
    let config = SwitchConfig {
        ports: vec![0, 1, 2],
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("a switch")
}

#[test]
fn flows_are_found_in_programs() {
    let flows = |path: &str| {
        let program = stateplane_compile::shipped(path).program();
        Flows::of(&program.expect("the application compiles"))
    };
    let counter = Flows {
        classes: [1].into(),
        state_length: 8,
        shards: Some(4),
    };
    assert_eq!(flows("apps/counter/counter.p4"), Some(counter));
    let nat = flows("apps/nat/nat.p4").expect("it is replicated");
    assert!(nat.classes.contains(&2), "{nat:?}");
    assert_eq!(nat.state_length, 6);
    assert_eq!(flows("apps/nat/unprotected.p4"), None);
}

#[test]
fn what_is_missing_is_refused() {
    let program = stateplane_compile::shipped("apps/counter/counter.p4").program();
    let flows = Flows::of(&program.expect("it compiles")).expect("it is replicated");
    let set = |replication: &Replication, incarnation| {
        let mut switch = switch("apps/counter/counter.p4");
        replication
            .apply(&mut switch, incarnation, true)
            .expect("it is set");
        switch
    };
    let check = |switch: &Switch<Interp>| check_complete(switch, &flows, false);
    let whole = replication();
    assert_eq!(check(&set(&whole, 1)), Ok(()));
    assert_eq!(
        check(&switch("apps/counter/counter.p4")),
        Err(Incomplete::NoIdentity)
    );
    assert_eq!(check(&set(&whole, 0)), Err(Incomplete::NoIdentity));
    let mut without = whole.clone();
    without.chains.clear();
    assert_eq!(check(&set(&without, 1)), Err(Incomplete::NoChains));
    assert_eq!(check_complete(&set(&without, 1), &flows, true), Ok(()));
    without.chains = whole.chains[..3].to_vec();
    let missing = Incomplete::Shards {
        program: 4,
        missing: 3,
    };
    assert_eq!(check(&set(&without, 1)), Err(missing));
    for (number, needed) in [(16, 114), (23, 114), (32, 122), (39, 122)] {
        let mut switch = set(&whole, 1);
        let session = switch.mirror_session(number).expect("it is set");
        let cut = MirrorSession {
            truncate: Some(needed - 1),
            ..session
        };
        switch.set_mirror_session(number, cut).expect("it is taken");
        let short = Incomplete::ShortSession {
            number,
            truncate: needed - 1,
            needed,
        };
        assert_eq!(check(&switch), Err(short));
        let whole_frame = MirrorSession {
            truncate: None,
            ..session
        };
        switch
            .set_mirror_session(number, whole_frame)
            .expect("it is taken");
        assert_eq!(check(&switch), Ok(()));
    }
}

#[test]
fn holds_double_up_to_the_longest() {
    let hold = Hold::default();
    let held: Vec<u64> = (0..10).map(|n| hold.us(n) / 1000).collect();
    assert_eq!(held, [20, 40, 80, 160, 320, 500, 500, 500, 500, 500]);
}

#[test]
fn each_kind_of_request_has_its_sessions() {
    let sessions: Vec<_> = replication().sessions(8).collect();
    assert_eq!(sessions.len(), 16);
    let of = |number| {
        let found = sessions.iter().find(|(session, _)| *session == number);
        found.expect("a session").1
    };
    assert_eq!((of(16).truncate, of(16).hold_us), (Some(114), 20_000));
    assert_eq!((of(39).truncate, of(39).hold_us), (Some(122), 500_000));
    assert!(sessions.iter().all(|(_, it)| it.egress_port == Some(2)));
}

#[test]
fn a_replicated_program_is_set_up() {
    let mut switch = switch("apps/counter/counter.p4");
    replication().apply(&mut switch, 99, true).expect("it fits");
    let state = switch.engine().state();
    let table = state.table(CHAINS_TABLE).expect("the library's");
    assert_eq!(table.entries().len(), 4);
    let (_, data) = state.table(IDENTITY_TABLE).expect("it").default_action();
    assert_eq!(data.first(), Some(&BigUint::from(7u32)));
    let incarnation = state.register(INCARNATION).expect("it").word(0);
    assert_eq!(incarnation, Some(99));
    assert_eq!(
        switch.poll_timeout(),
        Some(0),
        "the generator's first probe"
    );
}

#[test]
fn another_program_is_refused() {
    let mut switch = switch("apps/nat/unprotected.p4");
    let error = replication().apply(&mut switch, 99, true).unwrap_err();
    assert!(matches!(error, SetupError::State(_)));
    assert!(error.to_string().contains("replication.p4"), "{error}");
}

#[test]
fn numbers_are_those_of_the_library() {
    let library = |path: &str| stateplane_library::text(path).expect("a library's file");
    let text = library("lib/replication/ports.p4");
    for declared in [
        format!("GENERATOR_PORT = {GENERATOR_PORT};"),
        format!("HOLD_SESSION_LEASE = {HOLD_SESSION_LEASE};"),
        format!("HOLD_SESSION_WRITE = {HOLD_SESSION_WRITE};"),
        format!("HOLD_SESSIONS = {HOLD_SESSIONS};"),
    ] {
        assert!(text.contains(&declared), "{declared}");
    }
    let generated = format!("ETHERTYPE_GENERATED = {ETHERTYPE_GENERATED:#x};");
    assert!(library("lib/headers.p4").contains(&generated));
}

#[test]
fn packet_tests_include_the_same_sessions() {
    let text = stateplane_library::included_script("test.stf", "replication.stf", |_| None);
    let text = text.expect("a script of the library");
    let short = Replication {
        port: 510,
        hold: Hold {
            first_us: 5_000,
            longest_us: 160_000,
        },
        ..replication()
    };
    let term = element(Term {
        since: 0,
        deadline: 1 << 32,
    });
    let mut expected: Vec<String> = (0..4)
        .map(|shard| format!("register_write replication_term {shard} {term:#018x}"))
        .collect();
    for (number, session) in short.sessions(8) {
        let port = session.egress_port.expect("a port");
        let truncate = if number >= HOLD_SESSION_WRITE {
            "$WRITE_BYTES".to_owned()
        } else {
            session.truncate.expect("a length").to_string()
        };
        let hold = session.hold_us;
        expected.push(format!(
            "mirroring_add {number} {port} truncate {truncate} hold {hold}"
        ));
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, expected);
}

#[test]
fn the_state_of_a_flow_is_as_long_as_in_the_program() {
    for (program, bytes) in [
        ("apps/nat/nat.p4", 6),
        ("apps/firewall/firewall.p4", 1),
        ("apps/key-value/key_value.p4", 9),
        ("apps/serving-gateway/serving_gateway.p4", 17),
        ("apps/heavy-hitter/heavy_hitter.p4", 16),
    ] {
        let switch = switch(program);
        let found = state_bytes(switch.engine().state()).expect("a register");
        assert_eq!(found, bytes, "{program}");
    }
}
