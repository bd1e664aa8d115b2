//! Programs around what a test gives, and packets through them.

#![allow(dead_code, reason = "not every test program uses all of it")]

use num_bigint::BigUint;
use stateplane_interp::{Interp, Options};
use stateplane_runtime::{EgressInput, Engine, IngressInput, InstanceType, Preserved};

/// The includes of every program.
pub const INCLUDES: &str = "#include <core.p4>\n#include <v1model.p4>\n";

/// The blocks around a parser, an ingress and an egress that a test gives.
pub const REST: &str = "
control NoChecksum(inout headers hdr, inout metadata meta) { apply { } }
control Deparse(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(Parse(), NoChecksum(), MyIngress(), MyEgress(), NoChecksum(), Deparse()) main;
";

/// An egress that does nothing.
pub const EMPTY_EGRESS: &str = "
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { }
}
";

/// Loads a program.
pub fn compile(text: &str) -> Interp {
    let program = stateplane_compile::text(text).program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    Interp::new(program, Options::default()).expect("the program fits the target")
}

/// A program of one two-byte header `hdr.h` with `a` and `b`, whose ingress has these
/// declarations and statements.
pub fn ingress_of(declarations: &str, body: &str) -> Interp {
    compile(&format!(
        "{INCLUDES}
        header h_t {{ bit<8> a; bit<8> b; }}
        struct headers {{ h_t h; }}
        struct metadata {{ bit<8> x; bit<16> y; }}
        parser Parse(packet_in packet, out headers hdr, inout metadata meta,
                     inout standard_metadata_t std) {{
            state start {{ packet.extract(hdr.h); transition accept; }}
        }}
        control MyIngress(inout headers hdr, inout metadata meta,
                        inout standard_metadata_t std) {{
            {declarations}
            apply {{ {body} }}
        }}
        {EMPTY_EGRESS}{REST}"
    ))
}

/// A frame that left the switch.
pub struct Sent {
    pub port: u16,
    pub frame: Vec<u8>,
}

/// Sends a frame through both halves.
pub fn send(interp: &mut Interp, frame: &[u8]) -> Sent {
    let outcome = interp.ingress(&IngressInput {
        frame,
        port: 2,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now: 1_000_000,
    });
    let port = outcome.egress_spec;
    let mut out = Vec::new();
    let input = EgressInput {
        port,
        rid: 0,
        instance_type: InstanceType::Normal,
        enqueued_at: 1_000_000,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now: 1_000_010,
    };
    interp.egress(outcome.packet, &input, &mut out);
    Sent { port, frame: out }
}

/// A number of any size.
pub fn number(value: u64) -> BigUint {
    BigUint::from(value)
}
