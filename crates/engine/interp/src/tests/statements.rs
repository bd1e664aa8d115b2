//! Assignments, headers, stacks, unions, control flow.

use super::{Bed, b8, ingress, load, through, value};
use num_bigint::BigUint;
use stateplane_ir::builder::{add, big_bits, bits, boolean, emit, equal, extract, is_valid, when};
use stateplane_ir::{Expr, ExprKind, Place, Projection, Stmt, Target, Transition, Type};

fn sliced(mut place: Place, hi: u32, lo: u32) -> Place {
    place.path.push(Projection::Slice { hi, lo });
    place
}

#[test]
fn fields_and_slices_of_fields() {
    let mut bed = Bed::new();
    let sum = add(bed.b.read(&bed.h("a")), bed.b.read(&bed.h("b")));
    bed.set(bed.h("a"), sum);
    bed.set(sliced(bed.h("b"), 6, 3), bits(4, 0b1010));
    let mut interp = bed.load();
    let (frame, _) = through(&mut interp, &[0xf0, 0x20, 7, 8]);
    assert_eq!(frame, [0x10, 0b0101_0000, 7, 8]);
}

#[test]
fn slices_of_wide_values() {
    let mut bed = Bed::new();
    let wide = bed.b.var("wide", Type::Bits(300));
    let copy = bed.b.var("copy", Type::Bits(200));
    let low = bed.b.var("low", Type::Bits(20));
    bed.set(sliced(Place::var(wide), 139, 120), bits(20, 0xabcde));
    bed.set(sliced(Place::var(wide), 299, 299), bits(1, 1));
    let read = bed.b.read(&sliced(Place::var(wide), 299, 100));
    bed.set(Place::var(copy), read);
    let read = bed.b.read(&sliced(Place::var(wide), 139, 120));
    bed.set(Place::var(low), read);
    let back = bed.b.get(copy);
    bed.set(sliced(Place::var(wide), 199, 0), back);
    let mut interp = bed.load();
    ingress(&mut interp, &[0, 0]);
    let one = BigUint::from(1u32);
    let middle = BigUint::from(0xabcdeu32);
    assert_eq!(value(&interp, copy), (&one << 199u32) | (&middle << 20u32));
    assert_eq!(value(&interp, low), middle);
    let expected = (&one << 299u32) | (&one << 199u32) | (&middle << 20u32);
    assert_eq!(value(&interp, wide), expected);
}

#[test]
fn variables_start_anew_with_each_packet() {
    let mut bed = Bed::new();
    let local = bed.b.var("local", Type::Bits(8));
    bed.b.program.controls[1].locals.push(local);
    let sum = add(bed.b.get(local), bed.b.read(&bed.meta("x")));
    bed.set(bed.h("b"), sum);
    bed.set(Place::var(local), b8(9));
    bed.set(bed.meta("x"), b8(9));
    let mut interp = bed.load();
    for _ in 0..2 {
        assert_eq!(through(&mut interp, &[1, 2]).0, [1, 0]);
    }
}

#[test]
fn validity() {
    let mut bed = Bed::new();
    let h = bed.b.field(bed.v.ingress.headers, "h");
    let was = bed.b.var("was", Type::Bool);
    let is = bed.b.var("is", Type::Bool);
    bed.set(Place::var(was), is_valid(h.clone()));
    bed.b.ingress().push(Stmt::SetInvalid(h.clone()));
    bed.set(Place::var(is), is_valid(h.clone()));
    let sum = add(bed.b.read(&bed.h("a")), b8(1));
    bed.set(bed.h("a"), sum);
    let again = equal(bed.b.read(&bed.h("a")), b8(6));
    bed.b.ingress().push(when(again, vec![Stmt::SetValid(h)]));
    let mut interp = bed.load();
    assert_eq!(
        through(&mut interp, &[1, 2, 3]).0,
        [3],
        "invalid is not emitted"
    );
    assert_eq!(value(&interp, was), BigUint::from(1u32));
    assert_eq!(value(&interp, is), BigUint::from(0u32));
    assert_eq!(
        through(&mut interp, &[5, 2, 3]).0,
        [6, 2, 3],
        "fields keep their bits"
    );
}

#[test]
fn equality_of_headers() {
    let mut bed = Bed::new();
    let ty = Type::Header(bed.header);
    let other = bed.b.var("other", ty);
    let third = bed.b.var("third", ty);
    let results: Vec<_> = (0..4)
        .map(|n| bed.b.var(&format!("r{n}"), Type::Bool))
        .collect();
    let h = bed.b.field(bed.v.ingress.headers, "h");
    let compare =
        |bed: &Bed, left: &Place, right: &Place| equal(bed.b.read(left), bed.b.read(right));
    let (o, t) = (Place::var(other), Place::var(third));
    bed.b.program.controls[1].locals.extend([other, third]);
    // Invalid ones are equal whatever their fields hold.
    bed.set(bed.b.field(third, "a"), b8(77));
    let expr = compare(&bed, &o, &t);
    bed.set(Place::var(results[0]), expr);
    let expr = compare(&bed, &h, &o);
    bed.set(Place::var(results[1]), expr);
    let record = Expr {
        kind: ExprKind::Record(vec![b8(1), b8(2)]),
        ty,
    };
    bed.set(o.clone(), record);
    let expr = compare(&bed, &h, &o);
    bed.set(Place::var(results[2]), expr);
    bed.set(bed.b.field(other, "b"), b8(3));
    let expr = compare(&bed, &h, &o);
    bed.set(Place::var(results[3]), expr);
    let mut interp = bed.load();
    ingress(&mut interp, &[1, 2]);
    let found: Vec<_> = results
        .iter()
        .map(|&var| value(&interp, var) == BigUint::from(1u32))
        .collect();
    assert_eq!(found, [true, false, true, false]);
}

#[test]
fn records_are_read_before_they_are_written() {
    let mut bed = Bed::with_metadata(&[]);
    let pair = bed.b.structure(
        "pair",
        &[("first", Type::Bits(8)), ("second", Type::Bits(200))],
    );
    let var = bed.b.var("pair", Type::Struct(pair));
    let result = bed.b.var("first", Type::Bits(8));
    bed.set(bed.b.field(var, "first"), b8(1));
    bed.set(
        bed.b.field(var, "second"),
        big_bits(200, BigUint::from(2u32)),
    );
    let first = bed.b.read(&bed.b.field(var, "first"));
    let second = bed.b.read(&bed.b.field(var, "second"));
    let swapped = Expr {
        kind: ExprKind::Record(vec![
            stateplane_ir::builder::cast(Type::Bits(8), second),
            stateplane_ir::builder::cast(Type::Bits(200), first),
        ]),
        ty: Type::Struct(pair),
    };
    bed.set(Place::var(var), swapped);
    let second = bed.b.read(&bed.b.field(var, "second"));
    bed.set(
        Place::var(result),
        stateplane_ir::builder::cast(Type::Bits(8), second),
    );
    let mut interp = bed.load();
    ingress(&mut interp, &[0, 0]);
    assert_eq!(value(&interp, result), BigUint::from(1u32));
}

#[test]
fn switch_takes_the_first_case_that_fits() {
    let mut bed = Bed::new();
    let cases = vec![
        (
            vec![BigUint::from(1u32), BigUint::from(2u32)],
            vec![Stmt::Assign(bed.h("b"), b8(10))],
        ),
        (
            vec![BigUint::from(3u32)],
            vec![Stmt::Assign(bed.h("b"), b8(20))],
        ),
    ];
    let switch = Stmt::Switch {
        value: bed.b.read(&bed.h("a")),
        cases,
        default: vec![Stmt::Assign(bed.h("b"), b8(30))],
    };
    bed.b.ingress().push(switch);
    let mut interp = bed.load();
    for (a, b) in [(1, 10), (2, 10), (3, 20), (4, 30)] {
        assert_eq!(through(&mut interp, &[a, 0]).0, [a, b]);
    }
}

#[test]
fn exit_and_return_end_ingress() {
    for end in [Stmt::Exit, Stmt::Return] {
        let mut bed = Bed::new();
        let leave = when(
            equal(bed.b.read(&bed.h("a")), b8(1)),
            vec![Stmt::Block(vec![Stmt::Atomic(vec![end])])],
        );
        bed.b.ingress().push(leave);
        bed.set(bed.h("b"), b8(9));
        let mut interp = bed.load();
        assert_eq!(through(&mut interp, &[1, 2]).0, [1, 2]);
        assert_eq!(through(&mut interp, &[3, 2]).0, [3, 9]);
    }
}

/// A parser that extracts into `tags.next` until a tag's first bit is 0.
fn stack_bed() -> (
    stateplane_ir::builder::Builder,
    stateplane_ir::builder::PipelineVars,
) {
    let mut b = stateplane_ir::builder::Builder::new();
    let tag = b.header("tag_t", &[("more", 1), ("id", 7)]);
    let stack = b.stack(Type::Header(tag), 3);
    let headers = b.structure("headers", &[("tags", Type::Stack(stack))]);
    let metadata = b.structure("metadata", &[]);
    let v = b.pipeline(headers, metadata);
    let tags = b.field(v.parser.headers, "tags");
    let step = |last: Projection| {
        let mut place = tags.clone();
        place.path.push(last);
        place
    };
    let more = b.read(&b.member(step(Projection::Last), "more"));
    b.start().body.push(extract(step(Projection::Next)));
    b.start().transition = Transition::Select {
        keys: vec![more],
        cases: vec![
            (
                vec![stateplane_ir::KeySet::Exact(BigUint::from(1u32))],
                Target::State(stateplane_ir::StateId(0)),
            ),
            (vec![stateplane_ir::KeySet::Any], Target::Accept),
        ],
    };
    let all = Place::var(v.deparser.headers);
    b.deparser().push(emit(all));
    (b, v)
}

#[test]
fn stacks_fill_and_overflow() {
    let (mut b, v) = stack_bed();
    let error = b.var("error", Type::Error);
    let last = b.var("last", Type::Bits(32));
    let read = b.read(&b.field(v.ingress.standard, "parser_error"));
    b.ingress().push(Stmt::Assign(Place::var(error), read));
    let last_index = Expr {
        kind: ExprKind::LastIndex(b.field(v.ingress.headers, "tags")),
        ty: Type::Bits(32),
    };
    b.ingress().push(Stmt::Assign(Place::var(last), last_index));
    let mut interp = load(b);
    let frame = [0x81, 0x02, 0x7f];
    assert_eq!(through(&mut interp, &frame).0, frame);
    assert_eq!(value(&interp, last), BigUint::from(1u32));
    assert_eq!(value(&interp, error), BigUint::from(0u32));
    let frame = [0x81, 0x82, 0x83, 0x84, 0x05];
    assert_eq!(through(&mut interp, &frame).0, frame);
    assert_eq!(
        value(&interp, error),
        BigUint::from(3u32),
        "StackOutOfBounds"
    );
    assert_eq!(interp.machine.state.events.parser_errors[3], 1);
}

#[test]
fn stacks_shift() {
    for (count, push, expected) in [
        (1, true, &[0x81, 0x02, 0x7f][..]),
        (1, false, &[0x02, 0x7f]),
        (2, false, &[0x7f]),
        (3, true, &[0x7f]),
        (9, false, &[0x7f]),
        (0, true, &[0x81, 0x02, 0x7f]),
    ] {
        let (mut b, v) = stack_bed();
        let tags = b.field(v.ingress.headers, "tags");
        let next = b.var("last", Type::Bits(32));
        let stmt = if push {
            Stmt::PushFront(tags.clone(), count)
        } else {
            Stmt::PopFront(tags.clone(), count)
        };
        b.ingress().push(stmt);
        let last = Expr {
            kind: ExprKind::LastIndex(tags),
            ty: Type::Bits(32),
        };
        b.ingress().push(Stmt::Assign(Place::var(next), last));
        let mut interp = load(b);
        assert_eq!(through(&mut interp, &[0x81, 0x02, 0x7f]).0, expected);
        let left = if push {
            (2 + count).min(3)
        } else {
            2u32.saturating_sub(count)
        };
        assert_eq!(
            value(&interp, next),
            BigUint::from(left.wrapping_sub(1)),
            "{count} {push}"
        );
    }
}

#[test]
fn indices_past_the_end() {
    let (mut b, v) = stack_bed();
    let (first, past) = (b.var("first", Type::Bits(7)), b.var("past", Type::Bits(7)));
    let element = |b: &stateplane_ir::builder::Builder, index: u128| {
        let mut place = b.field(v.ingress.headers, "tags");
        place
            .path
            .push(Projection::Index(Box::new(bits(32, index))));
        b.member(place, "id")
    };
    let (one, nine) = (element(&b, 1), element(&b, 9));
    let read = b.read(&one);
    b.ingress().push(Stmt::Assign(Place::var(first), read));
    let read = b.read(&nine);
    b.ingress().push(Stmt::Assign(Place::var(past), bits(7, 3)));
    b.ingress().push(Stmt::Assign(Place::var(past), read));
    b.ingress().push(Stmt::Assign(nine, bits(7, 5)));
    let mut interp = load(b);
    let frame = [0x81, 0x02, 0x7f];
    assert_eq!(
        through(&mut interp, &frame).0,
        frame,
        "the write is ignored"
    );
    assert_eq!(value(&interp, first), BigUint::from(2u32));
    assert_eq!(value(&interp, past), BigUint::from(0u32));
}

#[test]
fn unions_have_one_valid_member() {
    let mut b = stateplane_ir::builder::Builder::new();
    let small = b.header("small_t", &[("x", 8)]);
    let big = b.header("big_t", &[("x", 16)]);
    let union = b.structure(
        "u",
        &[("small", Type::Header(small)), ("big", Type::Header(big))],
    );
    let headers = b.structure("headers", &[("u", Type::Union(union))]);
    let metadata = b.structure("metadata", &[]);
    let v = b.pipeline(headers, metadata);
    let parsed = b.field(v.parser.headers, "u.small");
    b.start().body.push(extract(parsed));
    let some = b.var("some", Type::Bool);
    let u = b.field(v.ingress.headers, "u");
    b.ingress()
        .push(Stmt::Assign(Place::var(some), is_valid(u)));
    let (u_small, u_big) = (
        b.field(v.ingress.headers, "u.small"),
        b.field(v.ingress.headers, "u.big"),
    );
    let x = b.member(u_big.clone(), "x");
    let turn = equal(b.read(&b.member(u_small.clone(), "x")), b8(1));
    b.ingress().push(when(
        turn,
        vec![Stmt::SetValid(u_big), Stmt::Assign(x, bits(16, 0x0203))],
    ));
    let gone = equal(b.read(&b.member(u_small.clone(), "x")), b8(2));
    b.ingress()
        .push(when(gone, vec![Stmt::SetInvalid(u_small)]));
    let all = Place::var(v.deparser.headers);
    b.deparser().push(emit(all));
    let mut interp = load(b);
    assert_eq!(through(&mut interp, &[7, 8]).0, [7, 8]);
    assert_eq!(value(&interp, some), BigUint::from(1u32));
    assert_eq!(through(&mut interp, &[1, 8]).0, [2, 3, 8]);
    assert_eq!(through(&mut interp, &[2, 8]).0, [8]);
    assert!(through(&mut interp, &[]).0.is_empty());
    assert_eq!(value(&interp, some), BigUint::from(0u32));
}

#[test]
fn conditions() {
    let mut bed = Bed::new();
    let stmt = Stmt::If {
        condition: boolean(false),
        then: vec![Stmt::Assign(bed.h("a"), b8(1))],
        otherwise: vec![Stmt::Assign(bed.h("a"), b8(2))],
    };
    bed.b.ingress().push(stmt);
    assert_eq!(through(&mut bed.load(), &[0, 0]).0, [2, 0]);
}
