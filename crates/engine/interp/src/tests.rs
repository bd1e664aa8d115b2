//! Tests of packets and values.

mod arithmetic;
mod calls;
mod loops;
mod pipeline;
mod random;
mod statements;
mod tables;
mod value_sets;

use crate::{Interp, Options};
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, PipelineVars, bits, emit, extract};
use stateplane_ir::{Expr, Place, Program, Stmt, StructId, Target, Transition, Type, VarId};
use stateplane_runtime::bits as words;
use stateplane_runtime::{
    EgressInput, EgressOutcome, Engine, IngressInput, IngressOutcome, InstanceType, Preserved,
};

/// A program under construction whose parser extracts one header `h` of two bytes
/// `a` and `b`, and whose deparser emits it.
pub(crate) struct Bed {
    pub(crate) b: Builder,
    pub(crate) v: PipelineVars,
    pub(crate) header: StructId,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        Bed::with_metadata(&[("x", Type::Bits(8)), ("y", Type::Bits(16))])
    }

    pub(crate) fn with_metadata(metadata: &[(&str, Type)]) -> Bed {
        let mut b = Builder::new();
        let header = b.header("h_t", &[("a", 8), ("b", 8)]);
        let headers = b.structure("headers", &[("h", Type::Header(header))]);
        let metadata = b.structure("metadata", metadata);
        let v = b.pipeline(headers, metadata);
        let parsed = b.field(v.parser.headers, "h");
        b.start().body.push(extract(parsed));
        let emitted = Place::var(v.deparser.headers);
        b.deparser().push(emit(emitted));
        Bed { b, v, header }
    }

    /// Place of a field of ingress's header.
    pub(crate) fn h(&self, field: &str) -> Place {
        self.b.field(self.v.ingress.headers, &format!("h.{field}"))
    }

    pub(crate) fn meta(&self, field: &str) -> Place {
        self.b.field(self.v.ingress.metadata, field)
    }

    pub(crate) fn standard(&self, field: &str) -> Place {
        self.b.field(self.v.ingress.standard, field)
    }

    pub(crate) fn egress_standard(&self, field: &str) -> Place {
        self.b.field(self.v.egress.standard, field)
    }

    pub(crate) fn set(&mut self, place: Place, value: Expr) {
        self.b.ingress().push(Stmt::Assign(place, value));
    }

    pub(crate) fn load(self) -> Interp {
        load(self.b)
    }
}

pub(crate) fn load(builder: Builder) -> Interp {
    let program = builder.finish().expect("the program keeps the rules");
    Interp::new(program, Options::default()).expect("the program fits the target")
}

/// Value of a variable after a packet.
pub(crate) fn value(interp: &Interp, var: VarId) -> BigUint {
    let ty = interp.code.program.vars[var.index()].ty;
    let at = interp.code.bases[var.index()];
    let size = interp.code.layout.words(ty);
    words::to_biguint(&interp.machine.words[at..at + size])
}

/// Evaluates an expression.
pub(crate) fn evaluate(expr: Expr) -> BigUint {
    let mut bed = Bed::new();
    let result = bed.b.var("result", expr.ty);
    bed.set(Place::var(result), expr);
    let mut interp = bed.load();
    ingress(&mut interp, &[1, 2]);
    value(&interp, result)
}

pub(crate) fn number(expr: Expr) -> u128 {
    words::low_word(&evaluate(expr))
}

pub(crate) type Outcome = IngressOutcome<crate::InFlight>;

pub(crate) fn ingress(interp: &mut Interp, frame: &[u8]) -> Outcome {
    ingress_with(interp, frame, &Preserved::default())
}

pub(crate) fn ingress_with(interp: &mut Interp, frame: &[u8], preserved: &Preserved) -> Outcome {
    interp.ingress(&IngressInput {
        frame,
        port: 5,
        instance_type: InstanceType::Normal,
        preserved,
        now: 1000,
    })
}

pub(crate) const EGRESS: EgressInput = EgressInput {
    port: 9,
    rid: 3,
    instance_type: InstanceType::Normal,
    enqueued_at: 1100,
    enqueue_depth: 7,
    dequeue_depth: 4,
    now: 1500,
};

/// Ingress and egress; the frame, and what egress decided.
pub(crate) fn through(
    interp: &mut Interp,
    frame: &[u8],
) -> (Vec<u8>, EgressOutcome<crate::InFlight>) {
    let outcome = ingress(interp, frame);
    let mut out = vec![0xee; 3];
    let egress = interp.egress(outcome.packet, &EGRESS, &mut out);
    (out, egress)
}

pub(crate) fn accept() -> Transition {
    Transition::To(Target::Accept)
}

pub(crate) fn b8(value: u128) -> Expr {
    bits(8, value)
}

/// A program that breaks a rule is refused.
#[test]
fn broken_programs_are_refused() {
    let mut bed = Bed::new();
    bed.set(bed.h("a"), bits(16, 1));
    let program: Program = bed.b.program;
    let error = Interp::new(program, Options::default()).unwrap_err();
    assert_eq!(error.code(), "IN001");
    assert!(error.to_string().contains("rule 5"), "{error}");
}

#[test]
fn too_big_programs_are_refused() {
    let mut bed = Bed::new();
    bed.b.register("r", Type::Bits(32), u64::MAX);
    let program = bed.b.finish().unwrap();
    let error = Interp::new(program, Options::default()).unwrap_err();
    assert_eq!(error.code(), "TG021");
}
