//! Several engines of one program at once: nothing that is counted in an atomic block is
//! lost, by either engine.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_runtime::{Engine, Fellow, IngressInput, InstanceType, Preserved, Value};

const WORKERS: u64 = 4;
const PACKETS: u64 = 20_000;

/// `count` is what ingress does; there are the registers `plain`, `other` and `wide`, and
/// the counter `packets`.
fn program(count: &str) -> Program {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         struct headers_t {{ }}\nstruct metadata_t {{ }}\n\
         register<bit<64>>(2) plain;\nregister<bit<64>>(2) other;\n\
         register<bit<128>>(2) wide;\n\
         parser P(packet_in p, out headers_t h, inout metadata_t m,\n\
                  inout standard_metadata_t s) {{ state start {{ transition accept; }} }}\n\
         control C(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             counter(1, CounterType.packets) packets;\n\
             bit<64> a; bit<64> b; bit<128> w;\n\
             apply {{ packets.count(0); {count} s.egress_spec = 1; }}\n\
         }}\n\
         control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             apply {{ }}\n\
         }}\n\
         control D(packet_out p, in headers_t h) {{ apply {{ }} }}\n\
         V1Switch(P(), C(), I(), E(), C(), D()) main;\n"
    );
    let program = stateplane_compile::text(text).program();
    program.expect("the program compiles")
}

/// Lets all workers pass their packets at once; gives the engines.
fn hammer<E: Fellow + Send>(mut first: E) -> Vec<E> {
    let mut engines: Vec<E> = (1..WORKERS)
        .map(|seed| first.fellow(seed).expect("it has fellows"))
        .collect();
    engines.insert(0, first);
    std::thread::scope(|scope| {
        for engine in &mut engines {
            scope.spawn(move || {
                let preserved = Preserved::default();
                for packet in 0..PACKETS {
                    engine.ingress(&IngressInput {
                        frame: &[0; 60],
                        port: (packet % 2) as u16,
                        instance_type: InstanceType::Normal,
                        preserved: &preserved,
                        now: packet,
                    });
                }
            });
        }
    });
    engines
}

fn read(engine: &impl Engine, register: &str, index: u64) -> Value {
    let register = engine.state().register(register).expect("it exists");
    register.read(index).expect("the element exists")
}

/// Checks `check` on both engines after they ran `count`.
fn on_both(count: &str, check: impl Fn(&dyn Fn(&str, u64) -> Value, u64)) {
    fn counted<E: Engine>(engines: &[E]) -> u64 {
        let counts = engines.iter().map(|engine| {
            let counter = engine.state().counter("packets").expect("it exists");
            counter.counts()[0].packets
        });
        counts.sum()
    }
    let interp = hammer(Interp::guarded(program(count), Default::default()).expect("it loads"));
    check(
        &|register, index| read(&interp[3], register, index),
        counted(&interp),
    );
    let native = Compiled::guarded(program(count)).expect("it loads");
    let native = hammer(native.engine(Default::default()).expect("it loads"));
    check(
        &|register, index| read(&native[3], register, index),
        counted(&native),
    );
}

#[test]
fn workers_that_hammer_one_register_in_an_atomic_block_lose_no_count() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); }";
    on_both(count, |read, counted| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(counted, WORKERS * PACKETS, "counters lose nothing either");
    });
}

#[test]
fn a_block_that_is_left_early_is_left() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); \
                 if (s.ingress_port == 1) { mark_to_drop(s); exit; } \
                 other.read(b, 0); other.write(0, b + 1); }";
    on_both(count, |read, _| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(read("other", 0), Value::from(WORKERS * PACKETS / 2));
    });
}

#[test]
fn a_block_in_which_a_packet_is_given_up_is_left() {
    let count = "@atomic { plain.read(a, 0); plain.write(0, a + 1); \
                 if (s.ingress_global_timestamp[12:0] == 0) { for (; true; ) { b = b + 1; } } \
                 other.read(b, 0); other.write(0, b + 1); }";
    let given_up = WORKERS * PACKETS.div_ceil(1 << 13);
    on_both(count, |read, _| {
        assert_eq!(read("plain", 0), Value::from(WORKERS * PACKETS));
        assert_eq!(read("other", 0), Value::from(WORKERS * PACKETS - given_up));
    });
}

#[test]
fn a_wide_element_never_tears() {
    // Both halves are always equal; a torn read would show in `other`.
    let count = "if (s.ingress_port == 0) { \
                     wide.write(0, (bit<64>)s.ingress_global_timestamp ++ \
                                   (bit<64>)s.ingress_global_timestamp); \
                 } else { \
                     wide.read(w, 0); \
                     if (w[127:64] != w[63:0]) { other.write(0, 1); } \
                 }";
    on_both(count, |read, _| {
        assert_eq!(read("other", 0), Value::from(0u64), "a read was torn");
    });
}
