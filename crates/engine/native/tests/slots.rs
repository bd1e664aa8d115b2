//! Workers that look for the slots of the same flows at once, and claim what they do not find: a flow has
//! one slot, by either engine.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

mod support;

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_runtime::{Fellow, Value};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

const BUCKETS: u64 = 4096;

/// Flows, so many that a tenth find their first bucket full.
const FLOWS: u64 = 10_000;

/// A program whose packets are of the flow that their time names.
fn program() -> Program {
    let declarations = format!(
        "#define REPLICATION_STATE_BITS 64\n#define REPLICATION_BUCKETS {BUCKETS}\n\
         #include <replication/slots.p4>\n\
         struct headers_t {{ }}\nstruct metadata_t {{ replication_metadata_t replication; }}\n"
    );
    let ingress = "FindSlot() find;\nClaimSlot() claim;\n\
         apply {\n\
             m.replication.key = (bit<128>)s.ingress_global_timestamp;\n\
             m.replication.now = 1;\n\
             find.apply(m.replication);\n\
             if (!m.replication.found) { claim.apply(m.replication); }\n\
             s.egress_spec = 1;\n\
         }\n";
    support::ingress_alone(&declarations, ingress)
}

/// Lets two workers pass a packet of each flow, both that of one flow at once, and looks at the slots.
fn each_flow_has_a_slot(first: impl Fellow + Send) {
    let mut engines = first.with_fellows(2);
    let reached = [0, 1].map(|_| AtomicU64::new(0));
    support::at_once(&mut engines, |worker, engine| {
        let [own, other] = [worker, 1 - worker].map(|it| &reached[it as usize]);
        for flow in 1..=FLOWS {
            own.store(flow, Ordering::SeqCst);
            while other.load(Ordering::SeqCst) < flow {
                std::thread::yield_now();
            }
            support::pass(engine, 0, flow);
        }
    });
    let mut flows = BTreeSet::new();
    for slot in 0..4 * BUCKETS {
        let Value::Bits(flow) = support::read(&engines[0], "slot_key", slot) else {
            unreachable!("keys are numbers");
        };
        let flow = u64::try_from(flow).expect("the key is a flow");
        assert!(flow == 0 || flows.insert(flow), "two slots of flow {flow}");
    }
    // Few find both of their buckets full.
    assert!(flows.len() as u64 > FLOWS * 98 / 100, "{}", flows.len());
}

#[test]
fn a_flow_that_two_workers_look_for_has_one_slot() {
    let native = Compiled::guarded(program()).expect("it loads");
    each_flow_has_a_slot(native.engine(Default::default()).expect("it loads"));
    each_flow_has_a_slot(Interp::guarded(program(), Default::default()).expect("it loads"));
}
