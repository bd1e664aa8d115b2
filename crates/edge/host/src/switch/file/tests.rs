//! Files that are applied, and files that are refused.

use super::*;
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{MatchKind, Type};
use stateplane_runtime::KeyMatch;

/// Tables `ingress.routes` (prefix), `ingress.neighbours` (exact) and `ingress.acl`
/// (ternary and range); registers `ingress.incarnation` and `ingress.pair`.
fn state() -> TargetState {
    let mut b = Builder::new();
    let nothing = b.structure("nothing", &[]);
    let pair = b.structure(
        "pair",
        &[("address", Type::Bits(32)), ("port", Type::Bits(16))],
    );
    b.pipeline(nothing, nothing);
    let address = b.var("address", Type::Bits(32));
    let port = b.var("port", Type::Bits(9));
    let mac = b.var("mac", Type::Bits(48));
    let source_mac = b.var("source_mac", Type::Bits(48));
    let via = b.action("ingress.via", &[address], vec![]);
    let forward = b.action("ingress.forward", &[port, mac, source_mac], vec![]);
    let drop = b.action("ingress.drop", &[], vec![]);
    b.table(
        "ingress.routes",
        vec![(MatchKind::Lpm, bits(32, 0))],
        &[via, drop],
    );
    b.table(
        "ingress.neighbours",
        vec![(MatchKind::Exact, bits(32, 0))],
        &[forward, drop],
    );
    let keys = vec![
        (MatchKind::Ternary, bits(32, 0)),
        (MatchKind::Range, bits(16, 0)),
    ];
    b.table("ingress.acl", keys, &[via, drop]);
    b.register("ingress.incarnation", Type::Bits(32), 2);
    b.register("ingress.pair", Type::Struct(pair), 1);
    TargetState::new(&b.finish().unwrap(), 1).unwrap()
}

fn apply(text: &str) -> Result<TargetState, SwitchFileError> {
    let mut state = state();
    let mut next = 0;
    let file = SwitchFile::parse("switch.toml".as_ref(), text)?;
    file.apply_to_state(&mut state, &mut || {
        next += 1;
        next << 32 | (next - 1)
    })?;
    Ok(state)
}

fn refused(text: &str) -> (&'static str, String) {
    let error = apply(text).expect_err(text);
    (error.code(), error.to_string())
}

fn number(value: u64) -> BigUint {
    BigUint::from(value)
}

#[test]
fn entries_are_written_in_either_way() {
    let state = apply(
        r#"
        [[entries]]
        table = "routes"
        keys = ["10.0.0.0/8"]
        action = "via"
        params = ["192.168.0.1"]

        [[entries]]
        table = "ingress.routes"
        keys = ["0xc0a80001"]
        action = "ingress.via"
        params = { address = 7 }

        [[entries]]
        table = "acl"
        keys = ["10.0.0.0 &&& 255.0.0.0", "80..443"]
        action = "drop"
        priority = 5

        [[entries]]
        table = "acl"
        keys = ["_", 9]
        action = "drop"
        priority = 4

        [[defaults]]
        table = "acl"
        action = "via"
        params = { address = "10.0.0.9" }
        "#,
    )
    .unwrap();
    let routes: Vec<_> = state
        .table("routes")
        .unwrap()
        .entries()
        .into_iter()
        .map(|listed| listed.entry)
        .collect();
    let prefix = KeyMatch::Prefix {
        value: number(10 << 24),
        length: 8,
    };
    assert_eq!(routes[0].keys, [prefix]);
    assert_eq!(routes[0].data, [number(0xc0a8_0001)]);
    assert_eq!(
        (routes[1].action.as_str(), &routes[1].data[..]),
        ("ingress.via", &[number(7)][..])
    );
    let acl = state.table("acl").unwrap();
    let first = &acl.entries()[0].entry;
    assert_eq!(
        first.keys[1],
        KeyMatch::Range {
            low: number(80),
            high: number(443)
        }
    );
    assert_eq!(first.priority, 5);
    assert_eq!(acl.len(), 2);
    assert_eq!(
        acl.default_action(),
        ("ingress.via".to_owned(), vec![number(0x0a00_0009)])
    );
}

#[test]
fn neighbours_become_entries() {
    let state = apply(
        r#"
        [neighbours]
        table = "neighbours"
        action = "forward"
        list = [
            { address = "10.0.0.2", port = 3, mac = "02:00:00:00:00:02", source_mac = "02:00:00:00:00:01" },
            { address = "10.0.0.3", port = 4, mac = "02:00:00:00:00:03", source_mac = "02:00:00:00:00:01" },
        ]
        "#,
    )
    .unwrap();
    let entries = state.table("neighbours").unwrap().entries();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        entries[1].entry.keys,
        [KeyMatch::Exact(number(0x0a00_0003))]
    );
    let data = [
        number(4),
        number(0x0200_0000_0003),
        number(0x0200_0000_0001),
    ];
    assert_eq!(entries[1].entry.data, data);
}

#[test]
fn ports_with_addresses_are_routed_unless_they_are_promiscuous() {
    let text = r#"
        [ports]
        routed = [5]
        promiscuous = [4]

        [neighbours]
        table = "neighbours"
        action = "forward"
        list = [
            { address = "10.0.0.2", port = 3, mac = "02:00:00:00:00:02", source_mac = "02:00:00:00:00:01" },
            { address = "10.0.0.3", port = 3, mac = "02:00:00:00:00:03", source_mac = "02:00:00:00:00:01" },
            { address = "10.0.0.4", port = 4, mac = "02:00:00:00:00:04", source_mac = "02:00:00:00:00:01" },
        ]

        [replication]
        switch = 1
        address = "10.10.0.1"
        mac = "02:00:00:00:00:09"
        port = 2
    "#;
    let file = SwitchFile::parse("switch.toml".as_ref(), text).unwrap();
    let expected = [
        (2, vec![[2, 0, 0, 0, 0, 9]]),
        (3, vec![[2, 0, 0, 0, 0, 1]]),
        (5, vec![]),
    ];
    assert_eq!(file.routed_ports().unwrap(), expected.into());
}

#[test]
fn ports_that_do_not_exist_or_are_both_are_refused() {
    let check = |text: &str| {
        let file = SwitchFile::parse("switch.toml".as_ref(), text).unwrap();
        let ports = file.ports.unwrap();
        ports.get_ref().check(&[0, 1]).map_err(|it| it.code())
    };
    assert_eq!(check("[ports]\nrouted = [0]\npromiscuous = [1]"), Ok(()));
    assert_eq!(
        check("[ports]\nrouted = [0]\npromiscuous = [0]"),
        Err("H241")
    );
    assert_eq!(check("[ports]\nrouted = [2]"), Err("H242"));
    assert_eq!(check("[ports]\npromiscuous = [2]"), Err("H242"));
}

#[test]
fn registers_get_values_or_random_ones_that_are_not_zero() {
    let state = apply(
        r#"
        [[registers]]
        name = "pair"
        index = 0
        value = ["10.0.0.1", 80]

        [[registers]]
        name = "incarnation"
        index = 1
        value = "random"
        "#,
    )
    .unwrap();
    let pair = Value::Struct(vec![Value::from(0x0a00_0001), Value::from(80)]);
    assert_eq!(state.register("pair").unwrap().read(0), Ok(pair));
    let incarnation = state.register("incarnation").unwrap();
    assert_eq!(incarnation.read(0), Ok(Value::from(0)));
    // The source's low 32 bits are 0 at first.
    assert_eq!(incarnation.read(1), Ok(Value::from(1)));

    let state = apply("[[registers]]\nname = \"incarnation\"\nvalue = \"0x1f\"").unwrap();
    for index in 0..2 {
        assert_eq!(
            state.register("incarnation").unwrap().read(index),
            Ok(Value::from(31))
        );
    }
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let text = r#"
[[entries]]
table = "routes"
keys = ["10.0.0.0/8"]
action = "via"
params = [1]

[[entries]]
table = "ruotes"
keys = [1]
action = "via"
"#;
    let error = apply(text).unwrap_err();
    assert_eq!((error.code(), error.line()), ("TG001", Some(8)));
    let text = error.to_string();
    assert!(text.starts_with("switch.toml:8: "), "{text}");
    assert!(text.contains("did you mean `ingress.routes`"), "{text}");
}

#[test]
fn each_mistake_has_its_code() {
    let entry = |keys: &str, action: &str, params: &str| {
        refused(&format!(
            "[[entries]]\ntable = \"neighbours\"\nkeys = {keys}\naction = \"{action}\"\nparams = {params}"
        ))
    };
    let good = "{ port = 1, mac = 2, source_mac = 3 }";
    assert_eq!(entry("[1, 2]", "forward", good).0, "TG005");
    assert_eq!(entry("[\"1..2\"]", "forward", good).0, "TG006");
    assert_eq!(entry("[4294967296]", "forward", good).0, "TG007");
    assert_eq!(entry("[1]", "foward", good).0, "TG003");
    assert_eq!(entry("[1]", "forward", "[1]").0, "TG011");
    assert_eq!(entry("[1]", "forward", "[1, 2, \"x\"]").0, "TG019");
    let (code, text) = entry("[1]", "forward", "{ port = 1, mac = 2 }");
    assert_eq!(code, "H225");
    assert!(text.contains("`source_mac`"), "{text}");
    let (code, text) = entry("[1]", "forward", "{ prot = 1, mac = 2, source_mac = 3 }");
    assert_eq!(code, "H224");
    assert!(text.contains("`prot`") && text.contains("`port`"), "{text}");
    assert_eq!(entry("{ nothing = 1 }", "forward", good).0, "H224");
    assert_eq!(entry("{}", "forward", good).0, "H225");
    assert_eq!(entry("[\"1/x\"]", "forward", good).0, "H223");
    assert_eq!(entry("[[1]]", "forward", good).0, "H226");
    let random = "[[registers]]\nname = \"pair\"\nvalue = \"random\"";
    assert_eq!(refused(random).0, "H227");
    let missing = SwitchFile::read("/nonexistent/switch.toml".as_ref()).unwrap_err();
    assert_eq!(missing.code(), "H221");
    assert!(missing.to_string().contains("/nonexistent/switch.toml"));
}

#[test]
fn other_fields_and_types_are_refused_with_their_line() {
    for (text, wanted) in [
        ("[[entires]]\ntable = \"t\"", "entires"),
        (
            "[[entries]]\ntable = \"t\"\nkeys = []\naction = \"a\"\nprio = 1",
            "prio",
        ),
        ("[[registers]]\nname = \"r\"\nvalue = -1", "negative"),
        (
            "[[registers]]\nname = \"r\"\nvalue = 1.5",
            "a number from 0",
        ),
        ("[[watches]]\nregister = \"r\"\nports = [0]", "max_age_ms"),
        ("[[entries]", "line 1"),
    ] {
        let (code, message) = refused(text);
        assert_eq!(code, "H222");
        assert!(
            message.contains(wanted) && message.contains("line "),
            "{message}"
        );
    }
}

#[test]
fn frames_are_hexadecimal() {
    assert_eq!(
        value::hexadecimal("02:00 aB\nff").unwrap(),
        [2, 0, 0xab, 0xff]
    );
    assert!(value::hexadecimal("").unwrap().is_empty());
    for text in ["0", "0g", "é0", "0x00"] {
        assert!(value::hexadecimal(text).is_err(), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}") {
        let _ = SwitchFile::parse("switch.toml".as_ref(), &text);
        let quoted = format!("[[entries]]\ntable = \"acl\"\nkeys = ['''{text}''']\naction = \"drop\"");
        let _ = apply(&quoted);
        let _ = value::hexadecimal(&text);
    }
}

/// The contents of a section `[replication]` with these lines more.
fn replication(more: &str) -> Result<stateplane_setup::Replication, SwitchFileCause> {
    let text = format!(
        "[replication]\naddress = \"10.10.0.1\"\nmac = \"02:00:00:00:a1:02\"\nport = 2\n{more}"
    );
    let file = SwitchFile::parse("switch.toml".as_ref(), &text).expect(more);
    file.replication.expect(more).get_ref().replication()
}

#[test]
fn chains_of_shards_begin_at_the_heads_in_turn() {
    let heads = "switch = 1\nshards = 3\nheads = [\
                 { address = \"10.10.0.11\", mac = \"02:00:00:00:c0:00\" }, \
                 { address = \"10.10.0.12\", mac = \"02:00:00:00:c0:01\" }]";
    let said = replication(heads).expect(heads);
    let last: Vec<u8> = said
        .chains
        .iter()
        .map(|chain| chain.head.address.octets()[3])
        .collect();
    assert_eq!(last, [11, 12, 11]);
    assert_eq!(said.chains[1].head.mac, [2, 0, 0, 0, 0xc0, 1]);
    assert_eq!((said.chains[0].epoch, said.chains[0].mtu), (1, 1500));
    assert_eq!(
        replication("switch = 1").expect("a controller's").chains,
        []
    );
}

#[test]
fn timing_of_replication_is_in_ms() {
    let timing = "switch = 1\nhold_ms = 5\nlongest_hold_ms = 160\nprobe_ms = 40\n\
                  silence_ms = 130\nlinks = [0, 1]";
    let said = replication(timing).expect(timing);
    assert_eq!((said.hold.first_us, said.hold.longest_us), (5_000, 160_000));
    assert_eq!(
        (said.probe.period_us, said.probe.silence_us),
        (40_000, 130_000)
    );
    assert_eq!(said.probe.ports, [0, 1]);
    let usual = replication("switch = 1").expect("without timing");
    assert_eq!(usual.hold, stateplane_setup::Hold::default());
}

#[test]
fn sections_of_replication_that_say_too_little_are_refused() {
    for (more, code) in [
        ("switch = 0", "H237"),
        (
            "switch = 1\nheads = [{ address = \"10.10.0.11\", mac = \"02:00:00:00:c0:00\" }]",
            "H238",
        ),
        (
            "switch = 1\nshards = 4\nheads = [{ address = \"10.10.0.11\", mac = \"0x1020000000001\" }]",
            "H236",
        ),
    ] {
        assert_eq!(replication(more).expect_err(more).code(), code);
    }
}

#[test]
fn the_section_coordination_says_number_address_and_port() {
    let parse = |text: &str| SwitchFile::parse("switch.toml".as_ref(), text);
    let file = parse("[coordination]\nswitch = 2\naddress = \"10.255.0.2\"\n").expect("whole");
    let said = file.coordination.expect("it is there");
    let said = said.get_ref().coordination().expect("it is right");
    assert_eq!((said.switch, said.port), (2, 0));
    assert_eq!(said.address, Ipv4Addr::new(10, 255, 0, 2));
    let zero = parse("[coordination]\nswitch = 0\naddress = \"10.255.0.2\"\n").expect("TOML");
    let refused = zero.coordination.expect("it is there");
    let refused = refused.get_ref().coordination().expect_err("no number");
    assert_eq!(refused.code(), "H237");
}

#[test]
fn the_section_multicast_says_address_port_and_hold_times() {
    let parse = |more: &str| {
        let head = "[multicast]\naddress = \"10.255.0.2\"\n";
        let file = SwitchFile::parse("switch.toml".as_ref(), &format!("{head}{more}"));
        let said = file.expect("TOML").multicast.expect("it is there");
        said.get_ref().multicast()
    };
    let said = parse("");
    assert_eq!((said.address, said.port), (Ipv4Addr::new(10, 255, 0, 2), 0));
    assert_eq!((said.hold.first_us, said.hold.longest_us), (2_000, 16_000));
    let said = parse("port = 3\nhold_us = 500\n");
    assert_eq!((said.port, said.hold.longest_us), (3, 4_000));
    let said = parse("hold_us = 0\nlongest_hold_us = 0\n");
    assert_eq!((said.hold.first_us, said.hold.longest_us), (1, 1));
}

#[test]
fn with_keys_no_controller_is_one_of_chains_and_of_multicast() {
    let check = |controller: &str| {
        let text = format!(
            "[chains]\nswitch = 1\nport = 0\nmtu = 1500\nservers = []\n\
             controllers = [\"10.0.0.19:4795\", \"10.0.0.20:4795\"]\n\
             [multicast]\nswitch = 1\naddress = \"10.255.0.2\"\n\
             controllers = [{controller}]\n"
        );
        let file = SwitchFile::parse("switch.toml".as_ref(), &text).expect("TOML");
        file.check_sealed()
    };
    for apart in ["", "\"10.0.0.21:4795\""] {
        assert!(check(apart).is_ok(), "{apart}");
    }
    let refused = check("\"10.0.0.21:4795\", \"10.0.0.20:4799\"").expect_err("one is in both");
    assert_eq!((refused.code(), refused.line()), ("H250", Some(7)));
    assert!(refused.to_string().contains("10.0.0.20"), "{refused}");
}

#[test]
fn payloads_leave_room_for_seals_unless_the_file_says_their_length() {
    let longest = |more: &str, sealed| {
        let head = "[multicast]\nswitch = 1\naddress = \"10.255.0.2\"\ncontrollers = [\"10.0.0.20:4795\"]\n";
        let file = SwitchFile::parse("switch.toml".as_ref(), &format!("{head}{more}"));
        let said = file.expect("TOML").multicast.expect("it is there");
        said.get_ref()
            .following(sealed)
            .expect("it follows")
            .longest
    };
    assert_eq!(
        [false, true].map(|sealed| longest("", sealed)),
        [1400, 1352]
    );
    assert_eq!(longest("longest = 1400\n", true), 1400);
}

#[test]
fn the_section_sync_says_budgets_in_megabits() {
    let parse = |more: &str| {
        let head = "[sync]\nswitch = 3\naddress = \"10.0.0.1\"\n";
        let file = SwitchFile::parse("switch.toml".as_ref(), &format!("{head}{more}"));
        let section = file.expect("TOML").sync.expect("it is there");
        section.get_ref().sync(&[])
    };
    let sync = parse("groups = [{ group = 1, budget_mbps = 8, coarsest = 0 }]").expect("right");
    assert_eq!((sync.switch, sync.turn_us), (3, None));
    let slow = parse("turn_us = 200").expect("right");
    assert_eq!(slow.turn_us, Some(200));
    let (group, rates) = sync.rates[0];
    // 8 Mb/s are a µs for each byte; losses slow it down to an eighth.
    assert_eq!((group, rates.byte_time), (1, 1 << 16));
    assert_eq!((rates.slowest_byte_time, rates.coarsest), (8 << 16, 0));
    for wrong in [
        "budget_mbps = 0",
        "budget_mbps = 524289",
        "budget_mbps = 10, least_mbps = 11",
        "window_us = 0",
        "finest = 2, coarsest = 1",
    ] {
        let refused = parse(&format!("groups = [{{ group = 1, {wrong} }}]"));
        assert_eq!(refused.expect_err(wrong).code(), "H239");
    }
}

/// A switch takes writes where its port towards the engine is sealed, or the file allows it.
#[test]
fn the_section_sync_allows_writes_at_a_sealed_port() {
    let is_read_only = |more: &str, sealed: &[Port]| {
        let text = format!("[sync]\nswitch = 3\naddress = \"10.0.0.1\"\n{more}");
        let file = SwitchFile::parse("switch.toml".as_ref(), &text).expect("TOML");
        let section = file.sync.expect("it is there");
        section.get_ref().sync(sealed).expect("right").read_only
    };
    assert!(is_read_only("", &[]) && is_read_only("", &[1, 501]));
    assert!(!is_read_only("", &[1, 500]));
    assert!(is_read_only("control_port = 501", &[1, 500]));
    assert!(!is_read_only("control_port = 501", &[501]));
    assert!(!is_read_only("unsealed_writes = true", &[]));
}
