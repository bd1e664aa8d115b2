//! Calls: directions, exit, results, overlapping arguments.

use super::{Bed, b8, through};
use stateplane_ir::builder::add;
use stateplane_ir::{
    Arg, Callee, Direction, Function, FunctionId, Param, Place, Projection, Stmt, Type,
};

fn call(callee: Callee, args: Vec<Arg>) -> Stmt {
    Stmt::Call {
        callee,
        args,
        result: None,
    }
}

#[test]
fn in_arguments_are_copies() {
    let mut bed = Bed::new();
    let p = bed.b.var("p", Type::Bits(8));
    let control = bed.b.control("c", &[(p, Direction::In)]);
    let change = Stmt::Assign(Place::var(p), b8(9));
    bed.b.program.controls[control.index()].body.push(change);
    let arg = Arg::In(bed.b.read(&bed.h("a")));
    bed.b
        .ingress()
        .push(call(Callee::Control(control), vec![arg]));
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [1, 2]);
}

#[test]
fn out_parameters_start_at_their_default() {
    let mut bed = Bed::new();
    let (p, q) = (bed.b.var("p", Type::Bits(8)), bed.b.var("q", Type::Bits(8)));
    let control = bed
        .b
        .control("c", &[(p, Direction::Out), (q, Direction::InOut)]);
    let body = vec![
        Stmt::Assign(Place::var(p), add(bed.b.get(p), b8(1))),
        Stmt::Assign(Place::var(q), add(bed.b.get(q), b8(1))),
    ];
    bed.b.program.controls[control.index()].body = body;
    let args = vec![Arg::Out(bed.h("a")), Arg::InOut(bed.h("b"))];
    bed.b.ingress().push(call(Callee::Control(control), args));
    let mut interp = bed.load();
    for _ in 0..2 {
        assert_eq!(through(&mut interp, &[7, 7]).0, [1, 8]);
    }
}

/// Behind the last word there is none that could be a validity.
#[test]
fn an_empty_struct_is_passed_like_any_other() {
    let mut bed = Bed::new();
    let empty = Type::Struct(bed.b.structure("empty", &[]));
    let (outside, inside) = (bed.b.var("outside", empty), bed.b.var("inside", empty));
    let control = bed.b.control("c", &[(inside, Direction::InOut)]);
    let arg = Arg::InOut(Place::var(outside));
    bed.b
        .ingress()
        .push(call(Callee::Control(control), vec![arg]));
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [1, 2]);
}

/// Spec §6.8: one place given twice is written back from left to right.
#[test]
fn overlapping_arguments_are_written_from_left_to_right() {
    let mut bed = Bed::new();
    let (p, q) = (bed.b.var("p", Type::Bits(8)), bed.b.var("q", Type::Bits(8)));
    let control = bed
        .b
        .control("c", &[(p, Direction::InOut), (q, Direction::InOut)]);
    let body = vec![
        Stmt::Assign(Place::var(p), b8(1)),
        Stmt::Assign(Place::var(q), add(bed.b.get(q), b8(1))),
    ];
    bed.b.program.controls[control.index()].body = body;
    let args = vec![Arg::InOut(bed.h("a")), Arg::InOut(bed.h("a"))];
    bed.b.ingress().push(call(Callee::Control(control), args));
    assert_eq!(through(&mut bed.load(), &[5, 7]).0, [6, 7]);
}

/// Spec §6.8: the callee works on a copy, even where the caller's own action looks at
/// the original.
#[test]
fn an_inout_argument_is_a_copy_until_the_end() {
    let mut bed = Bed::new();
    let p = bed.b.var("p", Type::Header(bed.header));
    let copy = bed.b.read(&bed.h("a"));
    let body = vec![
        Stmt::Assign(bed.b.field(p, "a"), b8(9)),
        Stmt::Assign(bed.meta("x"), copy),
    ];
    bed.b.action("act", &[], body);
    bed.b.program.actions[0].params.push(Param {
        var: p,
        direction: Direction::InOut,
    });
    let h = bed.b.field(bed.v.ingress.headers, "h");
    let stmt = call(
        Callee::Action(stateplane_ir::ActionId(0)),
        vec![Arg::InOut(h)],
    );
    bed.b.ingress().push(stmt);
    let seen = bed.b.read(&bed.meta("x"));
    bed.set(bed.h("b"), seen);
    assert_eq!(through(&mut bed.load(), &[5, 7]).0, [9, 5]);
}

/// An index is evaluated once: the copy goes back to where it came from.
#[test]
fn a_place_is_found_once() {
    let mut b = stateplane_ir::builder::Builder::new();
    let tag = b.header("tag_t", &[("id", 8)]);
    let stack = b.stack(Type::Header(tag), 2);
    let headers = b.structure("headers", &[("tags", Type::Stack(stack))]);
    let metadata = b.structure("metadata", &[("i", Type::Bits(8))]);
    let v = b.pipeline(headers, metadata);
    let mut next = b.field(v.parser.headers, "tags");
    next.path.push(Projection::Next);
    for _ in 0..2 {
        b.start()
            .body
            .push(stateplane_ir::builder::extract(next.clone()));
    }
    let (p, i) = (b.var("p", Type::Bits(8)), b.var("i", Type::Bits(8)));
    let control = b.control("c", &[(p, Direction::InOut), (i, Direction::InOut)]);
    b.program.controls[control.index()].body = vec![
        Stmt::Assign(Place::var(p), b8(9)),
        Stmt::Assign(Place::var(i), b8(1)),
    ];
    let index = b.field(v.ingress.metadata, "i");
    let mut element = b.field(v.ingress.headers, "tags");
    element
        .path
        .push(Projection::Index(Box::new(b.read(&index))));
    let element = b.member(element, "id");
    b.ingress().push(call(
        Callee::Control(control),
        vec![Arg::InOut(element), Arg::InOut(index)],
    ));
    let all = Place::var(v.deparser.headers);
    b.deparser().push(stateplane_ir::builder::emit(all));
    assert_eq!(through(&mut super::load(b), &[1, 2]).0, [9, 2]);
}

#[test]
fn exit_copies_out_on_its_way() {
    let mut bed = Bed::new();
    let (p, q) = (bed.b.var("p", Type::Bits(8)), bed.b.var("q", Type::Bits(8)));
    let inner = bed.b.control("inner", &[(p, Direction::InOut)]);
    bed.b.program.controls[inner.index()].body =
        vec![Stmt::Assign(Place::var(p), b8(4)), Stmt::Exit];
    let outer = bed.b.control("outer", &[(q, Direction::InOut)]);
    bed.b.program.controls[outer.index()].body = vec![
        call(Callee::Control(inner), vec![Arg::InOut(Place::var(q))]),
        Stmt::Assign(Place::var(q), b8(5)),
    ];
    let args = vec![Arg::InOut(bed.h("a"))];
    bed.b.ingress().push(call(Callee::Control(outer), args));
    bed.set(bed.h("b"), b8(6));
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [4, 2]);
}

#[test]
fn return_ends_its_callable_alone() {
    let mut bed = Bed::new();
    let control = bed.b.control("c", &[]);
    bed.b.program.controls[control.index()].body =
        vec![Stmt::Return, Stmt::Assign(bed.h("a"), b8(5))];
    bed.b
        .ingress()
        .push(call(Callee::Control(control), Vec::new()));
    bed.set(bed.h("b"), b8(6));
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [1, 6]);
}

#[test]
fn functions_return_a_value() {
    let mut bed = Bed::new();
    let (p, result) = (
        bed.b.var("p", Type::Bits(8)),
        bed.b.var("result", Type::Bits(8)),
    );
    let body = vec![
        Stmt::Assign(Place::var(result), add(bed.b.get(p), b8(1))),
        Stmt::Return,
        Stmt::Assign(Place::var(result), b8(0)),
    ];
    bed.b.program.functions.push(Function {
        name: "increment".to_owned(),
        params: vec![Param {
            var: p,
            direction: Direction::In,
        }],
        locals: Vec::new(),
        result: Some(result),
        body,
    });
    let stmt = Stmt::Call {
        callee: Callee::Function(FunctionId(0)),
        args: vec![Arg::In(bed.b.read(&bed.h("b")))],
        result: Some(bed.h("a")),
    };
    bed.b.ingress().push(stmt);
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [3, 2]);
}

#[test]
fn locals_of_a_callable_are_reset_at_each_call() {
    let mut bed = Bed::new();
    let local = bed.b.var("local", Type::Bits(8));
    let control = bed.b.control("c", &[]);
    bed.b.program.controls[control.index()].locals.push(local);
    let a = bed.h("a");
    let body = vec![
        Stmt::Assign(a.clone(), add(bed.b.read(&a), bed.b.get(local))),
        Stmt::Assign(Place::var(local), b8(50)),
    ];
    bed.b.program.controls[control.index()].body = body;
    for _ in 0..2 {
        bed.b
            .ingress()
            .push(call(Callee::Control(control), Vec::new()));
    }
    assert_eq!(through(&mut bed.load(), &[1, 2]).0, [1, 2]);
}

/// The deepest nesting that the verifier admits does not exhaust the stack of a thread.
#[test]
fn the_deepest_nesting_runs() {
    let mut bed = Bed::new();
    let (a, x) = (bed.h("a"), bed.meta("x"));
    let first = bed.b.program.controls.len() as u32;
    for index in 0..24 {
        let p = bed.b.var("p", Type::Bits(8));
        let control = bed.b.control("c", &[(p, Direction::InOut)]);
        let next = stateplane_ir::ControlId(first + index + 1);
        let mut body = vec![call(Callee::Control(next), vec![Arg::InOut(Place::var(p))])];
        for _ in 0..10 {
            body = vec![stateplane_ir::builder::when(
                stateplane_ir::builder::boolean(true),
                body,
            )];
        }
        bed.b.program.controls[control.index()].body = body;
    }
    let p = bed.b.var("p", Type::Bits(8));
    let last = bed.b.control("last", &[(p, Direction::InOut)]);
    let mut sum = bed.b.get(p);
    for _ in 0..200 {
        sum = add(b8(1), sum);
    }
    bed.b.program.controls[last.index()].body = vec![Stmt::Assign(Place::var(p), sum)];
    bed.b.ingress().push(call(
        Callee::Control(stateplane_ir::ControlId(first)),
        vec![Arg::InOut(a)],
    ));
    let mut wide = stateplane_ir::builder::bits(200, 0);
    for _ in 0..480 {
        let one = stateplane_ir::builder::bits(200, 1);
        wide = add(one, wide);
    }
    bed.set(x, stateplane_ir::builder::slice(wide, 7, 0));
    let copy = bed.b.read(&bed.meta("x"));
    bed.set(bed.h("b"), copy);
    assert_eq!(
        through(&mut bed.load(), &[3, 0]).0,
        [203, (480 % 256) as u8]
    );
}
