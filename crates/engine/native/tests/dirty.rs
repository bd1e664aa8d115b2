//! Packets of which few write words that live in memory, by machine code and the interpreter: no packet has
//! what an earlier one left there, and each has its own.

mod support;

use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_runtime::Port;
use support::{Numbers, leaving, switch};

/// The bits of a frame's first byte say what becomes of it: 0: labels are extracted; 1: one is made at an
/// index that the frame gives; 2: one is pushed in egress; 3 and 4: a wide number comes back by a
/// resubmission, or a recirculation; 5: the wide number grows, and a label is popped; 6: a label is copied
/// to another; 7: the end shows the wide number.
const PROGRAM: &str = "
    #include <core.p4>
    #include <v1model.p4>
    header kind_t { bit<8> bits; bit<8> index; }
    header label_t { bit<8> more; bit<16> value; }
    header end_t { bit<160> value; }
    struct headers_t { kind_t kind; label_t[4] labels; end_t end; }
    struct meta_t { @field_list(1) bit<160> wide; @field_list(1) bit<8> round; }
    parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
        state start {
            p.extract(hdr.kind);
            transition select(hdr.kind.bits[0:0]) { 1: label; default: accept; }
        }
        state label {
            p.extract(hdr.labels.next);
            transition select(hdr.labels.last.more) { 1: label; default: accept; }
        }
    }
    control C(inout headers_t hdr, inout meta_t meta) { apply { } }
    control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
        apply {
            bit<8> bits = hdr.kind.bits;
            std.egress_spec = (bit<9>)hdr.kind.index[2:0];
            if (bits[1:1] == 1) {
                hdr.labels[(bit<32>)hdr.kind.index[1:0]].setValid();
                hdr.labels[(bit<32>)hdr.kind.index[1:0]].value = 16w7 + (bit<16>)hdr.kind.index;
            }
            if (bits[3:3] == 1 && std.instance_type == 0) {
                meta.wide = 160w1 << 150 | (bit<160>)hdr.kind.index;
                resubmit_preserving_field_list(1);
            }
            if (bits[5:5] == 1) { meta.wide = meta.wide + 9; }
            if (bits[6:6] == 1) { hdr.labels[3] = hdr.labels[0]; }
            if (bits[7:7] == 1 && bits[3:3] == 1) { hdr.end.setValid(); hdr.end.value = meta.wide; }
        }
    }
    control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
        apply {
            if (hdr.kind.bits[2:2] == 1) {
                hdr.labels.push_front(1);
                hdr.labels[0].setValid();
                hdr.labels[0].more = 1;
            }
            if (hdr.kind.bits[4:4] == 1 && meta.round == 0) {
                meta.round = 1;
                meta.wide = meta.wide + 5;
                recirculate_preserving_field_list(1);
            }
            if (hdr.kind.bits[5:5] == 1) { hdr.labels.pop_front(1); }
            if (hdr.kind.bits[7:7] == 1) { hdr.end.setValid(); hdr.end.value = meta.wide; }
        }
    }
    control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
    V1Switch(P(), C(), I(), E(), C(), D()) main;";

#[test]
fn no_packet_has_what_an_earlier_one_left_in_memory() {
    let program = stateplane_compile::text(PROGRAM).program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    let native = Native::new(program.clone(), Default::default()).expect("it loads");
    let interp = Interp::new(program, Default::default()).expect("it loads");
    let (mut native, mut interp) = (switch(native, 8), switch(interp, 8));
    let mut numbers = Numbers(0x51ed_270b);
    let mut left = 0;
    for _ in 0..40_000 {
        // Half of them write nothing, most others by one or two of the ways.
        let mut bits = 0;
        for _ in 0..numbers.below(4) {
            bits |= 1_u8 << numbers.below(8);
        }
        if numbers.below(2) == 0 {
            bits &= 0x80;
        }
        let mut frame = vec![bits, numbers.below(256) as u8];
        for more in (0..numbers.below(4)).rev() {
            frame.extend([u8::from(more > 0), numbers.below(256) as u8, 9]);
        }
        frame.extend([0; 14]);
        let port = numbers.below(8) as Port;
        let expected = leaving(&mut interp, port, &frame);
        assert_eq!(leaving(&mut native, port, &frame), expected, "{frame:?}");
        left += expected.len();
    }
    assert!(left > 30_000, "{left}");
    let counters = native.counters();
    assert_eq!(counters, interp.counters());
    assert!(counters.resubmitted > 1_000 && counters.recirculated > 1_000);
}
