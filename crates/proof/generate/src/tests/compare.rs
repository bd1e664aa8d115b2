use super::faulty::{Fault, faulty, interp};
use crate::{Arrival, Change, LIMITS, Mismatch, Outcome, Session, Write, compare_program};
use stateplane_runtime::{Entry, KeyMatch};
use stateplane_switch::SwitchConfig;

const PROGRAM: &str = r"
#include <v1model.p4>

header tag_t { bit<8> kind; bit<8> count; bit<96> rest; }
struct headers_t { tag_t tag; tag_t unused; }
struct meta_t { bit<8> seen; bit<32> other; }

parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.tag); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<8>>(4) seen;
    action send(bit<9> port) { std.egress_spec = port; }
    action nothing() {}
    table ports {
        key = { hdr.tag.kind : exact; }
        actions = { send; nothing; }
        default_action = nothing();
    }
    apply {
        if (hdr.tag.kind > 3) { meta.other = 8; } else { meta.other = 9; }
        seen.read(meta.seen, (bit<32>)hdr.tag.kind);
        meta.seen = meta.seen + 1;
        seen.write((bit<32>)hdr.tag.kind, meta.seen);
        ports.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { if (hdr.tag.kind == 2) { mark_to_drop(std); } meta.other = 3; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn session() -> Session {
    let entry = |kind: u32, port: u32| Write::Entry {
        change: Change::Insert,
        table: "ports".to_owned(),
        entry: Entry {
            keys: vec![KeyMatch::Exact(kind.into())],
            priority: 0,
            action: "send".to_owned(),
            data: vec![port.into()],
        },
    };
    let arrival = |number: u8| Arrival {
        at: 1000 + u64::from(number),
        port: 1,
        frame: (0..60)
            .map(|at| match at {
                0 => number % 4,
                1 => number,
                _ => at ^ number,
            })
            .collect(),
    };
    Session {
        seed: 1,
        config: SwitchConfig {
            ports: vec![0, 1, 2],
            limits: LIMITS,
            ..SwitchConfig::default()
        },
        writes: vec![entry(1, 2), entry(3, 7), entry(1, 1), entry(9, 0)],
        updates: Vec::new(),
        arrivals: (0..20).map(arrival).collect(),
    }
}

fn run(fault: Fault, program: &str) -> Result<Outcome, Box<Mismatch>> {
    compare_program(program, &session(), interp, faulty(fault), 3000)
}

#[test]
fn equal_engines_show_no_difference() {
    let outcome = run(Fault::None, PROGRAM).unwrap();
    assert_eq!(outcome.received, 20);
    // Those of kind 2 are dropped, those of kind 3 go to a port that is none.
    assert_eq!(outcome.transmitted, 10);
    assert_eq!(outcome.transmitted_bytes, 600);
}

#[test]
fn a_wrong_frame_is_found_and_the_rest_left_out() {
    let mismatch = run(Fault::Frame, PROGRAM).unwrap_err();
    assert_eq!(mismatch.session.arrivals.len(), 1, "{mismatch}");
    let frame = &mismatch.session.arrivals[0].frame;
    assert_eq!(frame.len(), 14, "{mismatch}");
    assert_eq!(frame[1], 5, "{mismatch}");
    assert!(!mismatch.program.contains("table"), "{mismatch}");
    assert!(!mismatch.program.contains("register"), "{mismatch}");
    assert!(mismatch.program.len() < 700, "{mismatch}");
    assert!(
        mismatch.difference.what.contains("next frame sent"),
        "{mismatch}"
    );
}

#[test]
fn a_wrong_register_is_found() {
    let mismatch = run(Fault::Register, PROGRAM).unwrap_err();
    assert_eq!(mismatch.session.arrivals.len(), 1, "{mismatch}");
    assert!(mismatch.session.writes.is_empty(), "{mismatch}");
    assert!(mismatch.program.contains("seen . write"), "{mismatch}");
    assert!(!mismatch.program.contains("seen . read"), "{mismatch}");
    assert!(
        mismatch.difference.what.contains("register I.seen[0]"),
        "{mismatch}"
    );
}

#[test]
fn a_wrong_drop_is_found() {
    let mismatch = run(Fault::Drop, PROGRAM).unwrap_err();
    assert!(mismatch.program.contains("mark_to_drop"), "{mismatch}");
    assert!(!mismatch.program.contains("register"), "{mismatch}");
}

#[test]
fn a_panic_is_a_difference() {
    let mismatch = run(Fault::Panic, PROGRAM).unwrap_err();
    assert_eq!(mismatch.difference.what, "panic: the engine is down");
    assert_eq!(mismatch.session.arrivals[0].frame[1], 5, "{mismatch}");
}

#[test]
fn a_program_that_is_refused_is_a_mismatch() {
    let mismatch = run(Fault::None, "header h { bit<8> a; }").unwrap_err();
    assert!(
        mismatch.difference.what.contains("E1604"),
        "{}",
        mismatch.difference
    );
}
