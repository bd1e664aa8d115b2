//! Loops: rounds, `break`, `continue`, leaving callables from within, the limit.

use super::{Bed, b8, ingress, through, value};
use num_bigint::BigUint;
use stateplane_ir::builder::{add, binary, bits, boolean, equal, when};
use stateplane_ir::{
    Action, BinaryOp, Callee, ControlId, Expr, LOOP_LIMIT, Place, Stmt, Type, VarId,
};
use stateplane_runtime::{DROP_PORT, Engine};

/// `for (var = 0; var < end; var = var + 1) body`.
fn count(bed: &mut Bed, var: VarId, end: Expr, body: Vec<Stmt>) -> Vec<Stmt> {
    let done = binary(BinaryOp::Ge, bed.b.get(var), end);
    let mut rounds = vec![when(done, vec![Stmt::Break])];
    rounds.extend(body);
    let next = add(bed.b.get(var), b8(1));
    vec![
        Stmt::Assign(Place::var(var), b8(0)),
        Stmt::Loop {
            body: rounds,
            update: vec![Stmt::Assign(Place::var(var), next)],
        },
    ]
}

/// `b = b + by`.
fn grow(bed: &Bed, by: Expr) -> Stmt {
    let sum = add(bed.b.read(&bed.h("b")), by);
    Stmt::Assign(bed.h("b"), sum)
}

#[test]
fn rounds_continue_and_break() {
    let mut bed = Bed::new();
    let i = bed.b.var("i", Type::Bits(8));
    let body = vec![
        when(equal(bed.b.get(i), b8(2)), vec![Stmt::Continue]),
        when(equal(bed.b.get(i), b8(5)), vec![Stmt::Break]),
        grow(&bed, bed.b.get(i)),
    ];
    let end = bed.b.read(&bed.h("a"));
    let stmts = count(&mut bed, i, end, body);
    bed.b.ingress().extend(stmts);
    let mut interp = bed.load();
    for (end, sum) in [(0, 0), (1, 0), (2, 1), (4, 4), (200, 8)] {
        assert_eq!(through(&mut interp, &[end, 0]).0, [end, sum]);
    }
}

#[test]
fn break_leaves_the_inner_loop_only() {
    let mut bed = Bed::new();
    let (i, j) = (bed.b.var("i", Type::Bits(8)), bed.b.var("j", Type::Bits(8)));
    let past = when(
        binary(BinaryOp::Gt, bed.b.get(j), bed.b.get(i)),
        vec![Stmt::Break],
    );
    let body = vec![past, grow(&bed, b8(1))];
    let inner = count(&mut bed, j, b8(10), body);
    let stmts = count(&mut bed, i, b8(4), inner);
    bed.b.ingress().extend(stmts);
    assert_eq!(through(&mut bed.load(), &[0, 0]).0, [0, 1 + 2 + 3 + 4]);
}

#[test]
fn return_and_exit_leave_the_loop() {
    for (end, after) in [(Stmt::Return, 1), (Stmt::Exit, 0)] {
        let mut bed = Bed::new();
        let forever = Stmt::Loop {
            body: vec![end],
            update: Vec::new(),
        };
        bed.b.program.actions.push(Action {
            name: "ingress.act".to_owned(),
            params: Vec::new(),
            locals: Vec::new(),
            body: vec![forever, Stmt::Assign(bed.h("a"), b8(7))],
            annotations: Vec::new(),
        });
        bed.b.ingress().push(Stmt::Call {
            callee: Callee::Action(stateplane_ir::ActionId(0)),
            args: Vec::new(),
            result: None,
        });
        let last = grow(&bed, b8(1));
        bed.b.ingress().push(last);
        assert_eq!(through(&mut bed.load(), &[3, 0]).0, [3, after]);
    }
}

/// Endless loops, one in the other, end with the packet; each block has rounds of its own.
#[test]
fn the_rounds_of_a_block_are_limited() {
    let mut bed = Bed::new();
    let rounds = bed.b.var("rounds", Type::Bits(32));
    let more = add(bed.b.get(rounds), bits(32, 1));
    let count = Stmt::Assign(Place::var(rounds), more);
    let inner = Stmt::Loop {
        body: vec![count.clone()],
        update: Vec::new(),
    };
    let outer = Stmt::Loop {
        body: vec![count, inner],
        update: vec![when(boolean(false), Vec::new())],
    };
    bed.b.ingress().push(outer);
    let last = grow(&bed, b8(1));
    bed.b.ingress().push(last);
    assert_eq!(bed.b.program.pipeline.ingress, ControlId(1));
    let mut interp = bed.load();
    let outcome = ingress(&mut interp, &[0, 0]);
    assert_eq!(value(&interp, rounds), BigUint::from(LOOP_LIMIT));
    assert!(interp.gave_up());
    assert_eq!(outcome.egress_spec, DROP_PORT);
}
