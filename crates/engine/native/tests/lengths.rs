//! Frames of all lengths, as they come and as they come back, through machine code and the interpreter.

mod support;

use stateplane_interp::Interp;
use stateplane_native::Native;
use support::{leaving, switch};

/// Swaps addresses, and by the port at which they come gives frames a tag, takes it away, cuts them off, drops
/// them, or lets them come back, which then tell it.
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
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 0 && (std.egress_port == 11 || std.egress_port == 8)) {
            recirculate_preserving_field_list(0);
        }
    }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

#[test]
fn frames_of_all_lengths_leave_alike() {
    let program = stateplane_compile::text(PROGRAM)
        .program()
        .expect("the program compiles");
    let native = Native::new(program.clone(), Default::default()).expect("it loads");
    let interp = Interp::new(program, Default::default()).expect("it loads");
    let (mut native, mut interp) = (switch(native, 12), switch(interp, 12));
    let mut count = 0;
    for length in (0..=700_usize).chain([1_500, 2_048, 9_000]) {
        // Frames by ports 10 and 9 come back, and leave or are dropped then: others find no trace of them.
        for (port, tagged) in [
            (0, false),
            (10, false),
            (0, true),
            (9, false),
            (2, false),
            (4, true),
            (6, false),
            (8, true),
        ] {
            // No two frames in turn are alike anywhere: buffers are used again.
            let bytes = (0..length).map(|at| (at * 7 + length + usize::from(port)) as u8);
            let mut frame: Vec<u8> = bytes.collect();
            if let (true, Some(tag)) = (tagged, frame.get_mut(12..14)) {
                tag.copy_from_slice(&[0x81, 0]);
            }
            let expected = leaving(&mut interp, port, &frame);
            let made = leaving(&mut native, port, &frame);
            assert_eq!(made, expected, "{length} bytes by port {port}");
            count += made.len();
        }
    }
    assert!(count > 4_000, "{count}");
}
