//! Both engines on generated programs and packets.

use stateplane_generate::{Arrival, Outcome, compare_program, generate, properties::interpreter};
use stateplane_native::{Native, Options};

/// Comparisons spent on making a difference small.
const ATTEMPTS: usize = 2000;

#[test]
fn generated_programs_show_no_difference() {
    let native =
        |program, seed| Native::new(program, Options { seed }).map_err(|error| error.to_string());
    let mut total = Outcome::default();
    for seed in 0..25 {
        let generated = generate(seed, 60);
        let (program, session) = (&generated.program, &generated.session);
        match compare_program(program, session, interpreter, native, ATTEMPTS) {
            Ok(outcome) => total += outcome,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    assert!(total.transmitted > 500, "{total:?}");
}

/// Its fields are zeros, wherever the engine reads them from.
#[test]
fn a_header_that_no_state_extracts_is_emitted_as_zeros() {
    let program = "#include <v1model.p4>
header h_t { bit<64> a; bit<64> b; bit<64> c; bit<64> d; bit<64> e; bit<4> f; bit<60> g; }
struct headers_t { h_t h; }
struct meta_t {}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { hdr.h.setValid(); }
}
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";
    let mut session = generate(0, 0).session;
    session.writes.clear();
    session.arrivals = vec![Arrival {
        at: 0,
        port: 0,
        frame: vec![0xff; 64],
    }];
    let native =
        |program, seed| Native::new(program, Options { seed }).map_err(|error| error.to_string());
    match compare_program(program, &session, interpreter, native, 0) {
        Ok(outcome) => assert_eq!(outcome.transmitted_bytes, 64 + 48),
        Err(mismatch) => panic!("{mismatch}"),
    }
}
