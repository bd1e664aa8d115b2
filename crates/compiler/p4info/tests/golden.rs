//! P4Info of the program in `tests/golden`, and its two forms.

use proptest::prelude::*;
use stateplane_p4info::{GenerateError, binary, generate, proto, text};
use std::path::Path;

fn p4info(source: &str) -> Result<proto::P4Info, GenerateError> {
    let compiled = stateplane_compile::text(source).program_and_interface();
    let (program, interface) = compiled.unwrap_or_else(|refused| panic!("{refused}"));
    generate(&program, &interface)
}

#[test]
fn a_golden_program_has_its_p4info() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let source = std::fs::read_to_string(folder.join("objects.p4")).unwrap();
    let info = p4info(&source).unwrap();
    let made = text::write(&info).unwrap();
    let golden = folder.join("objects.txtpb");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &made).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(
        made, expected,
        "objects.txtpb; UPDATE_GOLDEN=1 writes it anew"
    );
    assert_eq!(text::read(&made).unwrap(), info, "the text form");
    assert_eq!(binary::read(&binary::write(&info)).unwrap(), info);
}

/// A program whose ingress has these locals and this `apply` block.
fn with_ingress(locals: &str, apply: &str) -> String {
    format!(
        "#include <v1model.p4>
        struct h {{}} struct m {{}}
        parser P(packet_in p, out h hdr, inout m meta, inout standard_metadata_t std) {{
            state start {{ transition accept; }}
        }}
        control C(inout h hdr, inout m meta) {{ apply {{}} }}
        control I(inout h hdr, inout m meta, inout standard_metadata_t std) {{
            {locals}
            apply {{ {apply} }}
        }}
        control E(inout h hdr, inout m meta, inout standard_metadata_t std) {{ apply {{}} }}
        control D(packet_out p, in h hdr) {{ apply {{}} }}
        V1Switch(P(), C(), I(), E(), C(), D()) main;"
    )
}

#[test]
fn wrong_annotations_are_refused() {
    let error = |locals: &str, apply: &str| p4info(&with_ingress(locals, apply)).unwrap_err();
    let register = |annotation: &str| format!("{annotation} register<bit<8>>(1) r;");
    assert!(matches!(
        error(&register("@id(0x02000001)"), ""),
        GenerateError::WrongPrefix {
            kind: "register",
            ..
        }
    ));
    for wrong in ["@id(0)", "@id(\"x\")", "@id", "@id(0x100000000)"] {
        assert!(
            matches!(error(&register(wrong), ""), GenerateError::InvalidId { .. }),
            "{wrong}"
        );
    }
    let two = "@id(1) register<bit<8>>(1) a; @id(1) register<bit<8>>(1) b;";
    assert!(matches!(error(two, ""), GenerateError::DuplicateId { .. }));
    let fields = "action a(@id(2) bit<8> x, @id(2) bit<8> y) {} table t { actions = { a; } }";
    assert!(matches!(
        error(fields, "t.apply();"),
        GenerateError::DuplicateId { .. }
    ));
    let selector = "@selector_size_semantics(\"sum\")
        action_selector(HashAlgorithm.crc32, 8, 8) s;";
    let message = error(selector, "").to_string();
    assert!(message.contains("sum_of_members"), "{message}");
}

#[test]
fn what_is_not_p4info_is_refused() {
    let message = text::read("tables { preamble { idd: 4 } }")
        .unwrap_err()
        .to_string();
    assert!(message.contains("idd"), "{message}");
    assert!(binary::read(&[0x0a, 0xff]).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(input in "\\PC{0,200}") {
        let _ = text::read(&input);
    }

    #[test]
    fn any_bytes_are_read_or_refused(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = binary::read(&input);
    }

    #[test]
    fn strings_survive_the_text_form(name in any::<String>(), bytes in any::<Vec<u8>>()) {
        let mut info = proto::P4Info::default();
        info.tables.push(proto::Table {
            preamble: Some(proto::Preamble { name, ..Default::default() }),
            initial_default_action: Some(proto::TableActionCall {
                action_id: 1,
                arguments: vec![proto::table_action_call::Argument {
                    param_id: 1,
                    value: bytes,
                }],
            }),
            ..Default::default()
        });
        prop_assert_eq!(text::read(&text::write(&info).unwrap()).unwrap(), info);
    }
}

/// A call whose arguments are copied in their own order runs what the checker makes around
/// the action; the control plane sees the action alone, and once.
#[test]
fn an_action_is_one_however_it_is_called() {
    let locals = "bit<8> x;
        action both(out bit<8> a, out bit<8> b) { a = 1; b = 2; }
        action data(out bit<8> a, out bit<8> b, bit<8> c) { a = c; b = 2; }
        table t {
            actions = { data(b = x, a = x); NoAction; }
            const default_action = NoAction();
        }";
    let apply = "both(x, x); both(b = x, a = x); t.apply();";
    let info = p4info(&with_ingress(locals, apply)).unwrap();
    let names = |action: &proto::Action| action.preamble.as_ref().unwrap().name.clone();
    let mut names: Vec<String> = info.actions.iter().map(names).collect();
    names.sort();
    assert_eq!(names, ["I.both", "I.data", "NoAction"]);
    let data = |action: &&proto::Action| action.preamble.as_ref().unwrap().name == "I.data";
    let data = info.actions.iter().find(data).unwrap();
    assert_eq!(data.params.len(), 1);
    assert_eq!(data.params[0].name, "c");
}

#[test]
fn actions_of_one_name_are_one() {
    let source = with_ingress(
        "@name(\"set\") action first(bit<9> port) { std.egress_spec = port; }
         @name(\"set\") action second(bit<9> port) { std.egress_spec = port; }
         table t { key = { std.ingress_port : exact; } actions = { first; } }
         table u { key = { std.ingress_port : exact; } actions = { second; } }",
        "t.apply(); u.apply();",
    );
    let info = p4info(&source).unwrap();
    let names = info
        .actions
        .iter()
        .filter_map(|action| action.preamble.as_ref());
    let named: Vec<u32> = names
        .filter(|preamble| preamble.name == "I.set")
        .map(|preamble| preamble.id)
        .collect();
    assert_eq!(named.len(), 1);
    for table in &info.tables {
        assert_eq!(table.action_refs[0].id, named[0]);
    }
}

#[test]
fn lines_of_an_annotation_stay_lines() {
    let source = with_ingress(
        "@entry_restriction(\"
            // a \\\\ and \\\"b\\\"
            port != 0;\\n\")
         table t { key = { std.ingress_port : exact; } actions = { NoAction; } }",
        "t.apply();",
    );
    let info = p4info(&source).unwrap();
    let preamble = info.tables[0].preamble.as_ref().unwrap();
    assert_eq!(
        preamble.annotations,
        ["@entry_restriction(\"\n            // a \\\\ and \\\"b\\\"\n            port != 0;\n\")"]
    );
}
