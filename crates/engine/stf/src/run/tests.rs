//! Scripts against a program that obeys its frames.

use super::*;
use crate::parse;
use stateplane_ir::builder::{Builder, bits};
use stateplane_ir::{CounterKind, MatchKind, Type};
use stateplane_runtime::{
    CloneRequest, EgressInput, EgressOutcome, IngressInput, IngressOutcome, KeyMatch, Preserved,
};

/// Byte 0 of a frame is the port (or, from 0x80, the group) that it goes to, byte 1
/// the session of an egress clone, byte 2 makes it recirculate for ever. Table
/// `acl` has a ternary and an exact key.
struct Obedient {
    state: TargetState,
}

impl Obedient {
    fn new() -> Self {
        let mut b = Builder::new();
        let nothing = b.structure("nothing", &[]);
        b.pipeline(nothing, nothing);
        let (port, mac) = (b.var("port", Type::Bits(9)), b.var("mac", Type::Bits(48)));
        let forward = b.action("ingress.forward", &[port, mac], vec![]);
        let drop = b.action("ingress.drop", &[], vec![]);
        let keys = vec![
            (MatchKind::Ternary, bits(8, 0)),
            (MatchKind::Exact, bits(16, 0)),
        ];
        b.table("ingress.acl", keys, &[forward, drop]);
        b.register("ingress.seen", Type::Bits(8), 4);
        let mut program = b.finish().unwrap();
        program.tables[0].keys[0].name = "h.kind".to_owned();
        program.tables[0].keys[1].name = "h.number".to_owned();
        program.counters.push(stateplane_ir::Counter {
            name: "ingress.frames".to_owned(),
            kind: CounterKind::PacketsAndBytes,
            size: 2,
            table: None,
        });
        Self {
            state: TargetState::new(&program, 1).unwrap(),
        }
    }
}

impl Engine for Obedient {
    type InFlight = Vec<u8>;

    fn ingress(&mut self, input: &IngressInput<'_>) -> IngressOutcome<Vec<u8>> {
        let target = input.frame[0];
        let seen = self.state.register_mut("seen").unwrap();
        seen.write(0, &Value::from(u64::from(target))).unwrap();
        IngressOutcome {
            packet: input.frame.to_vec(),
            egress_spec: u16::from(target),
            mcast_grp: if target >= 0x80 { u16::from(target) } else { 0 },
            clone: None,
            resubmit: None,
        }
    }

    fn parse(&mut self, input: &IngressInput<'_>) -> Vec<u8> {
        input.frame.to_vec()
    }

    fn restore(&mut self, packet: &mut Vec<u8>, _: &Preserved) {
        packet[1] = 0;
    }

    fn truncate(&mut self, packet: &mut Vec<u8>, bytes: u32) {
        packet.truncate(bytes as usize);
    }

    fn egress(
        &mut self,
        packet: Vec<u8>,
        _: &EgressInput,
        frame: &mut Vec<u8>,
    ) -> EgressOutcome<Vec<u8>> {
        frame.clear();
        frame.extend_from_slice(&packet);
        let session = u32::from(packet[1]);
        let request = CloneRequest {
            session,
            preserved: Preserved::default(),
        };
        EgressOutcome {
            dropped: false,
            recirculate: (packet[2] != 0).then(Preserved::default),
            clone: (session != 0).then_some((request, packet)),
        }
    }

    fn length(&self, packet: &Vec<u8>) -> usize {
        packet.len()
    }

    fn state(&self) -> &TargetState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut TargetState {
        &mut self.state
    }
}

fn outcome(text: &str) -> Result<Switch<Obedient>, StfError> {
    run(
        &parse("test.stf", text).unwrap_or_else(|error| panic!("{error}")),
        Obedient::new(),
    )
}

fn passes(text: &str) -> Switch<Obedient> {
    outcome(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Code and line of the error.
fn fails(text: &str) -> (&'static str, usize) {
    let error = outcome(text).err().expect(text);
    (error.code(), error.line)
}

const FRAME: &str = "000000 000000 000000 000000 0000 ";

#[test]
fn frames_that_are_expected_pass() {
    passes(
        "packet 0 030000 000000 000000 000000 0000 aabb
         packet 0 020000 000000 000000 000000 0000
         expect 2
         expect 3 030000000000 0000 000000 000000 a*b* $
         expect_none
         wait",
    );
}

#[test]
fn frames_that_differ_or_are_missing_fail_at_their_line() {
    let error = outcome("packet 0 03000000000000000000000000aa\n\nexpect 3 03000100")
        .err()
        .unwrap();
    assert_eq!((error.code(), error.line), ("STF012", 3));
    let text = error.to_string();
    assert!(text.contains("line 1 caused it"), "{text}");
    assert!(text.ends_with("^"), "{text}");
    assert_eq!(fails("expect 3"), ("STF011", 1));
    let error = outcome(&format!("packet 5 {FRAME}\nexpect 3\n"))
        .err()
        .unwrap();
    assert!(error.to_string().contains("sent by 0"), "{error}");
}

#[test]
fn frames_that_nobody_expects_fail() {
    assert_eq!(
        fails(&format!("wait\npacket 5 {FRAME}\nwait")),
        ("STF013", 2)
    );
    assert_eq!(
        fails(&format!("packet 5 {FRAME}\nexpect_none")),
        ("STF013", 2)
    );
    passes(&format!("packet 5 {FRAME}\nexpect_none 1\nignore 0"));
    assert_eq!(fails(&format!("packet 5 {FRAME}\nignore 1")), ("STF013", 1));
}

#[test]
fn time_passes_only_when_it_is_told_to() {
    passes(
        "mirroring_add 7 4 truncate 16 hold 500
         packet 0 030700 000000 000000 000000 0000 aabbccdd
         expect 3
         advance 499
         expect_none
         advance 1
         expect 4 030000 000000 000000 000000 0000 aabb $",
    );
    let switch = passes(
        "generator 9 100 0000000000000000000000000000\nexpect 0\nadvance 350\nexpect 0\nexpect 0\nexpect 0",
    );
    assert_eq!(switch.counters().generated, 4);
}

#[test]
fn time_does_not_advance_past_too_much() {
    let quick = "generator 9 1 0000000000000000000000000000\n";
    assert_eq!(
        fails(&format!("{quick}advance 18446744073709551615")),
        ("STF017", 2)
    );
    // All of a script together.
    let waits = "wait\n".repeat(30);
    assert_eq!(fails(&format!("{quick}{waits}")).0, "STF017");
    // Without a generator there is nothing to do.
    passes("advance 18446744073709551615\nadvance 1");
}

#[test]
fn groups_copy() {
    passes(
        "mc_mgrp_create 128
         mc_node_create 1 5 6
         mc_node_create 2 7
         mc_node_associate 128 0
         mc_node_associate 128 1
         packet 0 800000 000000 000000 000000 0000
         expect 5
         expect 6
         expect 7",
    );
    assert_eq!(
        fails("mc_mgrp_create 1\nmc_node_associate 1 0"),
        ("STF010", 2)
    );
    assert_eq!(
        fails("mc_node_create 1 1\nmc_node_associate 1 0"),
        ("SW009", 2)
    );
}

#[test]
fn entries_reach_their_table() {
    let switch = passes(
        "add acl 7 h.kind:0x1* number:0x0102 forward(mac:02:00:00:00:00:01, port:3) = handle
         add ingress.acl h.number:5 ingress.drop()
         setdefault acl forward(4, 0x10)",
    );
    let table = switch.engine().state().table("acl").unwrap();
    let entries = table.entries();
    assert_eq!(
        (entries[0].entry.priority, entries[1].entry.priority),
        (8, 1)
    );
    let data = [BigUint::from(3u32), BigUint::from(0x0200_0000_0001_u64)];
    assert_eq!(entries[0].entry.data, data);
    assert_eq!(
        entries[1].entry.keys[1],
        KeyMatch::Exact(BigUint::from(5u32))
    );
    assert_eq!(table.default_action().0, "ingress.forward");
    let switch = passes("add acl h.number:5 drop()\nremove all");
    assert!(switch.engine().state().table("acl").unwrap().is_empty());
}

#[test]
fn entries_that_do_not_fit_fail() {
    for (text, code) in [
        ("add alc h.number:5 drop()", "TG001"),
        ("add acl h.number:5 dorp()", "TG003"),
        ("add acl h.number:_ drop()", "TG006"),
        ("add acl h.numbre:5 drop()", "STF007"),
        ("add acl h.number:5 forward(prot:3, mac:1)", "STF007"),
        ("add acl h.number:5 forward(port:3)", "STF008"),
        ("add acl h.number:5 forward(3)", "TG011"),
        ("add acl h.number:5 forward(512, 1)", "TG007"),
    ] {
        assert_eq!(fails(text).0, code, "{text}");
    }
}

#[test]
fn registers_and_counters_are_compared() {
    passes(
        "# shortest: 14
         register_write seen 2 0x1f
         register_read seen 2 == 31
         register_read seen 3
         packet 0 010000 000000 000000 000000 0000
         expect 1
         register_read ingress.seen 0 == 1
         register_reset seen
         register_read seen 2 == 0
         check_counter frames(1) == 0
         check_counter frames(1) bytes < 1
         packet 0 00
         check_dropped runt == 1",
    );
    assert_eq!(fails("register_read seen 0 == 1"), ("STF014", 1));
    assert_eq!(fails("register_read seen 4"), ("TG017", 1));
    assert_eq!(fails("check_counter frames(0) > 0"), ("STF014", 1));
    assert_eq!(fails("check_dropped runt > 0"), ("STF014", 1));
    assert_eq!(fails("check_dropped rant > 0"), ("STF009", 1));
}

#[test]
fn a_program_that_never_rests_fails() {
    assert_eq!(
        fails("packet 0 000001 000000 000000 000000 0000"),
        ("STF015", 1)
    );
}
