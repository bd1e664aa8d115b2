//! The P4-like text of checked programs.

use stateplane_check::compile;
use stateplane_syntax::{MemoryLoader, Options};

/// The text of a program whose ingress has this body.
fn ingress(body: &str) -> String {
    let options = Options {
        include_dirs: vec!["include".into()],
        ..Options::default()
    };
    let text = format!(
        "#include <v1model.p4>\n
        header h_t {{ bit<8> a; int<8> b; }}
        struct headers_t {{ h_t h; h_t[2] s; }}
        struct metadata_t {{ @field_list(1) bit<8> x; }}
        const bit<8> SEVEN = 3 + 4;
        parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t std) {{
            state start {{
                packet.extract(hdr.h);
                transition select(hdr.h.a) {{ SEVEN: accept; 8 .. 9: more; _: reject; }}
            }}
            state more {{ packet.extract(hdr.s.next); transition accept; }}
        }}
        control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{}} }}
        control E(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t std) {{ apply {{}} }}
        control I(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t std) {{ {body} }}
        control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
        V1Switch(P(), C(), I(), E(), C(), D()) main;"
    );
    let loader = MemoryLoader::new()
        .with(
            "include/core.p4",
            include_str!("../../../../p4/include/core.p4"),
        )
        .with(
            "include/v1model.p4",
            include_str!("../../../../p4/include/v1model.p4"),
        )
        .with("main.p4", text);
    let compiled = compile(&loader, "main.p4", &options);
    let errors: Vec<_> = compiled.diagnostics.iter().map(|d| &d.message).collect();
    let program = compiled.program.unwrap_or_else(|| panic!("{errors:?}"));
    stateplane_ir::p4_text(&program)
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn types_and_parsers_are_resolved() {
    let text = ingress("apply {}");
    has(
        &text,
        &[
            "header h_t {\n    bit<8> a;\n    int<8> b;\n}\n",
            "struct headers_t {\n    h_t h;\n    h_t[2] s;\n}\n",
            "    @field_list(1) bit<8> x;\n",
            "parser P(packet_in packet, out headers_t P.hdr, ",
            "0x7: accept;\n            0x8 .. 0x9: more;\n            _: reject;\n",
            "        packet.extract(P.hdr.s.next);\n",
            "// field list 1: x\nV1Switch(P, C, I, E, C",
        ],
    );
}

#[test]
fn tables_stand_in_their_control() {
    let text = ingress(
        "action set(bit<8> v) { meta.x = v; }
         table t {
             key = { hdr.h.a : ternary; hdr.h.isValid() : exact; }
             actions = { set; @defaultonly NoAction; }
             const entries = { (1 &&& 3, true): set(SEVEN); }
             size = 64;
         }
         apply { if (t.apply().hit) { exit; } }",
    );
    has(
        &text,
        &[
            "    action I.set(bit<8> I.set.v) {\n        I.meta.x = I.set.v;\n    }\n",
            "            I.hdr.h.a: ternary @name(\"hdr.h.a\");\n",
            "            @defaultonly NoAction();\n",
            "(0x1 &&& 0x3, 0x1): I.set(8w7);\n",
            "        size = 64;\n",
            "= I.t.apply().hit;\n",
            "            exit;\n",
        ],
    );
}

#[test]
fn expressions_are_folded_and_typed() {
    let text = ingress(
        "register<bit<8>>(4) r;
         apply {
             meta.x = SEVEN * 2 + hdr.h.a;
             hdr.h.b = -1;
             meta.x[3:0] = hdr.h.a[7:4];
             r.write(1, hdr.h.a > 3 ? 8w1 : meta.x);
             hash(meta.x, HashAlgorithm.crc16, 8w0, { hdr.h.a }, 8w4);
             for (bit<8> i = 0; i < 3; i = i + 1) { meta.x = i; }
         }",
    );
    has(
        &text,
        &[
            "register<bit<8>>(4) I.r;\n",
            "I.meta.x = 8w0xe + I.hdr.h.a;\n",
            "I.hdr.h.b = -8s1;\n",
            "I.meta.x[3:0] = I.hdr.h.a[7:4];\n",
            "I.r.write(32w1, (I.hdr.h.a > 8w3) ? 8w1 : I.meta.x);\n",
            "hash(I.meta.x, HashAlgorithm.crc16, 8w0, { I.hdr.h.a }, 8w4);\n",
            "for (;;) {\n",
            "between rounds {\n",
        ],
    );
}
