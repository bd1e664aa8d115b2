use super::super::{Grain, LockPlan, Reason};
use super::{domains, plan_of, program, reasons};

/// Registers `first` and `second` in units of 4 elements, and `single`, `read` of one.
const UNITS: &str = "@unit[\"u\", 4] register<bit<64>>(32) first;\
                     @unit[\"u\", 4] register<bit<32>>(32) second;\
                     register<bit<64>>(1) single; register<bit<64>>(1) read; bit<32> n;\n";

fn plan(body: &str) -> LockPlan {
    plan_of(program(UNITS, body), true)
}

fn of(body: &str) -> Vec<String> {
    domains(UNITS, body)
}

#[test]
fn units_that_a_block_names_have_a_lock_each() {
    let body = "@atomic @uses(\"u\", n) { first.read(v, n * 4 + h.key.j); first.write(n * 4, v);\
                second.read(n, h.key.k); second.write(h.key.i, n); }";
    let plan = plan(&format!("n = h.key.i; {body}"));
    let [domain] = &plan.domains[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(domain.arrays, ["I.first", "I.second"]);
    let Grain::Unit {
        elements,
        count,
        numbers,
    } = &domain.grain
    else {
        panic!("{domain:?}");
    };
    assert_eq!((*elements, *count), (4, 8));
    assert_eq!(numbers.iter().collect::<Vec<_>>(), ["h.key.i"]);
    assert_eq!(plan.of_units("u"), Some(0));
    let registers = [4, 5].map(stateplane_ir::RegisterId);
    assert_eq!(registers.map(|it| plan.of_register(it)), [None; 2]);
}

#[test]
fn units_are_named_on_any_way_before_their_elements() {
    let named = "@atomic @uses(\"u\", n) { }";
    let used = "first.read(v, h.key.i); first.write(h.key.j, v);";
    assert_eq!(
        of(&format!("@atomic {{ {named} {used} }}")),
        ["/ I.first I.second"]
    );
    let on_one_way = format!("@atomic {{ if (h.key.k == 0) {{ {named} }} {used} }}");
    assert_eq!(of(&on_one_way), ["/ I.first I.second"]);
    for behind in [
        format!("@atomic {{ {used} {named} }}"),
        format!("{named} @atomic {{ {used} }}"),
        format!("@atomic {{ {named} {used} }} first.write(0, v);"),
    ] {
        assert_eq!(of(&behind), ["* I.first"], "{behind}");
        let reasons = reasons(UNITS, &behind);
        assert!(
            matches!(&reasons[..], [Reason::UnitsNotNamed { array, .. }] if array == "I.first"),
            "{reasons:?}"
        );
    }
    // Nobody names any.
    assert_eq!(
        of("@atomic { first.read(v, 1); first.write(1, v); }"),
        ["I.first"]
    );
}

#[test]
fn units_stand_in_the_order_in_which_blocks_name_them() {
    let units = "@atomic @uses(\"u\", n) { first.write(h.key.i, v); }";
    let between = format!(
        "@atomic {{ a.read(v, h.key.i); a.write(h.key.i, v); {units} long.write(h.key.j, v); }}"
    );
    assert_eq!(of(&between), ["a", "/ I.first I.second", "long"]);
    // Elements are no locks, wherever they are used.
    let later = format!("@atomic {{ {units} a.write(h.key.i, v); first.write(h.key.j, v); }}");
    assert_eq!(of(&later), ["/ I.first I.second", "a"]);
    let circle = format!(
        "@atomic {{ a.write(h.key.i, v); {units} }} @atomic {{ {units} a.write(h.key.i, v); }}"
    );
    assert_eq!(of(&circle), ["* a I.first I.second"]);
    assert_eq!(plan(&circle).of_units("u"), Some(0));
}

#[test]
fn units_that_are_named_again_stand_behind_all_that_the_block_holds() {
    let first = "@atomic @uses(\"u\", n) { } first.write(n * 4, v);";
    let write = "a.write(h.key.i, v);";
    let again = |number: &str| {
        format!("x = {number}; @atomic @uses(\"u\", n, x) {{ }} first.write(x * 4, v);")
    };
    let of = |body: &str| of(&format!("bit<32> x; {body}"));
    let both = again("h.key.j");
    // Nothing is taken between the namings.
    let behind = format!("@atomic {{ {first} {both} {write} }}");
    assert_eq!(of(&behind), ["/ I.first I.second", "a"]);
    let before = format!("@atomic {{ {write} {first} {both} {write} }}");
    assert_eq!(of(&before), ["a", "/ I.first I.second"]);
    let between = format!("@atomic {{ {first} {write} {both} }}");
    assert_eq!(of(&between), ["* a I.first I.second"]);
    let on_a_way = format!("@atomic {{ {first} if (v == 0) {{ {write} }} {both} }}");
    assert_eq!(of(&on_a_way), ["* a I.first I.second"]);
    // In each round but the first one the block holds what it took in the round before.
    let in_rounds =
        format!("@atomic {{ for (bit<32> i = 0; i < 3; i = i + 1) {{ n = i; {first} {write} }} }}");
    assert_eq!(of(&in_rounds), ["* a I.first I.second"]);
    // The same ones are held already, and what stands apart is free.
    let same = format!("@atomic {{ {first} {write} {first} }}");
    assert_eq!(of(&same), ["/ I.first I.second", "a"]);
    let apart = format!("@atomic {{ {first} @atomic @apart {{ {write} }} {both} }}");
    assert_eq!(of(&apart), ["/ I.first I.second", "a"]);
}

#[test]
fn a_register_that_nobody_writes_has_no_lock() {
    assert_eq!(of("@atomic { read.read(v, 0); a.write(0, v); }"), ["a"]);
    assert_eq!(
        of("@atomic { read.read(v, 0); } read.write(0, 1);"),
        ["I.read"]
    );
}

#[test]
fn a_block_that_stands_apart_holds_its_locks_for_itself() {
    let count = "single.read(v, 0); single.write(0, v + 1);";
    let within = format!(
        "@atomic {{ {count} a.write(h.key.i, v); }} @atomic {{ a.write(h.key.i, v); {count} }}"
    );
    assert_eq!(of(&within), ["* a I.single"]);
    let apart = within.replace(count, &format!("@atomic @apart {{ {count} }}"));
    assert_eq!(of(&apart), ["a", "I.single"]);
    // Not even at one index is its lock another's.
    let together = "@atomic { a.write(0, v); @atomic @apart { b.write(0, v); } }";
    assert_eq!(of(together), ["a", "b"]);
    // Locks that a block apart takes stand behind those that the block around it holds.
    let circle = "@atomic { a.write(h.key.i, v); @atomic @apart { long.write(h.key.j, v); } }\
                  @atomic { long.write(h.key.j, v); a.write(h.key.i, v); }";
    assert_eq!(of(circle), ["* a long"]);
}
