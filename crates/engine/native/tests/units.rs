//! Workers whose atomic blocks name units of registers, and blocks that stand apart, by either
//! engine.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

mod support;

use stateplane_runtime::Value;
use support::{PACKETS, WORKERS, on_both, on_both_with_waits, sum, sum_of};

/// Numbers of two units, sometimes the same one.
const TWO: &str = "x = (bit<32>)s.ingress_global_timestamp[2:0]; \
                   y = (bit<32>)s.ingress_global_timestamp[5:3]; \
                   at = (bit<32>)s.ingress_global_timestamp[1:0];";

/// Counts an element of the unit `x` and one of `y`, in two registers that must be equal.
const COUNT: &str = "items.read(a, x * 4 + at); more.read(b, x * 4 + at); \
                     if (a != b) { other.write(0, 1); } \
                     items.write(x * 4 + at, a + 1); more.write(x * 4 + at, b + 1); \
                     items.read(a, y * 4 + 3 - at); more.read(b, y * 4 + 3 - at); \
                     if (a != b) { other.write(0, 1); } \
                     items.write(y * 4 + 3 - at, a + 1); more.write(y * 4 + 3 - at, b + 1);";

/// Checks that both registers have the counts of all packets, and were always equal.
fn are_counted(read: &dyn Fn(&str, u64) -> Value, count: u64, what: &str) {
    assert_eq!(read("other", 0), Value::from(0u64), "{what}");
    for register in ["items", "more"] {
        assert_eq!(sum_of(read, register, 32), count, "{register}: {what}");
    }
}

#[test]
fn units_lose_no_count() {
    let count = format!("{TWO} @atomic @uses(\"u\", x, y) {{ {COUNT} }}");
    on_both(&count, |read, _| {
        are_counted(read, 2 * WORKERS * PACKETS, "two units")
    });
    let one = COUNT.replace("y * 4", "x * 4");
    let count = format!("{TWO} @atomic @uses(\"u\", x) {{ {one} }}");
    on_both(&count, |read, _| {
        are_counted(read, 2 * WORKERS * PACKETS, "one unit")
    });
}

#[test]
fn units_in_opposite_orders_are_locked_in_one() {
    let count = format!(
        "{TWO} z = x ^ y; if (s.ingress_port[1:1] == 0) {{ \
             @atomic @uses(\"u\", x, y, z) {{ {COUNT} }} \
         }} else {{ @atomic @uses(\"u\", z, y, x) {{ {COUNT} }} }}"
    );
    on_both(&count, |read, _| {
        are_counted(read, 2 * WORKERS * PACKETS, "three units")
    });
}

#[test]
fn a_block_that_names_others_lets_go_of_its_units() {
    // A worker that kept the first unit would wait for a fellow that waits for it.
    let both = "@atomic @uses(\"u\", x, y) { }";
    let of = |one: &str, both: &str| {
        format!("@atomic @uses(\"u\", {one}) {{ }} items.read(a, {one} * 4 + at); {both}")
    };
    let known = format!(
        "{TWO} @atomic {{ if (s.ingress_port[1:1] == 0) {{ {} }} else {{ {} }} {COUNT} }}",
        of("x", both),
        of("y", "@atomic @uses(\"u\", y, x) { }"),
    );
    // On one way a unit is named first, of which the engine cannot know while it makes code.
    let on_a_way = format!(
        "{TWO} @atomic {{ if (s.ingress_port[1:1] == 0) {{ {} }} {both} {COUNT} }}",
        of("y", "")
    );
    for count in [known, on_a_way] {
        on_both(&count, |read, _| {
            are_counted(read, 2 * WORKERS * PACKETS, &count)
        });
    }
}

#[test]
fn units_that_are_let_go_of_are_free() {
    // Each worker has a unit of its own, and looks at one that all have first.
    let own = "x = 0; y = 4 + (bit<32>)s.ingress_port[2:1]; at = (bit<32>)s.ingress_port[0:0];";
    let one = COUNT.replace("x * 4", "y * 4");
    let count = format!(
        "{own} @atomic {{ @atomic @uses(\"u\", x) {{ }} items.read(a, 0); items.write(0, a + 1); \
                          @atomic @uses(\"u\", y) {{ }} {one} }} \
         @atomic @uses(\"u\", x) {{ more.read(a, 0); more.write(0, a + 1); }}"
    );
    on_both(&count, |read, _| {
        are_counted(read, 3 * WORKERS * PACKETS, "let go")
    });
}

#[test]
fn naming_units_that_are_held_keeps_all_of_them() {
    let count = format!(
        "{TWO} @atomic {{ @atomic @uses(\"u\", x, y) {{ }} items.read(c, y * 4 + 3 - at); \
                          @atomic @uses(\"u\", x) {{ }} z = y + 8; @atomic @uses(\"u\", z, x) {{ }} \
                          items.read(b, y * 4 + 3 - at); if (b != c) {{ other.write(0, 1); }} {COUNT} }}"
    );
    on_both(&count, |read, _| {
        are_counted(read, 2 * WORKERS * PACKETS, "some of them")
    });
}

#[test]
fn units_are_held_up_to_the_end_of_the_outermost_block() {
    // On some ways they are named twice, of which the engine cannot know while it makes code.
    let count = format!(
        "{TWO} @atomic {{ if (s.ingress_port[0:0] == 0) {{ @atomic @uses(\"u\", x, y) {{ }} }} \
                          @atomic @uses(\"u\", x, y) {{ {COUNT} }} \
                          items.read(c, x * 4 + at); more.read(b, x * 4 + at); \
                          if (c != b) {{ other.write(0, 1); }} }}"
    );
    on_both(&count, |read, _| {
        are_counted(read, 2 * WORKERS * PACKETS, "named twice")
    });
}

#[test]
fn workers_with_units_of_their_own_never_wait() {
    // Each worker has two ports and one unit of each.
    let own = "x = (bit<32>)s.ingress_port[2:0]; y = x ^ 1; at = (bit<32>)s.ingress_port[1:0];";
    let count = format!("{own} @atomic @uses(\"u\", y, x) {{ {COUNT} }}");
    on_both_with_waits(&count, |read, _, waits| {
        assert_eq!(waits, 0);
        are_counted(read, 2 * WORKERS * PACKETS, "own units");
    });
}

#[test]
fn a_unit_past_the_end_is_none() {
    let count = format!("{TWO} y = y + 8; @atomic @uses(\"u\", y, x) {{ {COUNT} }}");
    on_both(&count, |read, _| {
        are_counted(read, WORKERS * PACKETS, "past the end")
    });
}

#[test]
fn a_block_that_is_left_early_leaves_its_units() {
    let way = "if (s.ingress_port[0:0] == 1) { mark_to_drop(s); exit; }";
    let count = format!("{TWO} @atomic {{ @atomic @uses(\"u\", x, y) {{ }} {way} {COUNT} }}");
    on_both(&count, |read, _| {
        are_counted(read, WORKERS * PACKETS, "left early")
    });
}

#[test]
fn a_block_that_stands_apart_gives_its_lock_back() {
    // If the first way kept the lock of `one`, each of two workers could have what the other wants.
    let apart = "@atomic @apart { one.read(a, 0); one.write(0, a + 1); }";
    let three = "three.read(b, 0); three.write(0, b + 1);";
    let count = format!(
        "if (s.ingress_port[1:1] == 0) {{ @atomic {{ {apart} {three} }} }} \
         else {{ @atomic {{ {three} {apart} {three} }} }}"
    );
    on_both(&count, |read, _| {
        assert_eq!(sum(read, "one"), WORKERS * PACKETS);
        assert_eq!(sum(read, "three"), WORKERS * PACKETS * 3 / 2);
    });
}

#[test]
fn a_block_that_stands_apart_keeps_what_the_block_around_it_holds() {
    let apart = "@atomic @apart { one.read(c, at); one.write(at, c + 1); }";
    let [first, last] = [
        "one.read(a, at);",
        "one.read(b, at); if (a != c || b != c + 1) { other.write(0, 1); }",
    ];
    // Of the second way the engine cannot know while it makes code.
    let some = |what: &str| format!("if (s.ingress_port[0:0] == 0) {{ {what} }}");
    for (first, last) in [
        (first.to_owned(), last.to_owned()),
        (some(first), some(last)),
    ] {
        let count = format!(
            "at = (bit<32>)s.ingress_global_timestamp[1:0]; @atomic {{ {first} {apart} {last} }}"
        );
        on_both(&count, |read, _| {
            assert_eq!(read("other", 0), Value::from(0u64), "{first}");
            assert_eq!(sum(read, "one"), WORKERS * PACKETS, "{first}");
        });
    }
}
