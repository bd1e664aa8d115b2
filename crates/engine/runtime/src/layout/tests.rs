//! Positions of parts, and types that are refused.

use crate::layout::{LeafKind, MAX_WORDS};
use crate::{Layout, StateError};
use stateplane_ir::Type;
use stateplane_ir::builder::Builder;

#[test]
fn parts_follow_each_other() {
    let mut b = Builder::new();
    let header = b.structure(
        "h",
        &[
            ("a", Type::Bits(9)),
            ("wide", Type::Bits(129)),
            ("options", Type::Varbit(130)),
        ],
    );
    let stack = b.stack(Type::Header(header), 2);
    let all = b.structure("all", &[("first", Type::Bool), ("s", Type::Stack(stack))]);
    let layout = Layout::new(&b.program).unwrap();
    // Validity, a, two words, a length and two words.
    assert_eq!(layout.words(Type::Header(header)), 7);
    assert_eq!(layout.words(Type::Stack(stack)), 15);
    assert_eq!(layout.words(Type::Struct(all)), 16);
    assert_eq!(layout.field_offset(Type::Header(header), 2), 4);
    assert_eq!(layout.field_offset(Type::Struct(all), 1), 1);
    assert_eq!(layout.header_bits(header), 138);
    let leaves = layout.leaves(Type::Struct(all));
    let kinds: Vec<_> = leaves.iter().map(|leaf| (leaf.offset, leaf.kind)).collect();
    use LeafKind::{NextIndex, Scalar, Validity, Varbit};
    assert_eq!(
        kinds,
        [
            (0, Scalar),
            (1, NextIndex),
            (2, Validity),
            (3, Scalar),
            (4, Scalar),
            (6, Varbit),
            (9, Validity),
            (10, Scalar),
            (11, Scalar),
            (13, Varbit),
        ]
    );
}

#[test]
fn too_big_and_circular_types_are_refused() {
    let mut b = Builder::new();
    let header = b.header("h", &[("a", 8)]);
    b.stack(Type::Header(header), MAX_WORDS as u32);
    let error = Layout::new(&b.program).unwrap_err();
    assert!(matches!(error, StateError::TooLarge { .. }));

    let mut b = Builder::new();
    let own = b.structure("s", &[]);
    let circle = b.structure("t", &[("s", Type::Struct(own))]);
    b.program.structs[own.index()].fields = b.program.structs[circle.index()].fields.clone();
    b.program.structs[own.index()].fields[0].ty = Type::Struct(circle);
    let error = Layout::new(&b.program).unwrap_err();
    assert_eq!(error.code(), "TG022");
}
