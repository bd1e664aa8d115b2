//! Frames of all lengths, as they come and as they come back, through machine code and the interpreter.

use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_runtime::{
    DROP_PORT, EgressInput, Engine, Forwarded, IngressInput, InstanceType, Port, Preserved,
};

/// Swaps addresses, counts down, and adds or removes a tag, or cuts frames off, by the port at which
/// they come.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
header tag_t { bit<16> number; bit<16> type; }
struct headers_t { ethernet_t ethernet; tag_t tag; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x8100: tag; default: accept; }
    }
    state tag { p.extract(hdr.tag); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = std.ingress_port ^ 1;
        bit<48> source = hdr.ethernet.source;
        hdr.ethernet.source = hdr.ethernet.destination;
        hdr.ethernet.destination = source;
        if (std.instance_type != 0) { hdr.ethernet.source = (bit<48>)std.instance_type; }
        if (std.ingress_port == 2) {
            hdr.tag.setValid();
            hdr.tag.number = 7;
            hdr.tag.type = hdr.ethernet.type;
            hdr.ethernet.type = 0x8100;
        } else if (std.ingress_port == 4 && hdr.tag.isValid()) {
            hdr.ethernet.type = hdr.tag.type;
            hdr.tag.setInvalid();
        } else if (std.ingress_port == 6) {
            truncate(40);
        } else if (std.ingress_port == 8) {
            mark_to_drop(std);
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

/// Takes a frame through ingress and egress: the port by which it leaves, if it does.
fn pass(
    engine: &mut impl Engine,
    (port, instance_type): (Port, InstanceType),
    frame: &[u8],
    out: &mut Vec<u8>,
) -> Option<Port> {
    let input = IngressInput {
        frame,
        port,
        instance_type,
        preserved: &Preserved::default(),
        now: 1_000,
    };
    let outcome = match engine.forward(&input, out) {
        Forwarded::Sent(port) => return Some(port),
        Forwarded::Done { port, outcome } => return (!outcome.dropped).then_some(port),
        Forwarded::Dropped => return None,
        Forwarded::Waits(outcome) => outcome,
    };
    if outcome.egress_spec >= DROP_PORT {
        return None;
    }
    let input = EgressInput {
        port: outcome.egress_spec,
        rid: 0,
        instance_type,
        enqueued_at: 1_000,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now: 1_000,
    };
    let left = engine.egress(outcome.packet, &input, out);
    (!left.dropped).then_some(outcome.egress_spec)
}

#[test]
fn frames_of_all_lengths_leave_alike() {
    let program = stateplane_compile::text(PROGRAM)
        .program()
        .expect("the program compiles");
    let mut native = Native::new(program.clone(), Default::default()).expect("it loads");
    let mut interp = Interp::new(program, Default::default()).expect("it loads");
    let (mut made, mut expected) = (Vec::new(), Vec::new());
    let mut left = 0;
    for length in (0..=700_usize).chain([1_500, 2_048, 9_000]) {
        for (port, tagged) in [
            (0, false),
            (0, true),
            (2, false),
            (4, true),
            (6, false),
            (8, true),
        ] {
            let mut frame: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            if let (true, Some(tag)) = (tagged, frame.get_mut(12..14)) {
                tag.copy_from_slice(&[0x81, 0]);
            }
            // A frame that comes back leaves its trace in what later ones find.
            for instance_type in [InstanceType::Normal, InstanceType::Recirculated] {
                let arrives = (port, instance_type);
                let by_machine_code = pass(&mut native, arrives, &frame, &mut made);
                let by_interpreter = pass(&mut interp, arrives, &frame, &mut expected);
                let context = format!("{length} bytes by port {port}, {instance_type:?}");
                assert_eq!(by_machine_code, by_interpreter, "{context}");
                if by_interpreter.is_some() {
                    assert_eq!(made, expected, "{context}");
                    left += 1;
                }
            }
        }
    }
    assert!(left > 7_000, "{left}");
}
