//! P4 programs of any size, to see how the front end grows with its input.

use std::fmt::Write as _;

/// Common part of all programs: about 60 lines.
const FRAME: &str = r"#include <core.p4>
#include <v1model.p4>

header pair_t {
    bit<16> left;
    bit<16> right;
}

struct headers_t {
    pair_t first;
    pair_t second;
}

struct metadata_t {
    bit<16> sum;
    bit<8>  kind;
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

";

/// A program of `parts` like parts, about 70 lines each: a control with actions, tables
/// and nested conditions, and two parser states.
pub fn program(parts: usize) -> String {
    let mut text = FRAME.to_owned();
    text.push_str(
        "parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,\n             \
         inout standard_metadata_t standard) {\n    state start {\n        \
         packet.extract(hdr.first);\n        transition step0;\n    }\n",
    );
    for part in 0..parts {
        state(&mut text, part, parts);
    }
    text.push_str("}\n\n");
    for part in 0..parts {
        control(&mut text, part);
    }
    text.push_str(
        "control MyIngress(inout headers_t hdr, inout metadata_t meta,\n                \
         inout standard_metadata_t standard) {\n",
    );
    for part in 0..parts {
        let _ = writeln!(text, "    Part{part}() part{part};");
    }
    text.push_str("    apply {\n");
    for part in 0..parts {
        let _ = writeln!(text, "        part{part}.apply(hdr, meta, standard);");
    }
    text.push_str(
        "    }\n}\n\n\
         V1Switch(MyParser(), Check(), MyIngress(), MyEgress(), Check(), MyDeparser()) main;\n",
    );
    text
}

/// A program whose ingress has `count` actions and calls each.
pub fn called_actions(count: usize) -> String {
    let mut locals = String::new();
    let mut calls = String::new();
    for number in 0..count {
        let _ = writeln!(
            locals,
            "    action act{number}() {{ meta.kind = {}; }}",
            number % 256
        );
        let _ = writeln!(calls, "        act{number}();");
    }
    one_control(&locals, &calls)
}

/// A program with a table of `count` actions.
pub fn listed_actions(count: usize) -> String {
    let mut locals = String::new();
    let mut list = String::new();
    for number in 0..count {
        let _ = writeln!(
            locals,
            "    action act{number}() {{ meta.kind = {}; }}",
            number % 256
        );
        let _ = writeln!(list, "            act{number};");
    }
    let _ = write!(
        locals,
        "    table choose {{\n        key = {{ meta.kind : exact; }}\n        actions = {{\n{list}        \
         }}\n        default_action = act0();\n    }}\n"
    );
    one_control(&locals, "        choose.apply();\n")
}

/// A program with a `switch` of `count` cases.
pub fn switch_cases(count: usize) -> String {
    let mut cases = String::new();
    for number in 0..count {
        let _ = writeln!(
            cases,
            "            {number}: {{ meta.kind = {}; }}",
            number % 256
        );
    }
    one_control(
        "",
        &format!("        switch (meta.sum) {{\n{cases}        }}\n"),
    )
}

/// A program whose ingress has these locals and statements.
fn one_control(locals: &str, statements: &str) -> String {
    format!(
        "{FRAME}parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,\n             \
         inout standard_metadata_t standard) {{\n    state start {{\n        \
         transition accept;\n    }}\n}}\n\n\
         control MyIngress(inout headers_t hdr, inout metadata_t meta,\n                \
         inout standard_metadata_t standard) {{\n{locals}    apply {{\n{statements}    }}\n}}\n\n\
         V1Switch(MyParser(), Check(), MyIngress(), MyEgress(), Check(), MyDeparser()) main;\n"
    )
}

fn state(text: &mut String, part: usize, parts: usize) {
    let next = match part + 1 {
        next if next < parts => format!("step{next}"),
        _ => "accept".to_owned(),
    };
    let value = part % 65_536;
    let _ = write!(
        text,
        "
    state step{part} {{
        meta.kind = meta.kind + 1;
        transition select(hdr.first.left, meta.kind) {{
            ({value}, 0 .. 7): more{part};
            ({value} &&& 0xff00, _): accept;
            default: {next};
        }}
    }}

    state more{part} {{
        packet.extract(hdr.second);
        transition {next};
    }}
"
    );
}

fn control(text: &mut String, part: usize) {
    let _ = write!(
        text,
        "control Part{part}(inout headers_t hdr, inout metadata_t meta,
        inout standard_metadata_t standard) {{
    register<bit<16>>(1024) seen;
    bit<16> last;

    action forward(bit<9> port, bit<16> label) {{
        standard.egress_spec = port;
        hdr.first.right = label;
    }}

    action drop() {{
        mark_to_drop(standard);
    }}

    action add(bit<16> amount) {{
        meta.sum = meta.sum |+| amount;
        hdr.first.left = (hdr.first.left ^ amount) & 0x7fff;
    }}

    table routes {{
        key = {{
            hdr.first.left  : lpm;
            hdr.first.right : exact;
        }}
        actions = {{
            forward;
            drop;
            add;
        }}
        size = 1024;
        default_action = drop();
    }}

    table kinds {{
        key = {{
            meta.kind : ternary;
        }}
        actions = {{
            add;
            NoAction;
        }}
        const entries = {{
            1 : add(1);
            2 &&& 6 : add(2);
            _ : NoAction();
        }}
    }}

    apply {{
        if (hdr.first.isValid() && meta.sum != {part}) {{
            seen.read(last, (bit<32>)(meta.sum & 1023));
            if (last < hdr.first.right || (last == 0 && meta.kind > 3)) {{
                seen.write((bit<32>)(meta.sum & 1023), last + 1);
                meta.sum = (hdr.first.left << 2) + (last >> 1) - (bit<16>)meta.kind;
            }} else if (routes.apply().hit) {{
                meta.sum = meta.sum + 1;
            }} else {{
                kinds.apply();
            }}
        }}
    }}
}}

"
    );
}
