use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Command {
    let script = parse("test.stf", text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(script.lines.len(), 1, "{text}");
    script.lines.into_iter().next().unwrap().command
}

fn code(text: &str) -> &'static str {
    parse("test.stf", text).expect_err(text).code()
}

fn number(value: u64) -> BigUint {
    BigUint::from(value)
}

#[test]
fn frames_and_patterns() {
    let packet = Command::Packet {
        port: 3,
        frame: vec![0, 0x1a, 0xff],
    };
    assert_eq!(one("packet 3 00 1A ff # a comment"), packet);
    assert_eq!(one("packet 3 \\\n 001a \\\n ff"), packet);
    let Command::Expect {
        port: 5,
        pattern: Some(pattern),
    } = one("expect 5 01 ** $")
    else {
        panic!()
    };
    assert_eq!(pattern.to_string(), "01**$");
    assert_eq!(
        one("expect 5"),
        Command::Expect {
            port: 5,
            pattern: None
        }
    );
    assert_eq!(one("expect_none"), Command::ExpectNone(None));
    assert_eq!(one("ignore 7"), Command::Ignore(Some(7)));
}

#[test]
fn entries() {
    let Command::Add {
        table,
        priority,
        keys,
        runs: Runs::Call(call),
        handle,
    } = one(
        "add ingress.acl 10 h.$valid$:1 h.a:0x1*  h.b:10.0.0.0/8 act(port:5, mac:02:00:00:00:00:01) = h1",
    )
    else {
        panic!()
    };
    assert_eq!((table.as_str(), priority), ("ingress.acl", Some(10)));
    assert_eq!(handle.as_deref(), Some("h1"));
    assert_eq!(
        keys[0],
        (
            "h.$valid$".to_owned(),
            Matching::Value {
                value: number(1),
                bits: None
            }
        )
    );
    assert_eq!(
        keys[1].1,
        Matching::Stars {
            value: number(0x10),
            mask: number(0xf0)
        }
    );
    assert_eq!(
        keys[2].1,
        Matching::Prefix {
            value: number(10 << 24),
            length: 8
        }
    );
    assert_eq!(call.action, "act");
    let data = [
        (Some("port".to_owned()), number(5)),
        (Some("mac".to_owned()), number(0x0200_0000_0001)),
    ];
    assert_eq!(call.data, data);

    let Command::Add {
        priority: None,
        keys,
        runs: Runs::Call(call),
        ..
    } = one("add t a:1&&&3 b:1..9 c:_ d:0b1*0 act(02:00:00:00:00:01, 7)")
    else {
        panic!()
    };
    assert_eq!(
        keys[0].1,
        Matching::Mask {
            value: number(1),
            mask: number(3)
        }
    );
    assert_eq!(
        keys[1].1,
        Matching::Range {
            low: number(1),
            high: number(9)
        }
    );
    assert_eq!(keys[2].1, Matching::Any);
    assert_eq!(
        keys[3].1,
        Matching::Stars {
            value: number(4),
            mask: number(5)
        }
    );
    assert_eq!(
        call.data,
        [(None, number(0x0200_0000_0001)), (None, number(7))]
    );

    let call = Call {
        action: "drop".to_owned(),
        data: vec![],
    };
    assert_eq!(
        one("setdefault t drop()"),
        Command::SetDefault {
            table: "t".to_owned(),
            call
        }
    );
}

#[test]
fn checks_and_sessions() {
    assert_eq!(
        one("check_counter c(3) bytes >= 70"),
        Command::CheckCounter {
            name: "c".to_owned(),
            element: Element::Number(3),
            check: Some((CounterUnit::Bytes, Comparison::AtLeast, 70)),
        }
    );
    assert_eq!(
        one("check_dropped ingress<2"),
        Command::CheckDropped {
            reason: "ingress".to_owned(),
            comparison: Comparison::Less,
            number: 2,
        }
    );
    assert_eq!(
        one("mirroring_add 16 2 hold 2000 truncate 114"),
        Command::Mirroring {
            session: 16,
            config: MirrorSession {
                egress_port: Some(2),
                multicast_group: None,
                truncate: Some(114),
                hold_us: 2000
            }
        }
    );
    assert_eq!(
        one("register_read r 2 == 0x1f"),
        Command::RegisterRead {
            name: "r".to_owned(),
            index: 2,
            value: Some(number(31))
        }
    );
    assert_eq!(
        one("mc_node_create 7 1 2"),
        Command::NodeCreate {
            rid: 7,
            ports: vec![1, 2]
        }
    );
    assert_eq!(
        one("generator 400 20 00 01"),
        Command::Generator {
            port: 400,
            period_us: 20,
            frame: vec![0, 1]
        }
    );
}

#[test]
fn directives_name_the_program() {
    let text = "# program: ../nat.p4\n# define: SMALL\n#define: BITS = 4\npacket 0 00 # program\n";
    let script = parse("x.stf", text).unwrap();
    assert_eq!(script.program.as_deref(), Some("../nat.p4"));
    let defines = [("SMALL", "1"), ("BITS", "4")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(script.defines, defines);
    assert_eq!(script.lines[0].number, 4);
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let error = parse("x.stf", "\nwait\npakcet 0 00\n").unwrap_err();
    assert_eq!(error.line, 3);
    assert!(
        error
            .to_string()
            .starts_with("x.stf:3: there is no command `pakcet`"),
        "{error}"
    );
    let error = parse("x.stf", "wait\npacket 0 00 \\\n 0g\n").unwrap_err();
    assert_eq!(error.line, 2, "a continued line is told by its first");
}

#[test]
fn each_mistake_has_its_code() {
    for (text, wanted) in [
        ("nothing", "STF001"),
        ("packet", "STF002"),
        ("add t act", "STF002"),
        ("add act()", "STF002"),
        ("add t act() more", "STF002"),
        ("setdefault t u act()", "STF002"),
        ("remove", "STF002"),
        ("register_read r 0 1", "STF002"),
        ("check_counter c == 1", "STF002"),
        ("check_counter c(1", "STF002"),
        ("meter_set_rates m 1 2:3", "STF002"),
        ("meter_set_rates m 1 2:3 4", "STF003"),
        ("add_indirect t k:1 action 3", "STF002"),
        ("group p 1 2*x", "STF003"),
        ("set_crc16_parameters 0x10000 0 0 true true", "STF003"),
        ("no_packet 1", "STF002"),
        ("mirroring_add 1 2 hold", "STF002"),
        ("mc_node_create 1", "STF002"),
        ("packet x 00", "STF003"),
        ("packet 70000 00", "STF003"),
        ("advance -1", "STF003"),
        ("add t k:*1 act()", "STF003"),
        ("add t k:1/x act()", "STF003"),
        ("packet 0 0g", "STF004"),
        ("packet 0 000", "STF005"),
        ("packet 511 00", "STF006"),
        ("register_write r 0 x", "TG019"),
        ("add t k:x act()", "TG019"),
    ] {
        assert_eq!(code(text), wanted, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,80}") {
        let _ = parse("x.stf", &text);
    }

    #[test]
    fn no_arguments_panic(
        command in prop::sample::select(&COMMANDS[..]),
        arguments in "[ a-z0-9*:,()=<>&./$x\\\\é-]{0,40}",
    ) {
        let _ = parse("x.stf", &format!("{command} {arguments}"));
    }
}

#[test]
fn scripts_include_others_with_values() {
    let included = |path: &str| {
        (path == "sessions.stf").then(|| "# a comment\nmirroring_add 1 $PORT\nwait\n".to_owned())
    };
    let text = "wait\ninclude \"sessions.stf\" PORT=7\nexpect_none";
    let script = parse_with("x.stf", text, &included).expect(text);
    let numbers: Vec<usize> = script.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [1, 2, 2, 3]);
    let Command::Mirroring { session: 1, config } = &script.lines[1].command else {
        panic!("{:?}", script.lines);
    };
    assert_eq!(config.egress_port, Some(7));
    for (text, code) in [
        ("include \"other.stf\"", "STF018"),
        ("include sessions.stf", "STF002"),
        ("include \"sessions.stf\" PORT", "STF002"),
        ("include \"sessions.stf\"", "STF003"),
    ] {
        let error = parse_with("x.stf", text, &included).expect_err(text);
        assert_eq!(error.code(), code, "{text}");
    }
    assert_eq!(parse("x.stf", text).expect_err(text).code(), "STF018");
}
