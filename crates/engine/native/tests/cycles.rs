//! Parsers with cycles, by machine code and the interpreter: packets that come to a cycle are parsed over
//! again by the code for all paths.

mod support;

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use stateplane_runtime::{Engine, Port};
use stateplane_switch::{Counters, Switch};
use support::{Numbers, leaving, switch};

/// Frames begin with a kind. `label` is on a cycle; before it, a wide header and the first element of the
/// stack are extracted, and metadata is written. Kind 1 has no cycle, and what follows it makes more code
/// than what follows the others, if `heavy` says so. A parser that is called has the states where there is
/// something `before` the call, if only a space.
fn program(before: &str, heavy: &str) -> Program {
    let states = "state labels {
            p.extract(hdr.wide);
            meta.count = meta.count + 3;
            p.extract(hdr.labels.next);
            transition select(hdr.labels.last.more) { 1: label; default: accept; }
        }
        state label {
            p.extract(hdr.labels.next);
            meta.count = meta.count + 1;
            transition select(hdr.labels.last.more) { 1: label; default: behind; }
        }
        state behind { p.extract(hdr.end); transition accept; }
        state plain { p.extract(hdr.end); transition accept; }";
    let start = "p.extract(hdr.kind);
        transition select(hdr.kind.number) { 1: plain; 2: labels; default: accept; }";
    let parser = if !before.is_empty() {
        format!(
            "parser Q(packet_in p, out headers_t hdr, inout meta_t meta, in bit<9> port) {{
                 state start {{ {start} }} {states}
             }}
             parser P(packet_in p, out headers_t hdr, inout meta_t meta,
                      inout standard_metadata_t std) {{
                 Q() q;
                 state start {{
                     {before}
                     q.apply(p, hdr, meta, std.ingress_port);
                     transition select(hdr.kind.number) {{ 3: third; default: accept; }}
                 }}
                 state third {{ p.extract(hdr.end); transition accept; }}
             }}"
        )
    } else {
        format!(
            "parser P(packet_in p, out headers_t hdr, inout meta_t meta,
                      inout standard_metadata_t std) {{
                 state start {{ {start} }} {states}
             }}"
        )
    };
    let text = format!(
        "#include <core.p4>
         #include <v1model.p4>
         header kind_t {{ bit<8> number; }}
         header wide_t {{ bit<200> value; }}
         header label_t {{ bit<8> more; bit<16> value; }}
         header end_t {{ bit<32> value; }}
         struct headers_t {{ kind_t kind; wide_t wide; label_t[4] labels; end_t end; }}
         struct meta_t {{ bit<8> count; bit<160> sum; }}
         {parser}
         control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
         control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
             counter(8, CounterType.packets) seen;
             apply {{
                 std.egress_spec = (bit<9>)meta.count[2:0];
                 meta.sum = meta.sum + (bit<160>)hdr.labels[1].value;
                 if (hdr.end.isValid()) {{ hdr.end.value = hdr.end.value + (bit<32>)meta.sum[15:0]; }}
                 if (hdr.kind.number == 1) {{ {heavy} }}
                 if (std.parser_error != error.NoError) {{ seen.count(7); }}
                 seen.count((bit<32>)meta.count[1:0]);
             }}
         }}
         control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
             apply {{ }}
         }}
         control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}
         V1Switch(P(), C(), I(), E(), C(), D()) main;"
    );
    let program = stateplane_compile::text(text).program();
    program.unwrap_or_else(|refused| panic!("{refused}"))
}

/// Counts of the program, and of the switch.
fn counted<E: Engine>(switch: &Switch<E>) -> (Vec<u64>, Counters) {
    let seen = &switch.engine().state().counters()[0];
    let seen = seen.counts().iter().map(|count| count.packets);
    (seen.collect(), switch.counters().clone())
}

/// Compares the engines on frames of all kinds; gives how many left.
fn compare(program: Program, frames: usize) -> usize {
    let native = Native::new(program.clone(), Default::default()).expect("it loads");
    let interp = Interp::new(program, Default::default()).expect("it loads");
    let (mut native, mut interp) = (switch(native, 8), switch(interp, 8));
    let mut numbers = Numbers(0x2545_f491);
    let mut left = 0;
    for _ in 0..frames {
        let mut frame = vec![numbers.below(4) as u8];
        if frame[0] == 2 {
            frame.extend((0..25).map(|_| numbers.below(256) as u8));
            // Up to six labels, of which the stack takes four.
            for more in (0..numbers.below(6)).rev() {
                frame.extend([u8::from(more > 0), numbers.below(256) as u8, 7]);
            }
        }
        // At times too short.
        frame.extend((0..numbers.below(40)).map(|_| numbers.below(256) as u8));
        let port = numbers.below(8) as Port;
        let expected = leaving(&mut interp, port, &frame);
        assert_eq!(leaving(&mut native, port, &frame), expected, "{frame:?}");
        left += expected.len();
    }
    assert_eq!(counted(&native), counted(&interp));
    left
}

#[test]
fn packets_that_come_to_a_cycle_are_parsed_as_if_they_came() {
    // A header that was extracted before the call is not valid behind it.
    for before in ["", " ", "p.extract(hdr.labels.next); meta.count = 1;"] {
        let left = compare(program(before, ""), 20_000);
        assert!(left > 10_000, "{left}");
    }
}

#[test]
fn paths_whose_code_is_long_leave_others_theirs() {
    let mut heavy = String::new();
    for at in 0..2_500 {
        heavy.push_str(&format!(
            "hdr.end.value = (hdr.end.value ^ {at}) + (bit<32>)std.ingress_port;\n"
        ));
    }
    let left = compare(program(" ", &heavy), 5_000);
    assert!(left > 2_500, "{left}");
}
