use super::*;
use stateplane_interp::Interp;
use stateplane_runtime::{Entry, KeyMatch};
use stateplane_switch::SwitchConfig;
use std::collections::BTreeMap;

fn multicast() -> Multicast {
    Multicast {
        address: Ipv4Addr::new(10, 255, 0, 1),
        port: 1,
        hold: Hold::default(),
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

/// A switch that reaches 10.0.1.0/24 through a neighbour and 10.0.2.2 directly.
fn routed() -> Switch<Interp> {
    let mut switch = switch("apps/multicast/multicast_switch.p4");
    let state = switch.engine_mut().state_mut();
    let number = |value: u64| BigUint::from(value);
    for (value, length, action, data) in [
        (0x0a00_0100_u64, 24, "via", vec![number(0x0a00_09fe)]),
        (0x0a00_0200, 24, "connected", Vec::new()),
        (0x0a00_0300, 24, "drop", Vec::new()),
    ] {
        let keys = vec![KeyMatch::Prefix {
            value: number(value),
            length,
        }];
        let routes = state.table_mut("routes").expect("the router's");
        let entry = Entry {
            keys,
            priority: 0,
            action: action.into(),
            data,
        };
        routes.insert(&entry).expect("a route");
    }
    for (value, port) in [(0x0a00_09fe, 1), (0x0a00_0202, 2)] {
        let neighbours = state.table_mut("neighbours").expect("the router's");
        let entry = Entry {
            keys: vec![KeyMatch::Exact(number(value))],
            priority: 0,
            action: "forward".into(),
            data: vec![number(port), number(port + 10), number(port + 20)],
        };
        neighbours.insert(&entry).expect("a neighbour");
    }
    switch
}

#[test]
fn the_program_is_set_up() {
    let mut switch = switch("apps/multicast/multicast_switch.p4");
    multicast().apply(&mut switch, 99).expect("it fits");
    let state = switch.engine().state();
    let (_, data) = state.table(IDENTITY_TABLE).expect("it").default_action();
    assert_eq!(data, [BigUint::from(0x0aff_0001_u32)]);
    let incarnation = state.register(INCARNATION).expect("it").word(0);
    assert_eq!(incarnation, Some(99));
}

#[test]
fn another_program_is_refused() {
    let mut switch = switch("apps/nat/unprotected.p4");
    let error = multicast().apply(&mut switch, 99).unwrap_err();
    assert!(matches!(error, SetupError::State(_)));
    assert!(error.to_string().contains("multicast.p4"), "{error}");
}

#[test]
fn addresses_are_reached_as_the_router_says() {
    let switch = routed();
    let reach = |last: [u8; 2]| {
        let address = Ipv4Addr::new(10, 0, last[0], last[1]);
        let hop = hop(switch.engine().state(), address).expect("a router");
        hop.map(|hop| (hop.port, hop.macs))
    };
    let macs = |port: u32| [BigUint::from(port + 10), BigUint::from(port + 20)];
    assert_eq!(reach([1, 77]), Some((1, macs(1))), "behind a neighbour");
    assert_eq!(reach([2, 2]), Some((2, macs(2))), "on the link");
    assert_eq!(reach([2, 3]), None, "no neighbour");
    assert_eq!(reach([3, 1]), None, "dropped");
    assert_eq!(reach([4, 1]), None, "no route");
}

fn rows() -> Rows {
    let member = |number, last| Member {
        number,
        incarnation: 5,
        address: Ipv4Addr::new(10, 0, 1, last),
    };
    let group = Group {
        member: 2,
        longest: 1400,
        others: vec![member(0, 10), member(1, 11)],
        receivers: BTreeMap::from([(3, Ipv4Addr::new(10, 0, 2, 2))]),
    };
    Rows {
        groups: BTreeMap::from([(4, group)]),
        leaders: BTreeMap::from([
            (4, Ipv4Addr::new(10, 0, 1, 10)),
            (5, multicast().address),
            (6, Ipv4Addr::new(10, 0, 1, 12)),
            (7, Ipv4Addr::new(10, 0, 3, 1)),
        ]),
        sessions: BTreeMap::from([(9, 4)]),
    }
}

fn entries(switch: &Switch<Interp>, table: &str) -> Vec<Entry> {
    let table = switch.engine().state().table(table).expect("a table");
    let listed = table.entries().into_iter().map(|listed| listed.entry);
    listed.collect()
}

#[test]
fn rows_are_set_and_those_of_before_are_gone() {
    let mut switch = routed();
    multicast().apply(&mut switch, 99).expect("it fits");
    let unreached = rows().apply(&mut switch).expect("room");
    assert_eq!(unreached, [Ipv4Addr::new(10, 0, 3, 1)]);
    let targets = entries(&switch, "multicast_targets");
    let rids = targets.iter().map(|entry| match &entry.keys[1] {
        KeyMatch::Exact(rid) => rid.iter_u64_digits().next().unwrap_or(0),
        other => panic!("{other:?}"),
    });
    assert_eq!(rids.collect::<Vec<_>>(), [1, 2, 19, 69, 70]);
    let member: Vec<u64> = targets[1]
        .data
        .iter()
        .map(|of| of.iter_u64_digits().sum())
        .collect();
    assert_eq!(member, [5, 0x0a00_010b, 11, 21]);
    assert_eq!(entries(&switch, "multicast_leaders").len(), 4);
    let reached = |switch: &Switch<Interp>, map: u16| {
        let replicas = switch.multicast_group(4 * 8 + map)?;
        Some(replicas.iter().map(|of| (of.rid, of.port)).collect())
    };
    let all: Vec<(u16, u16)> = vec![(1, 1), (2, 1), (19, 2), (69, rows::LOOP_PORT), (70, 1)];
    assert_eq!(reached(&switch, 7), Some(all));
    assert_eq!(reached(&switch, rows::MEMBERS), Some(vec![(1, 1), (2, 1)]));
    assert_eq!(
        reached(&switch, rows::LEADERS),
        Some(vec![(69, rows::LOOP_PORT), (70, 1)])
    );
    assert_eq!(reached(&switch, rows::RECEIVERS), Some(vec![(19, 2)]));

    let mut fewer = rows();
    fewer.leaders.remove(&7);
    fewer.sessions = BTreeMap::from([(9, 2)]);
    let group = fewer.groups.get_mut(&4).expect("it");
    group.others.remove(0);
    assert!(fewer.apply(&mut switch).expect("room").is_empty());
    assert_eq!(entries(&switch, "multicast_targets").len(), 4);
    assert_eq!(entries(&switch, "multicast_leaders").len(), 3);
    let sessions = entries(&switch, "multicast_sessions");
    assert_eq!(sessions[0].data, [BigUint::from(2u8)]);
    assert!(Rows::default().apply(&mut switch).expect("room").is_empty());
    for table in [
        "multicast_groups",
        "multicast_targets",
        "multicast_sessions",
    ] {
        assert_eq!(entries(&switch, table), [], "{table}");
    }
    assert_eq!(reached(&switch, 7), None);
}

#[test]
fn numbers_are_those_of_the_library() {
    let text = stateplane_library::text("lib/multicast/ports.p4").expect("a library's file");
    for declared in [
        format!("MULTICAST_HOLD = {HOLD_SESSION};"),
        format!("MULTICAST_HOLDS = {HOLD_SESSIONS};"),
        format!("MULTICAST_AGAIN = {AGAIN_SESSION};"),
        format!("MULTICAST_MEMBERS = {};", rows::MEMBERS),
        format!("MULTICAST_LEADERS = {};", rows::LEADERS),
        format!("MULTICAST_LOOP_PORT = {};", rows::LOOP_PORT),
        format!("MULTICAST_RECEIVERS = {};", rows::RECEIVERS),
    ] {
        assert!(text.contains(&declared), "{declared}");
    }
}

#[test]
fn packet_tests_include_the_same_sessions() {
    let text = stateplane_library::included_script("test.stf", "multicast.stf", |_| None);
    let text = text.expect("a script of the library");
    let short = Multicast {
        port: 510,
        hold: Hold {
            first_us: 1_000,
            longest_us: 8_000,
        },
        ..multicast()
    };
    let sessions = short.sessions();
    let expected: Vec<String> = sessions
        .map(|(number, session)| match session.hold_us {
            0 => format!("mirroring_add {number} 510"),
            us => format!("mirroring_add {number} 510 hold {us}"),
        })
        .collect();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, expected);
}
