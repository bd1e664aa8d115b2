//! Action profiles and selectors as machine code.

use num_bigint::BigUint;
use stateplane_generate::{
    Arrival, Change, Outcome, Session, Update, Write, compare_program, generate,
    properties::interpreter,
};
use stateplane_native::{Native, Options};
use stateplane_runtime::{Group, Invocation, KeyMatch, Runs};

/// Sends to the port that a member names; egress reports whether there was a hit, and
/// which action was run.
fn program(implementation: &str, inputs: &str) -> String {
    format!(
        "#include <v1model.p4>
header h_t {{ bit<8> key; bit<8> flow; bit<8> seen; bit<8> hit; bit<16> next; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<2> color; }}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {implementation} held;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) rate;
    action wide(bit<9> port, bit<200> tag) {{ std.egress_spec = port; hdr.h.next = tag[199:184]; }}
    action narrow(bit<9> port) {{ std.egress_spec = port; rate.read(meta.color); }}
    table first {{
        key = {{ hdr.h.key : ternary; {inputs} }}
        actions = {{ wide; narrow; NoAction; }}
        default_action = narrow(3);
        implementation = held;
        counters = hits;
        meters = rate;
    }}
    apply {{
        std.egress_spec = 1;
        switch (first.apply().action_run) {{
            wide: {{ hdr.h.seen = 1; }}
            narrow: {{ hdr.h.seen = 2; }}
            NoAction: {{ hdr.h.seen = 3; }}
            default: {{ hdr.h.seen = 4; }}
        }}
        if (first.apply().hit) {{ hdr.h.hit = 1; }} else {{ hdr.h.hit = 0; }}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{}} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

fn invocation(action: &str, data: &[u32]) -> Invocation {
    Invocation {
        action: action.to_owned(),
        data: data.iter().map(|value| BigUint::from(*value)).collect(),
    }
}

fn member(change: Change, member: u32, action: &str, data: &[u32]) -> Write {
    Write::Held {
        change,
        profile: "I.held".to_owned(),
        member,
        action: invocation(action, data),
    }
}

fn entry(change: Change, key: u32, runs: Runs) -> Write {
    Write::Indirect {
        change,
        table: "I.first".to_owned(),
        keys: vec![KeyMatch::Mask {
            value: key.into(),
            mask: 0xff_u32.into(),
        }],
        priority: 1,
        runs,
    }
}

fn group(change: Change, number: u32, members: &[(u32, u32)]) -> Write {
    Write::Group {
        change,
        selector: "I.held".to_owned(),
        group: number,
        members: Group {
            members: members.to_vec(),
        },
    }
}

fn run(program: &str, writes: Vec<Write>, updates: Vec<Update>) -> Outcome {
    let arrivals = (0..120u8).map(|number| Arrival {
        at: u64::from(number),
        port: 0,
        frame: [number % 6, number / 6, 0, 0]
            .into_iter()
            .chain([9; 60])
            .collect(),
    });
    let session = Session {
        writes,
        updates,
        arrivals: arrivals.collect(),
        ..generate(0, 0).session
    };
    let native = |program, seed| {
        Native::new(program, Options::verified(seed)).map_err(|error| error.to_string())
    };
    match compare_program(program, &session, interpreter, native, 300) {
        Ok(outcome) => outcome,
        Err(mismatch) => panic!("{mismatch}"),
    }
}

#[test]
fn members_are_run_and_change() {
    let program = program("action_profile(8)", "");
    let writes = vec![
        member(Change::Insert, 1, "wide", &[2, 0xffff_ffff]),
        member(Change::Insert, 2, "narrow", &[4]),
        entry(Change::Insert, 0, Runs::Member(1)),
        entry(Change::Insert, 1, Runs::Member(2)),
        entry(Change::Insert, 2, Runs::Member(1)),
        // Refused by both: there is no such member.
        entry(Change::Insert, 3, Runs::Member(3)),
    ];
    let later = [
        member(Change::Modify, 1, "narrow", &[5]),
        entry(Change::Modify, 1, Runs::Member(1)),
        entry(Change::Delete, 2, Runs::Member(1)),
    ];
    let updates = (1..).zip(later).map(|(number, write)| Update {
        at: number * 30,
        write,
    });
    let outcome = run(&program, writes, updates.collect());
    assert_eq!(outcome.transmitted, 120);
}

#[test]
fn selectors_choose_alike() {
    for algorithm in ["crc16", "crc32", "csum16", "xor16", "identity", "random"] {
        let program = program(
            &format!("action_selector(HashAlgorithm.{algorithm}, 16, 16)"),
            "hdr.h.flow : selector; std.ingress_port : selector;",
        );
        let writes = vec![
            member(Change::Insert, 1, "wide", &[2, 77]),
            member(Change::Insert, 2, "narrow", &[4]),
            member(Change::Insert, 3, "NoAction", &[]),
            group(Change::Insert, 1, &[(1, 1), (2, 3), (3, 2)]),
            group(Change::Insert, 2, &[]),
            entry(Change::Insert, 0, Runs::Group(1)),
            entry(Change::Insert, 1, Runs::Group(2)),
            entry(Change::Insert, 2, Runs::Member(2)),
            entry(
                Change::Insert,
                3,
                Runs::Set(vec![
                    (invocation("narrow", &[6]), 2),
                    (invocation("wide", &[7, 1]), 1),
                ]),
            ),
            entry(Change::Insert, 4, Runs::Set(Vec::new())),
        ];
        let later = [
            group(Change::Modify, 2, &[(1, 1), (2, 1)]),
            group(Change::Modify, 1, &[(3, 65_536)]),
            member(Change::Modify, 2, "wide", &[1, 5]),
        ];
        let updates = (1..).zip(later).map(|(number, write)| Update {
            at: number * 30,
            write,
        });
        let outcome = run(&program, writes, updates.collect());
        assert_eq!(outcome.transmitted, 120, "{algorithm}");
    }
}
