//! Packets of which few write words that live in memory, by machine code and the interpreter: no packet has
//! what an earlier one left there, and each has its own.

mod support;

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use stateplane_runtime::{EgressInput, Engine, IngressInput, InstanceType, Port, Preserved};
use stateplane_switch::MirrorSession;
use support::{Numbers, leaving, switch};

/// The bits of a frame's first byte say what becomes of it: 0: labels are extracted; 1: one is made at an
/// index that the frame gives; 2: one is pushed in egress; 3 and 4: a wide number comes back by a
/// resubmission, or a recirculation; 5: the wide number grows, and a label is popped; 6: a label is copied
/// to another; 7: the end shows the wide number. Of the third byte bits 0 and 1 clone it in ingress and in
/// egress, each with the wide number.
const PROGRAM: &str = "
    #include <core.p4>
    #include <v1model.p4>
    header kind_t { bit<8> bits; bit<8> index; bit<8> clones; }
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
            if (hdr.kind.clones[0:0] == 1 && std.instance_type == 0) {
                meta.wide = 160w3 << 140;
                clone_preserving_field_list(CloneType.I2E, 1, 1);
            }
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
            if (hdr.kind.clones[1:1] == 1 && std.instance_type == 0 && meta.round == 0) {
                meta.wide = meta.wide + (160w1 << 130);
                clone_preserving_field_list(CloneType.E2E, 1, 1);
            }
            if (hdr.kind.bits[5:5] == 1) { hdr.labels.pop_front(1); }
            if (hdr.kind.bits[7:7] == 1) { hdr.end.setValid(); hdr.end.value = meta.wide; }
        }
    }
    control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
    V1Switch(P(), C(), I(), E(), C(), D()) main;";

fn program() -> Program {
    let program = stateplane_compile::text(PROGRAM).program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

#[test]
fn no_packet_has_what_an_earlier_one_left_in_memory() {
    let program = program();
    let native = Native::new(program.clone(), Default::default()).expect("it loads");
    let interp = Interp::new(program, Default::default()).expect("it loads");
    let (mut native, mut interp) = (switch(native, 8), switch(interp, 8));
    let session = MirrorSession {
        egress_port: Some(3),
        ..MirrorSession::default()
    };
    native.set_mirror_session(1, session).expect("a port");
    interp.set_mirror_session(1, session).expect("a port");
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
        let clones = numbers.below(16) as u8;
        let mut frame = vec![bits, numbers.below(256) as u8, clones];
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
    assert!(counters.ingress_clones > 1_000 && counters.egress_clones > 1_000);
}

/// Frames that leave when all packets wait between ingress and egress.
fn after_a_wait<E: Engine>(mut engine: E, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let waiting: Vec<E::InFlight> = frames
        .iter()
        .map(|frame| {
            let input = IngressInput {
                frame,
                port: 1,
                instance_type: InstanceType::Normal,
                preserved: &Preserved::default(),
                now: 1_000,
            };
            let mut packet = engine.ingress(&input).packet;
            engine.set_aside(&mut packet);
            packet
        })
        .collect();
    let input = EgressInput {
        port: 2,
        rid: 0,
        instance_type: InstanceType::Normal,
        enqueued_at: 1_000,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now: 1_000,
    };
    let out = waiting.into_iter().map(|packet| {
        let mut out = Vec::new();
        engine.egress(packet, &input, &mut out);
        out
    });
    out.collect()
}

#[test]
fn packets_that_wait_have_each_its_own() {
    let program = program();
    let native = Native::new(program.clone(), Default::default()).expect("it loads");
    let interp = Interp::new(program, Default::default()).expect("it loads");
    let frame = |bits, index| {
        let mut frame = vec![bits, index, 0, 1, 5, 9, 0, 6, 9];
        frame.extend([0; 14]);
        frame
    };
    // One that writes nothing, then labels, nothing, a label of its own, the wide number, and its end.
    let bits = [0, 1, 0, 2, 0xa0, 0x80, 4, 0];
    let frames: Vec<_> = bits
        .into_iter()
        .zip(0..)
        .map(|(bits, at)| frame(bits, at))
        .collect();
    let expected = after_a_wait(interp, &frames);
    assert_eq!(after_a_wait(native, &frames), expected);
}
