//! Goldens of programs: `programs/NAME.p4` gives `programs/NAME.synced.p4`, `refused/NAME.p4` the
//! diagnostics in `refused/NAME.txt`. `UPDATE_GOLDEN=1` writes both anew.
//! `crates/engine/stf/tests/synchronised.rs` compares packets, `crates/proof/sync-sim` runs results
//! with engines.

#![allow(clippy::disallowed_methods)]

#[path = "../../protect/tests/edited/mod.rs"]
mod edited;

use edited::{damaged, programs_are_edited, programs_are_refused, read, told};
use stateplane_compile::{Source, file};
use stateplane_p4info::proto::P4Info;
use stateplane_synchronise::{Kind, Plan, Selection, Synchronised, synchronise};
use stateplane_syntax::FileLoader;

/// Names of the programs of this folder.
fn programs() -> Vec<String> {
    edited::programs("programs", "synced")
}

/// A program of this folder, with the registers that are annotated.
fn annotated(path: &str) -> Synchronised {
    synchronised(&file(path, read), Selection::Annotated)
}

fn synchronised<L: FileLoader>(source: &Source<L>, selection: Selection<'_>) -> Synchronised {
    let (loader, options) = (source.loader(), source.options());
    synchronise(loader, source.main_file(), options, selection)
}

/// Text and groups of a program of this folder.
fn made(path: &str, selection: Selection<'_>) -> (String, Plan) {
    let made = synchronised(&file(path, read), selection);
    let told = told(&made);
    made.program.unwrap_or_else(|| panic!("{path}: {told}"))
}

/// Text and groups of a program that this text is, or why it is refused.
fn made_of(text: &str, selection: Selection<'_>) -> Result<(String, Plan), String> {
    let main = "programs/text.p4";
    let reading = |path: &str| {
        if path == main {
            Some(text.to_owned())
        } else {
            read(path)
        }
    };
    let made = synchronised(&file(main, reading), selection);
    let told = told(&made);
    made.program.ok_or(told)
}

/// Groups of a text.
fn plan_of(text: &str, selection: Selection<'_>) -> Result<Plan, String> {
    made_of(text, selection).map(|(_, plan)| plan)
}

/// A program whose ingress has these declarations and statements.
fn ingress(declarations: &str, statements: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n#include \"common.p4\"\n\
         control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{\n\
         {declarations}\napply {{\n{statements}\n}}\n}}\n\
         V1Switch(CommonParser(), NoVerify(), I(), NoEgress(), NoCompute(), CommonDeparser()) main;\n"
    )
}

/// Kind that is inferred of a register that is written so.
fn kind(element: &str, statements: &str) -> Kind {
    let text = ingress(
        &format!("register<{element}>(8) r; {element} x; {element} y;"),
        statements,
    );
    let plan = plan_of(&text, Selection::Annotated).unwrap_or_else(|told| panic!("{told}"));
    plan.groups[0].kind
}

/// A program may find its own copies of the library's files, as with `-I p4/lib`.
#[test]
fn a_copy_of_a_file_of_the_library_is_that_file() {
    let headers = stateplane_library::text("lib/headers.p4").expect("a file of the library");
    let main = "../../../../bench/p4/packet_counter.p4";
    let reading = |path: &str| {
        if path.ends_with("bench/p4/headers.p4") {
            Some(headers.to_owned())
        } else {
            read(path)
        }
    };
    let made = synchronised(&file(main, reading), Selection::Annotated);
    assert!(made.program.is_some(), "{}", told(&made));
}

#[test]
fn programs_are_synchronised() {
    programs_are_edited("synced", annotated);
}

#[test]
fn what_cannot_be_synchronised_is_refused_with_the_reason() {
    programs_are_refused("synced", annotated);
}

fn p4info(program: &str, text: &str) -> P4Info {
    let reading = |path: &str| {
        if path == program {
            Some(text.to_owned())
        } else {
            read(path)
        }
    };
    let (ir, interface) = file(program, reading)
        .program_and_interface()
        .expect("it compiles");
    stateplane_p4info::generate(&ir, &interface).expect("it has a P4Info")
}

/// Control planes see the tables, actions, registers and counters of the program as before: with
/// the same names, ids, types and sizes.
#[test]
fn p4info_keeps_all_that_the_program_has() {
    for name in programs() {
        let path = format!("programs/{name}.p4");
        let original = read(&path).expect("a program");
        let before = p4info(&path, &original);
        let after = p4info(&path, &made(&path, Selection::Annotated).0);
        assert!(!before.registers.is_empty());
        macro_rules! kept {
            ($($field:ident)*) => {$(
                for entity in &before.$field {
                    assert!(after.$field.contains(entity), "{name}: {entity:#?}");
                }
            )*};
        }
        kept!(tables actions action_profiles counters direct_counters meters direct_meters
            controller_packet_metadata value_sets digests);
        for register in &before.registers {
            let mut register = register.clone();
            let preamble = register.preamble.as_mut().expect("a preamble");
            // What the annotation asked for was done.
            preamble
                .annotations
                .retain(|text| !text.starts_with("@synced"));
            let mut others = after.registers.iter().cloned();
            let kept = others.any(|mut other| {
                let preamble = other.preamble.as_mut().expect("a preamble");
                // The annotations that tell of the view, and where it lies, are new.
                preamble.annotations.retain(|text| text != "@in_view");
                let annotations = &mut preamble.structured_annotations;
                annotations.retain(|it| it.name != "beside");
                other == register
            });
            assert!(kept, "{name}: {register:#?}");
        }
    }
}

#[test]
fn kinds_follow_from_writes() {
    let cases = [
        ("bit<32>", "r.read(x, 0); r.write(0, x + 1);", Kind::Counter),
        (
            "bit<32>",
            "r.read(x, 0); x = x + 1; r.write(0, x |+| standard.packet_length);",
            Kind::Counter,
        ),
        ("int<32>", "r.read(x, 0); r.write(0, x + 1);", Kind::Counter),
        (
            "bit<32>",
            "r.read(x, 0); if (x < 7) { x = x + 1; } r.write(0, x);",
            Kind::Counter,
        ),
        ("bit<32>", "r.read(x, 0); r.write(0, x - 1);", Kind::Gauge),
        (
            "bit<32>",
            "r.read(x, 0); r.write(0, x + 1); r.write(1, 0);",
            Kind::Gauge,
        ),
        (
            "bit<32>",
            "r.write(0, standard.packet_length);",
            Kind::Gauge,
        ),
        ("int<32>", "r.read(x, 0); r.write(0, x - 1);", Kind::Opaque),
        (
            "bit<32>",
            "r.write(0, hdr.ethernet.src[31:0]);",
            Kind::Opaque,
        ),
        ("bit<32>", "r.write(0, 1);", Kind::Opaque),
        ("bit<32>", "r.read(x, 0); r.write(0, x ^ 1);", Kind::Opaque),
        (
            "bit<32>",
            "r.read(x, 0); r.write(0, x * 2 + 1);",
            Kind::Opaque,
        ),
        (
            "bit<32>",
            "r.read(x, 0); r.read(y, 1); r.write(0, x + y);",
            Kind::Opaque,
        ),
        ("bit<1>", "r.read(x, 0); r.write(0, x + 1);", Kind::Opaque),
        ("bit<65>", "r.read(x, 0); r.write(0, x + 1);", Kind::Opaque),
        ("bit<32>", "r.read(x, 0); y = 1; y = y;", Kind::Opaque),
    ];
    for (element, statements, expected) in cases {
        assert_eq!(
            kind(element, statements),
            expected,
            "{element}: {statements}"
        );
    }
}

/// Registers by group.
fn groups(plan: &Plan) -> Vec<Vec<&str>> {
    plan.groups
        .iter()
        .map(|group| group.registers.iter().map(|it| &*it.register).collect())
        .collect()
}

#[test]
fn registers_that_are_indexed_alike_with_a_key_among_them_are_a_group() {
    let declarations = "register<bit<32>>(8) key; register<bit<16>>(8) count; \
        register<bit<16>>(4) short; register<bit<32>>(8) other; \
        register<bit<16>>(8) sum; bit<16> x;";
    let use_all = "key.write(meta.index, hdr.ethernet.src[31:0]); count.read(x, meta.index); \
        if (meta.index > 3) { x = 0; } count.write(meta.index, x + 1); short.read(x, meta.index); short.write(meta.index, x + 1); \
        other.write(meta.index + 1, 1); \
        sum.read(x, meta.index); sum.write(meta.index, x + 1);";
    let plan = plan_of(&ingress(declarations, use_all), Selection::Annotated).expect("it fits");
    assert_eq!(
        groups(&plan),
        [
            vec!["I.key", "I.count"],
            vec!["I.short"],
            vec!["I.other"],
            // It goes on whosever the key is.
            vec!["I.sum"],
        ]
    );
    assert_eq!(plan.groups[0].kind, Kind::Opaque);
    assert_eq!(plan.groups[0].registers[1].lowest_bit, 32);
    assert_eq!(plan.groups[1].kind, Kind::Counter);
}

#[test]
fn counters_that_are_indexed_alike_stay_apart() {
    let (_, plan) = made("programs/counter.p4", Selection::Annotated);
    assert_eq!(groups(&plan), [vec!["packets"], vec!["bytes"]]);
    assert!(plan.groups.iter().all(|group| group.kind == Kind::Counter));
}

#[test]
fn annotations_say_which_and_how() {
    let (text, plan) = made("programs/kinds.p4", Selection::Annotated);
    let expected = [
        vec!["KindsIngress.length"],
        vec!["KindsIngress.last_source", "KindsIngress.last_kind"],
        vec!["KindsIngress.wide"],
        // Nothing keeps these two apart.
        vec!["KindsIngress.balance", "KindsIngress.flag"],
        vec!["KindsIngress.newest"],
    ];
    assert_eq!(groups(&plan), expected);
    let length = &plan.groups[0];
    assert_eq!((length.kind, length.kind_inferred), (Kind::Gauge, false));
    assert_eq!((length.bound, length.window_us), (Some(4), Some(500)));
    assert_eq!(plan.groups[1].name, "last");
    assert_eq!((plan.groups[2].words, plan.groups[2].locations), (4, 16));
    assert!(text.contains("#define SYNC_RATES 0: sync_set(524, 4194, 500, 0, 0x4); 4: sync_set(524, 4194, 1000, 0, 0x0);"));
}

#[test]
fn registers_are_chosen_by_name() {
    let names = [
        "key".to_owned(),
        "KindsIngress.key_count".to_owned(),
        "key".to_owned(),
    ];
    let (_, plan) = made("programs/kinds.p4", Selection::Named(&names));
    assert_eq!(
        groups(&plan),
        [vec!["KindsIngress.key", "KindsIngress.key_count"]]
    );
    let made = synchronised(
        &file("programs/kinds.p4", read),
        Selection::Named(&["kee".to_owned()]),
    );
    assert!(made.program.is_none());
    let told = told(&made);
    assert!(
        told.contains("E1902") && told.contains("no register of the program is called `kee`"),
        "{told}"
    );
    let total = Selection::Named(&["total".to_owned()]);
    let told = plan_of(&read("programs/places.p4").expect("a program"), total).unwrap_err();
    assert!(
        told.contains("PlacesIngress.tally.total, PlacesIngress.total"),
        "{told}"
    );
}

/// Each ring holds every location once, as many again, a message's values, and what is sent beyond
/// what the engine has (rules 8, 9).
#[test]
fn rings_hold_what_the_protocol_needs() {
    for size in [1u32, 7, 64, 1000, 4096, 65_536] {
        let text = ingress(
            &format!("register<bit<32>>({size}) r; bit<32> x;"),
            "r.read(x, meta.index); r.write(meta.index, x + 1);",
        );
        let plan = plan_of(&text, Selection::Annotated).expect("it fits");
        let ring = plan.groups[0].ring;
        assert!(ring.is_power_of_two());
        assert!(ring >= 2 * size + plan.batch, "{size}");
        assert!(ring >= size + plan.window + plan.batch, "{size}");
    }
}

#[test]
fn what_was_synchronised_is_told_as_a_table_and_as_json() {
    let (_, plan) = made("programs/kinds.p4", Selection::Annotated);
    let table = plan.to_string();
    assert!(
        table.contains("KindsIngress.last_kind") && table.contains("63:48"),
        "{table}"
    );
    assert!(table.contains("129/4"), "{table}");
    let json = serde_json::to_value(&plan).expect("JSON");
    assert_eq!(json["groups"][0]["kind"], "gauge");
    assert_eq!(json["groups"][1]["registers"][1]["lowest_bit"], 48);
    assert_eq!(json["batch"], plan.batch);
}

/// Text that is cut, doubled or mixed up anywhere gives diagnostics or a program, and no panic.
#[test]
fn damaged_programs_do_no_harm() {
    let text = read("programs/kinds.p4").expect("a program");
    for damaged in damaged(&text, "register", "apply {", " ,(\"<)=;") {
        // The outcome is a program or an error with a code.
        if let Err(told) = plan_of(&damaged, Selection::Annotated) {
            assert!(told.contains("error[E"), "{told}");
        }
    }
}

/// The ingress of a program with these statements, as it is when it is synchronised.
fn followed(statements: &str) -> String {
    let declarations = "register<bit<32>>(8) r; register<bit<32>>(8) s; bit<32> x; bit<32> i;\n\
         two_t two;\n\
         action other() { i = 2; }\ntable t { actions = { other; } }";
    let function = "header one_t { bit<32> i; }\nstruct two_t { one_t a; one_t b; one_t[2] many; }\n\
         bit<32> call(inout bit<32> y) { y = y + 1; return y; }\n";
    let text =
        ingress(declarations, statements).replace("control I", &format!("{function}control I"));
    let made = made_of(&text, Selection::Annotated);
    let (text, _) = made.unwrap_or_else(|told| panic!("{statements}: {told}"));
    let (_, body) = text.split_once("control I(").expect("the ingress");
    body.to_owned()
}

/// An access behind another one of the same element does not look for a cut again.
#[test]
fn an_element_crosses_once_a_packet() {
    for statements in [
        "r.read(x, i); r.write(i, x + 1);",
        "r.read(x, hdr.ethernet.dst[31:0]); r.read(x, i); x = x + 1; r.write(i, x);",
        "r.read(x, 3); r.write(32w3, x);",
        "r.read(x, meta.index); s.read(x, 1); hdr.ethernet.kind = 2; r.write(meta.index, x);",
        "r.read(x, i); if (x > 2 && hdr.ethernet.isValid()) { x = 1; r.write(i, x); }",
        "r.read(x, i); if (x > 2) { x = 1; } else { x = 2; } r.write(i, x);",
        "r.read(x, i); { bit<32> y = x; r.write(i, y); }",
        "r.write(i, 1); r.write(i, 2);",
        "r.read(x, two.a.i); two.b.i = 1; r.write(two.a.i, x);",
    ] {
        let body = followed(statements);
        let count = |what: &str| body.matches(what).count();
        assert_eq!(count("I_r_write_crossed("), 1, "{statements}: {body}");
    }
    let body = followed("r.read(x, i); r.read(x, i);");
    assert_eq!(body.matches("I_r_read(").count(), 1, "{body}");
    assert_eq!(body.matches("I_r.read(").count(), 1, "{body}");
}

/// An access looks for a cut where the element may be another one, or the access before it was not made.
#[test]
fn an_element_that_may_be_another_one_crosses_itself() {
    for statements in [
        "r.read(x, i); i = 3; r.write(i, x);",
        "r.read(x, i); i[3:0] = 3; r.write(i, x);",
        "r.read(i, i); r.write(i, x);",
        "r.read(x, i); s.read(i, 0); r.write(i, x);",
        "s.read(x, i); r.write(i, x);",
        "r.read(x, i); r.write(x, i);",
        "r.read(x, 3); r.write(4, x);",
        "r.read(x, meta.index); meta = { 1 }; r.write(meta.index, x);",
        "r.read(x, two.a.i); two.b = two.a; r.write(two.a.i, x);",
        "r.read(x, two.a.i); two.a.i = 1; r.write(two.a.i, x);",
        "r.read(x, i); t.apply(); r.write(i, x);",
        "r.read(x, i); other(); r.write(i, x);",
        "r.read(x, i); x = call(i); r.write(i, x);",
        "r.read(x, i); two.many[call(i)] = two.a; r.write(i, x);",
        "r.read(x, i); r.write(i, call(i)); r.write(i, 1);",
        "if (x == 1) { r.read(x, i); } r.write(i, x);",
        "if (x == 1) { r.read(x, i); } else { r.read(x, i); x = 2; } r.write(i, x);",
        "r.read(x, i); if (x == 1) { i = 2; } r.write(i, x);",
        "r.read(x, i); if (x == 1) { x = 2; } else { i = 2; } r.write(i, x);",
        "r.read(x, i); { bit<32> i = 1; r.write(i, x); }",
        "{ bit<32> i = 1; r.read(x, i); } r.write(i, x);",
        "r.read(x, i); for (bit<32> n = 0; n < 2; n = n + 1) { r.write(i, x); i = n; }",
        "r.read(x, i); switch (x) { 1: { i = 2; } } r.write(i, x);",
        "r.read(x, i); switch (t.apply().action_run) { other: { r.write(i, x); } }",
        "hash(i, HashAlgorithm.crc32, 32w0, { x }, 32w8); r.write(i, x); \
         hash(i, HashAlgorithm.crc16, 32w0, { x }, 32w8); r.write(i, x);",
    ] {
        let body = followed(statements);
        assert!(!body.contains("I_r_write_crossed("), "{statements}: {body}");
        assert!(body.contains("I_r_write("), "{statements}: {body}");
    }
}
