mod units;

use super::{Edge, Grain, LockPlan, Reason, locks};
use stateplane_ir::Program;
use stateplane_ir::passes::{Whole, guard, optimise};

/// A program with registers `a` and `b` of 8 elements, `c` of 8 bigger ones, `long` of 16 and the
/// meter `m`; `before` stands in ingress before `apply`, `body` in it. Egress writes what the body
/// only reads, as reads of what nobody writes need no lock.
fn text_of(before: &str, body: &str) -> String {
    let all = format!("{before} {body}");
    let has = |call: &str, register: &str| all.contains(&format!("{register}.{call}("));
    let only_read = ["a", "b", "c", "long"].into_iter();
    let only_read = only_read.filter(|it| has("read", it) && !has("write", it));
    let egress: String = only_read.map(|it| format!("{it}.write(m.y, 1);")).collect();
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header key_t {{ bit<32> i; bit<32> j; bit<32> k; }}\n\
         struct headers_t {{ key_t key; key_t[2] more; }}\n\
         struct metadata_t {{ bit<32> i; bit<32> x; bit<32> y; }}\n\
         register<bit<64>>(8) a;\nregister<bit<64>>(8) b;\n\
         register<bit<128>>(8) c;\nregister<bit<64>>(16) long;\n\
         parser P(packet_in p, out headers_t h, inout metadata_t m,\n\
                  inout standard_metadata_t s) {{\n\
             state start {{ p.extract(h.key); transition accept; }} }}\n\
         control C(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             meter(8, MeterType.packets) rate;\n\
             bit<64> v; bit<64> w; bit<128> wide; bit<2> colour;\n\
             {before}\n\
             apply {{ {body} s.egress_spec = 1; m.x = (bit<32>)(v + w + wide[63:0]); }}\n\
         }}\n\
         control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             apply {{ {egress} }}\n\
         }}\n\
         control D(packet_out p, in headers_t h) {{ apply {{ p.emit(h.key); }} }}\n\
         V1Switch(P(), C(), I(), E(), C(), D()) main;\n"
    )
}

fn program(before: &str, body: &str) -> Program {
    let program = stateplane_compile::text(text_of(before, body)).program();
    program.expect("the program compiles")
}

/// The plan of a program, as engines make it.
fn plan_of(mut program: Program, optimised: bool) -> LockPlan {
    if optimised {
        optimise(&mut program);
    }
    guard(&mut program, Whole::Words);
    locks(&program)
}

/// The domains of a program in their order: arrays, `*` before those with one lock, and `/` before
/// those with a lock for each unit.
fn shown(plan: &LockPlan) -> Vec<String> {
    let domains = plan.domains.iter();
    let shown = domains.map(|domain| match domain.grain {
        Grain::Element { .. } => domain.arrays.join(" "),
        Grain::Unit { .. } => format!("/ {}", domain.arrays.join(" ")),
        Grain::Whole(_) => format!("* {}", domain.arrays.join(" ")),
    });
    shown.collect()
}

/// Checks the domains of a program with and without the passes of the optimiser.
fn domains(before: &str, body: &str) -> Vec<String> {
    let program = program(before, body);
    let plain = shown(&plan_of(program.clone(), false));
    assert_eq!(shown(&plan_of(program, true)), plain, "optimised");
    plain
}

/// The reasons for which the only domain with one lock has one.
fn reasons(before: &str, body: &str) -> Vec<Reason> {
    let plan = plan_of(program(before, body), true);
    let whole = plan.domains.into_iter().filter_map(|it| match it.grain {
        Grain::Whole(reasons) => Some(reasons),
        Grain::Element { .. } | Grain::Unit { .. } => None,
    });
    let mut whole: Vec<Vec<Reason>> = whole.collect();
    assert_eq!(whole.len(), 1);
    whole.remove(0)
}

#[test]
fn a_program_without_blocks_has_no_locks() {
    assert_eq!(
        plan_of(program("", "a.read(v, 0);"), true),
        LockPlan::default()
    );
}

#[test]
fn one_key_locks_its_element() {
    let body = "@atomic { a.read(v, h.key.i); a.write(h.key.i, v + 1); }";
    let plan = plan_of(program("", body), true);
    assert_eq!(shown(&plan), ["a"]);
    let Grain::Element { length, indices } = &plan.domains[0].grain else {
        panic!("a lock for each element");
    };
    assert_eq!(*length, 8);
    assert_eq!(indices.iter().collect::<Vec<_>>(), ["h.key.i"]);
    assert_eq!(plan.of_register(stateplane_ir::RegisterId(0)), Some(0));
    assert_eq!(plan.of_register(stateplane_ir::RegisterId(1)), None);
}

#[test]
fn what_the_machine_does_not_do_at_once_has_a_lock() {
    assert_eq!(
        domains(
            "",
            "c.read(wide, h.key.i); rate.execute_meter(h.key.j, colour);"
        ),
        ["c", "I.rate"]
    );
}

#[test]
fn arrays_at_one_key_share_their_locks() {
    let body = "@atomic { a.read(v, h.key.i); b.read(w, h.key.i); rate.execute_meter(h.key.i, colour);\
                b.write(h.key.i, v); long.write(h.key.i, w); }";
    assert_eq!(domains("", body), ["a b I.rate", "long"]);
}

#[test]
fn arrays_that_are_never_together_have_locks_of_their_own() {
    let body = "@atomic { a.read(v, h.key.i); } @atomic { b.read(w, h.key.i); }";
    assert_eq!(domains("", body), ["a", "b"]);
}

#[test]
fn arrays_that_are_together_at_two_keys_have_locks_of_their_own() {
    let body = "@atomic { a.read(v, h.key.i); b.read(w, h.key.i); }\
                @atomic { a.read(v, h.key.i); b.read(w, h.key.j); }";
    assert_eq!(domains("", body), ["a", "b"]);
}

#[test]
fn a_register_at_two_keys_has_one_lock() {
    let body = "@atomic { a.read(v, h.key.i); a.write(h.key.j, v); b.write(h.key.i, v); }";
    assert_eq!(domains("", body), ["* a", "b"]);
    let reasons = reasons("", body);
    let [Reason::TwoIndices { array, uses }] = &reasons[..] else {
        panic!("{reasons:?}");
    };
    assert_eq!(array, "a");
    assert_eq!([&uses[0].index, &uses[1].index], ["h.key.i", "h.key.j"]);
}

#[test]
fn a_key_that_changes_between_two_uses_is_another() {
    let body = "m.i = h.key.i; @atomic { a.read(v, m.i); m.i = m.i + 1; a.write(m.i, v); }";
    assert_eq!(domains("", body), ["* a"]);
    let body = "@atomic { a.read(v, h.key.i); h.key = {1, 2, 3}; a.write(h.key.i, v); }";
    assert_eq!(domains("", body), ["* a"]);
}

#[test]
fn a_key_in_variables_of_one_name_is_not_the_same() {
    let before = "action one(in bit<32> at) { a.read(v, at); }\
                  action two(in bit<32> at) { a.write(at, v); }";
    assert_eq!(
        domains(before, "@atomic { one(h.key.i); two(h.key.j); }"),
        ["* a"]
    );
    assert_eq!(
        domains(before, "@atomic { one(h.key.i); two(h.key.i); }"),
        ["a"]
    );
}

#[test]
fn arguments_of_two_entries_are_two_keys() {
    let before = "action at(bit<32> place) { m.i = place; }\n\
                  table places { key = { h.key.i: exact; } actions = { at; NoAction; } }";
    let once = "@atomic { places.apply(); a.read(v, m.i); a.write(m.i, v + 1); }";
    assert_eq!(domains(before, once), ["a"]);
    // One table is applied once, so a loop is the way to two lookups.
    let twice =
        "@atomic { for (bit<8> n = 0; n < 2; n = n + 1) { places.apply(); a.read(v, m.i); } }";
    assert_eq!(domains(before, twice), ["* a"]);
}

#[test]
fn a_key_that_was_read_is_one_key() {
    let body =
        "@atomic { long.read(v, h.key.i); a.read(w, (bit<32>)v); a.write((bit<32>)v, w + 1); }";
    assert_eq!(domains("", body), ["long", "a"]);
    // Of the register itself, it is a second one.
    let body = "@atomic { a.read(v, h.key.i); a.write((bit<32>)v, v); }";
    assert_eq!(domains("", body), ["* a"]);
    // Two reads of one element may differ.
    let body = "@atomic { long.read(v, 0); a.read(w, (bit<32>)v); long.read(v, 0); a.write((bit<32>)v, w); }";
    assert_eq!(domains("", body), ["long", "* a"]);
}

#[test]
fn opposite_orders_make_one_domain() {
    let body = "@atomic { a.read(v, h.key.i); long.write(h.key.j, v); }\
                @atomic { long.read(v, h.key.j); a.write(h.key.i, v); }";
    assert_eq!(domains("", body), ["* a long"]);
    let reasons = reasons("", body);
    let [Reason::Circle(edges)] = &reasons[..] else {
        panic!("{reasons:?}");
    };
    let names = |edge: &Edge| (edge.first.clone(), edge.later.clone());
    let pair = |first: &str, later: &str| (first.to_owned(), later.to_owned());
    assert_eq!(
        edges.iter().map(names).collect::<Vec<_>>(),
        [pair("a", "long"), pair("long", "a")]
    );
}

#[test]
fn circles_of_three_make_one_domain() {
    let body = "@atomic { a.read(v, h.key.i); b.write(h.key.j, v); }\
                @atomic { b.read(v, h.key.j); long.write(h.key.i, v); }\
                @atomic { long.read(v, h.key.j); a.write(h.key.i, v); c.write(h.key.k, wide); }";
    assert_eq!(domains("", body), ["* a b long", "c"]);
}

#[test]
fn domains_stand_in_the_order_of_their_use() {
    let body = "@atomic { long.read(v, h.key.j); b.write(h.key.i, v); }\
                @atomic { b.read(v, h.key.j); a.write(h.key.i, v); }";
    assert_eq!(domains("", body), ["long", "b", "a"]);
}

#[test]
fn what_a_block_holds_it_does_not_take_again() {
    let body = "@atomic { a.read(v, h.key.i); long.read(w, h.key.j); a.write(h.key.i, w); }";
    assert_eq!(domains("", body), ["a", "long"]);
    // On one of the ways `a` was not used before.
    let body = "@atomic { if (h.key.k == 0) { a.read(v, h.key.i); } long.read(w, h.key.j);\
                a.write(h.key.i, w); }";
    assert_eq!(domains("", body), ["* a long"]);
}

#[test]
fn ways_that_meet_choose_between_keys() {
    let both = "if (h.key.k == 0) { m.i = h.key.i; } else { m.i = h.key.j; }";
    let body = format!("{both} @atomic {{ a.read(v, m.i); a.write(m.i, v + 1); }}");
    assert_eq!(domains("", &body), ["a"]);
    let body = format!("@atomic {{ m.i = 0; a.read(v, m.i); {both} a.write(m.i, v + 1); }}");
    assert_eq!(domains("", &body), ["* a"]);
}

#[test]
fn what_a_return_leaves_as_it_was_is_not_taken_for_changed() {
    let before = "action place() { if (h.key.k == 0) { return; } m.i = 5; }";
    let body = "m.i = h.key.i; @atomic { place(); a.read(v, m.i); a.write(5, v); }";
    assert_eq!(domains(before, body), ["* a"]);
    let body = "m.i = h.key.i; @atomic { place(); a.read(v, m.i); a.write(m.i, v); }";
    assert_eq!(domains(before, body), ["a"]);
}

#[test]
fn a_loop_has_one_key_if_it_does_not_change_it() {
    let body = "@atomic { for (bit<8> n = 0; n < 4; n = n + 1) { a.read(v, h.key.i); v = v + 1;\
                a.write(h.key.i, v); } }";
    assert_eq!(domains("", body), ["a"]);
    let body = "@atomic { for (bit<32> n = 0; n < 4; n = n + 1) { a.read(v, n); w = w + v; } }";
    assert_eq!(domains("", body), ["* a"]);
    // The third round is the first with another key.
    let body = "m.i = h.key.i; m.x = h.key.i; m.y = h.key.i; @atomic {\
                for (bit<8> n = 0; n < 4; n = n + 1) {\
                    a.read(v, m.i); m.i = m.x; m.x = m.y; m.y = h.key.j; } }";
    assert_eq!(domains("", body), ["* a"]);
}

#[test]
fn blocks_in_a_loop_are_blocks_of_their_own() {
    let body =
        "for (bit<32> n = 0; n < 4; n = n + 1) { @atomic { a.read(v, n); a.write(n, v + 1); } }";
    assert_eq!(domains("", body), ["a"]);
}

#[test]
fn blocks_within_blocks_belong_to_the_outermost() {
    let before = "action inner() { @atomic { a.write(h.key.j, v); } }";
    let body = "@atomic { @atomic { a.read(v, h.key.i); } inner(); }";
    assert_eq!(domains(before, body), ["* a"]);
    assert_eq!(
        domains(before, "@atomic { a.read(v, h.key.i); } inner();"),
        ["a"]
    );
}

#[test]
fn an_exit_ends_a_way() {
    let body = "@atomic { if (h.key.k == 0) { a.write(h.key.i, 2); exit; } a.write(h.key.j, 1); }";
    assert_eq!(domains("", body), ["a"]);
    let body = "@atomic { if (h.key.k == 0) { a.write(h.key.i, 2); } a.write(h.key.j, 1); }";
    assert_eq!(domains("", body), ["* a"]);
}

#[test]
fn a_stack_element_that_is_chosen_as_the_program_runs_is_no_key() {
    let body = "@atomic { a.read(v, h.more[1].i); a.write(h.more[1].i, v); }";
    assert_eq!(domains("", body), ["a"]);
    let body = "@atomic { a.read(v, h.more[h.key.k].i); a.write(h.more[h.key.k].i, v); }";
    assert_eq!(domains("", body), ["* a"]);
    // A write to an element of which nobody knows changes all.
    let body =
        "@atomic { a.read(v, h.more[1].i); h.more[h.key.k].i = 7; a.write(h.more[1].i, v); }";
    assert_eq!(domains("", body), ["* a"]);
}

#[test]
fn the_width_of_a_number_is_a_part_of_it() {
    let body =
        "@atomic { a.read(v, (bit<32>)h.key.i[7:0]); a.write((bit<32>)(bit<8>)h.key.i[15:0], v); }";
    assert_eq!(domains("", body), ["* a"]);
}

#[test]
fn places_of_the_source_are_told() {
    let body = "@atomic {\na.read(v, h.key.i);\na.write(h.key.j, v);\n}";
    let source = stateplane_compile::text(text_of("", body));
    let mut program = source.program_with_places().expect("it compiles");
    optimise(&mut program);
    guard(&mut program, Whole::Words);
    let plan = locks(&program);
    let Grain::Whole(reasons) = &plan.domains[0].grain else {
        panic!("one lock");
    };
    let [Reason::TwoIndices { uses, .. }] = &reasons[..] else {
        panic!("{reasons:?}");
    };
    let lines = uses.each_ref().map(|it| {
        let mut parts = it.place.rsplit(':');
        parts.nth(1).and_then(|line| line.parse::<u32>().ok())
    });
    assert_eq!(lines[0].map(|line| line + 1), lines[1]);
}
