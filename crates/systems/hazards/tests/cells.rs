//! Cells of small programs: their depths, worked out by hand, and keys.

use stateplane_compile::text;
use stateplane_hazards::{Cell, CellKey, Profile, cells};

/// A program whose ingress has `declarations` and `body`, and whose egress has `egress`.
fn program(declarations: &str, body: &str, egress: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> a; bit<32> b; bit<32> c; }}
struct headers {{ h_t h; }}
struct metadata {{ bit<32> x; bit<32> y; }}
register<bit<32>>(1024) r;
register<bit<32>>(1024) s;
register<bit<32>>(1024) u;
parser P(packet_in p, out headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
bit<32> next(in bit<32> value) {{ return value + 1; }}
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    bit<32> v; bit<32> w; bit<32> i;
    {declarations}
    apply {{ {body} }}
}}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
    bit<32> v;
    apply {{ {egress} }}
}}
control C(inout headers hdr, inout metadata meta) {{ apply {{ }} }}
control D(packet_out p, in headers hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

fn of(declarations: &str, body: &str, egress: &str) -> Vec<Cell> {
    let program = text(program(declarations, body, egress)).program_with_places();
    cells(&program.expect("a program"), &Profile::default())
}

/// Registers and depth of each cell of an ingress.
fn depths(body: &str) -> Vec<(Vec<String>, u32)> {
    let cells = of("", body, "");
    let pair = |cell: Cell| (cell.registers, cell.depth);
    cells.into_iter().map(pair).collect()
}

fn one(body: &str) -> u32 {
    match &depths(body)[..] {
        [(_, depth)] => *depth,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn depths_of_straight_lines() {
    // read 1, + 2, write 3
    assert_eq!(one("r.read(v, 0); r.write(0, v + 1);"), 3);
    // read 1, write 2
    assert_eq!(one("r.read(v, 0); r.write(0, v);"), 2);
    // read 1, * 4, write 5
    assert_eq!(one("r.read(v, 0); r.write(0, v * hdr.h.b);"), 5);
    // read 1, << by a constant is wiring, write 2
    assert_eq!(one("r.read(v, 0); r.write(0, v << 1);"), 2);
    // read 1, << 2, write 3
    assert_eq!(one("r.read(v, 0); r.write(0, v << hdr.h.a[4:0]);"), 3);
    // read 1, |+| 2, & 3, write 4
    assert_eq!(one("r.read(v, 0); r.write(0, (v |+| 5) & 0xff);"), 4);
    // read 1, slice and ++ are wiring, write 2
    assert_eq!(one("r.read(v, 0); r.write(0, v[15:0] ++ v[31:16]);"), 2);
    // What does not come from the register has all the time before: read 1, + 2, write 3.
    assert_eq!(
        one("i = hdr.h.a * hdr.h.b * 3; r.read(v, 0); r.write(0, v + i);"),
        3
    );
    // read 1, + 2 of the function, write 3
    assert_eq!(one("r.read(v, 0); r.write(0, next(v));"), 3);
    // What is written does not depend on what is read.
    assert_eq!(one("r.read(v, 0); r.write(0, hdr.h.a); hdr.h.b = v;"), 1);
}

#[test]
fn depths_of_branches() {
    // read 1, > 2, and the write waits for it: 3
    assert_eq!(
        one("r.read(v, 0); if (hdr.h.a > v) { r.write(0, hdr.h.a); }"),
        3
    );
    // read 1, + 2, select 3, write 4
    let body = "r.read(v, 0); if (hdr.h.a == 0) { w = v + 1; } else { w = 0; } r.write(0, w);";
    assert_eq!(one(body), 4);
    // read 1, == 2, select 3, write 4
    let body = "r.read(v, 0); w = v; if (v == 0) { w = 5; } r.write(0, w);";
    assert_eq!(one(body), 4);
    // read 1, == 2, ?: 3, write 4
    assert_eq!(
        one("r.read(v, 0); r.write(0, v == 0 ? hdr.h.a : hdr.h.b);"),
        4
    );
    // read 1, == 2; what follows the exit waits for it: write 3
    assert_eq!(
        one("r.read(v, 0); if (v == 0) { exit; } r.write(0, hdr.h.a);"),
        3
    );
    // read 1, switch (a comparison) 2, select 3, write 4
    let body = "r.read(v, 0); switch (v) { 1: { w = 2; } default: { w = 3; } } r.write(0, w);";
    assert_eq!(one(body), 4);
}

#[test]
fn registers_that_depend_on_each_other_are_one_cell() {
    let both = |depth| vec![(vec!["r".to_owned(), "s".to_owned()], depth)];
    // Each is written with the other's value: read 1, write 2.
    let swap = "r.read(v, 0); s.read(w, 0); r.write(0, w); s.write(0, v);";
    assert_eq!(depths(swap), both(2));
    // r tells the element of s, s what is written to r: read 1, read 2, + 3, write 4.
    let chain = "r.read(i, hdr.h.a); s.read(v, i); s.write(i, v + 1); r.write(hdr.h.a, v);";
    assert_eq!(depths(chain), both(4));
}

#[test]
fn registers_of_which_only_one_depends_on_the_other_are_two() {
    let two = vec![(vec!["r".to_owned()], 3), (vec!["s".to_owned()], 3)];
    assert_eq!(
        depths("r.read(v, 0); r.write(0, v + 1); s.read(w, 0); s.write(0, w + 2);"),
        two
    );
    assert_eq!(
        depths("r.read(v, 0); r.write(0, v + 1); s.read(w, 0); s.write(0, w + v);"),
        two
    );
    // A ring: the place is a cell, what is only written is none.
    assert_eq!(
        depths("r.read(i, 0); s.write(i, hdr.h.a); r.write(0, i + 1);"),
        vec![(vec!["r".to_owned()], 3)]
    );
    assert_eq!(depths("r.read(v, 0); hdr.h.a = v; s.write(0, v);"), vec![]);
}

#[test]
fn a_table_on_the_path_costs_its_lookup() {
    let declarations = "action set(bit<32> x) { w = x; }
        table t { key = { v: exact; } actions = { set; NoAction; } }";
    // read 1, lookup 3, select 4, write 5
    let cells = of(
        declarations,
        "r.read(v, 0); w = 0; t.apply(); r.write(0, w);",
        "",
    );
    assert_eq!(cells[0].depth, 5);
    let operations: Vec<(&str, u32)> = cells[0]
        .path
        .iter()
        .map(|step| (step.operation.as_str(), step.ends))
        .collect();
    assert_eq!(
        operations,
        [("read r", 1), ("lookup", 3), ("select", 4), ("write r", 5)]
    );
    let lines: Vec<&str> = cells[0]
        .path
        .iter()
        .filter_map(|step| step.place.split(':').nth(1))
        .collect();
    assert_eq!(lines, ["18"; 4], "{:?}", cells[0].path);
}

#[test]
fn keys_are_the_indices() {
    let key = |body: &str| of("", body, "")[0].key.clone();
    assert_eq!(key("r.read(v, 7); r.write(7, v + 1);"), CellKey::Constant);
    let CellKey::One { index, inputs } = key(
        "hash(i, HashAlgorithm.crc16, 32w0, { hdr.h.a, hdr.h.b }, 32w1024);
         r.read(v, i); r.write(i, v + 1);",
    ) else {
        panic!("one index");
    };
    assert!(index.starts_with("hash crc16(hdr.h.a, hdr.h.b"), "{index}");
    let inputs = inputs.expect("inputs");
    assert!(
        inputs.contains("hdr.h.a") && inputs.contains("hdr.h.b"),
        "{inputs:?}"
    );
    let several = key("r.read(v, hdr.h.a); r.read(w, hdr.h.b); r.write(hdr.h.a, v + w);");
    assert_eq!(
        several,
        CellKey::Several(vec!["hdr.h.a".to_owned(), "hdr.h.b".to_owned()])
    );
    let dependent = key("r.read(v, hdr.h.a); r.read(w, v); r.write(v, w + 1);");
    assert_eq!(dependent, CellKey::Dependent);
    // Another cell's element as index: fixed before this one is read.
    let body = "s.read(i, 0); s.write(0, i + 1); r.read(v, i); r.write(i, v + 1);";
    let CellKey::One { index, inputs } = key(body) else {
        panic!("one index");
    };
    assert_eq!((index.as_str(), inputs), ("value of s(0, ?)", None));
}

#[test]
fn rows_of_a_sketch_are_cells_with_keys_of_their_own() {
    let body = "hash(i, HashAlgorithm.crc16, 32w0, { hdr.h.a }, 32w1024);
        r.read(v, i); r.write(i, v + 1);
        hash(i, HashAlgorithm.crc32, 32w0, { hdr.h.a }, 32w1024);
        s.read(v, i); s.write(i, v + 1);";
    let cells = of("", body, "");
    assert_eq!(cells.len(), 2);
    assert!(cells.iter().all(|cell| cell.depth == 3));
    assert_ne!(cells[0].key, cells[1].key);
}

#[test]
fn loops_and_the_way_from_ingress_to_egress_are_told() {
    let body = "r.read(v, 0);
        for (bit<32> n = 0; n < hdr.h.a; n = n + 1) { v = v + hdr.h.b; r.write(0, v); }";
    let cells = of("", body, "");
    assert!(cells[0].loops);
    // read 1, + 2, + 3, write 4, after two rounds
    assert_eq!(cells[0].depth, 4);
    let cells = of("", "r.read(meta.x, 0);", "r.write(0, meta.x + 1);");
    assert_eq!((cells[0].depth, cells[0].spans), (3, true));
}

#[test]
fn a_profile_says_what_operations_cost() {
    let source = program("", "r.read(v, 0); r.write(0, v / 3);", "");
    let program = text(source).program_with_places().expect("a program");
    assert_eq!(cells(&program, &Profile::default())[0].depth, 18);
    let profile = Profile::parse("read = 2\ndivide = 40\n").expect("a profile");
    assert_eq!(cells(&program, &profile)[0].depth, 43);
}
