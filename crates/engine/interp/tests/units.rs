//! The interpreter for tests objects to uses of units that a block did not name.

mod support;

use stateplane_interp::{Interp, Options};
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{ingress_of, send};

const DECLARATIONS: &str = "@unit[\"u\", 4] register<bit<8>>(16) items;
    bit<8> v; bit<32> one = (bit<32>)hdr.h.a; bit<32> two = (bit<32>)hdr.h.b;";

/// The checked interpreter's complaint about a packet with these two numbers of units; empty if it has none.
fn objection(body: &str, numbers: [u8; 2]) -> String {
    let program = ingress_of(DECLARATIONS, body).program().clone();
    let mut interp = Interp::checked(program, Options::default()).expect("it loads");
    match catch_unwind(AssertUnwindSafe(|| send(&mut interp, &numbers))) {
        Ok(_) => String::new(),
        Err(told) => *told.downcast::<String>().expect("a text"),
    }
}

#[test]
fn units_that_are_named_may_be_used() {
    let body = "@atomic { @atomic @uses(\"u\", one, two) { items.read(v, one * 4 + 3); }
                one = two; items.write(two * 4, v); @atomic @uses(\"u\", one) { } }";
    assert_eq!(objection(body, [0, 3]), "");
    assert_eq!(objection(body, [2, 2]), "");
    // Past the end there is nothing.
    assert_eq!(objection(body, [9, 8]), "");
}

#[test]
fn others_may_not() {
    let other =
        "the element 8 of `MyIngress.items` is in unit 2 of `u`, and the block named [0, 1]";
    for access in ["items.read(v, 8);", "items.write(8, 1);"] {
        let body = format!("@atomic @uses(\"u\", one, two) {{ {access} }}");
        assert_eq!(objection(&body, [0, 1]), other);
        assert_eq!(objection(&body, [2, 1]), "");
        let nothing = other.replace("[0, 1]", "[]");
        let before = format!("{access} @atomic @uses(\"u\", one, two) {{ }}");
        assert_eq!(objection(&before, [2, 1]), nothing);
        let behind = format!("@atomic @uses(\"u\", one, two) {{ }} @atomic {{ {access} }}");
        assert_eq!(objection(&behind, [2, 1]), nothing);
    }
}

#[test]
fn a_block_that_names_others_may_use_only_these() {
    let named =
        "@atomic @uses(\"u\", one) { } items.read(v, one * 4); @atomic @uses(\"u\", two) { }";
    let body = format!("@atomic {{ {named} items.read(v, two * 4 + 1); }}");
    assert_eq!(objection(&body, [0, 1]), "");
    let body = format!("@atomic {{ {named} items.read(v, one * 4 + 1); }}");
    assert_eq!(
        objection(&body, [0, 1]),
        "the element 1 of `MyIngress.items` is in unit 0 of `u`, and the block named [1]"
    );
    assert_eq!(objection(&body, [1, 1]), "");
    // Of those that it has named, it keeps all.
    let body = "@atomic { @atomic @uses(\"u\", one, two) { } @atomic @uses(\"u\", two) { }
                items.read(v, one * 4); }";
    assert_eq!(objection(body, [0, 1]), "");
}
