//! The blocks around those of the program.

use super::Emit;
use crate::plan::{Age, Otherwise};
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::Signature;
use std::fmt::Write as _;

impl Emit<'_> {
    /// An instance of a block of the program that keeps its name for control planes. The
    /// constructor's call may name the block by a macro.
    fn named(&self, signature: &Signature, construct: Span) -> String {
        let construct = self.input.sources.snippet(construct);
        let at = construct.find(['(', '<']).unwrap_or(construct.len());
        let (name, rest) = (&signature.name, &construct[at..]);
        format!("@name(\".{name}\") {name}{rest}")
    }

    /// Type of a parameter of ingress as written.
    fn own_type(&self, at: usize) -> &str {
        let params = &self.pipeline.ingress.declaration.signature.params;
        let ty = params.get(at).map(|param| param.ty.span);
        ty.map_or("", |span| self.input.sources.snippet(span))
    }

    pub(super) fn blocks(&self) -> String {
        let free = |name| self.names.free(name);
        let own = self.pipeline;
        let (headers, metadata) = (free("synced_headers_t"), free("synced_metadata_t"));
        let mut out = format!(
            "// The blocks of the sync library around those above: see p4/lib/sync.p4.\n\n\
             struct {headers} {{\n    {} sync;\n    {} own;\n}}\n\n\
             struct {metadata} {{\n    {} sync;\n    {} own;\n}}\n\n",
            self.library("sync_headers_t"),
            self.own_type(0),
            self.library("sync_metadata_t"),
            self.own_type(1),
        );
        let blocks = [
            "SyncedParser",
            "SyncedVerifyChecksum",
            "SyncedIngress",
            "SyncedEgress",
            "SyncedComputeChecksum",
            "SyncedDeparser",
        ]
        .map(free);
        let [parser, verify, ingress, egress, compute, deparser] = &blocks;
        let params = format!(
            "    inout {headers} hdr,\n    inout {metadata} meta,\n    \
             inout standard_metadata_t standard_metadata\n"
        );
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "parser {parser}(\n    packet_in packet,\n    out {headers} hdr,\n    \
             inout {metadata} meta,\n    inout standard_metadata_t standard_metadata\n) {{\n    \
             {}() sync;\n    {} own;\n
    state start {{
        sync.apply(packet, hdr.sync, meta.sync, standard_metadata);
        transition select(hdr.sync.ethernet.isValid()) {{
            true: accept;
            default: own_headers;
        }}
    }}

    state own_headers {{
        own.apply(packet, hdr.own, meta.own, standard_metadata);
        transition accept;
    }}
}}\n\n",
            self.library("SyncParser"),
            self.named(&own.parser.declaration.signature, own.parser.construct),
        );
        self.checksum(
            verify,
            "SyncVerifyChecksum",
            [&headers, &metadata],
            &mut out,
        );
        let (ages, late) = self.ages();
        let _ = write!(
            out,
            "control {ingress}(\n{params}) {{\n    {}() sync;\n    {} own;\n{ages}
    apply {{
        sync.apply(hdr.sync, meta.sync, standard_metadata);
        if (!meta.sync.taken) {{
{late}            // A write and its place in the ring are one step, and a cut comes between two packets.
            @atomic {{
                own.apply(hdr.own, meta.own, standard_metadata);
            }}
        }}
    }}
}}\n\ncontrol {egress}(\n{params}) {{\n    {} own;\n
    apply {{
        if (!hdr.sync.ethernet.isValid()) {{
            @atomic {{
                own.apply(hdr.own, meta.own, standard_metadata);
            }}
        }}
    }}
}}\n\n",
            self.library("SyncIngress"),
            self.named(&own.ingress.declaration.signature, own.ingress.construct),
            self.named(&own.egress.declaration.signature, own.egress.construct),
        );
        self.checksum(
            compute,
            "SyncComputeChecksum",
            [&headers, &metadata],
            &mut out,
        );
        let _ = write!(
            out,
            "control {deparser}(packet_out packet, in {headers} hdr) {{\n    {}() sync;\n    \
             {} own;\n
    apply {{
        sync.apply(packet, hdr.sync);
        own.apply(packet, hdr.own);
    }}
}}\n\nV1Switch(\n    {}()\n) main;",
            self.library("SyncDeparser"),
            self.named(&own.deparser.declaration.signature, own.deparser.construct),
            blocks.join("(),\n    "),
        );
        out
    }

    /// Declarations and statements of ingress that tell late packets of groups with an age.
    fn ages(&self) -> (String, String) {
        let (mut declared, mut stated) = (String::new(), String::new());
        for group in &self.plan.groups {
            let Some(Age { us, otherwise }) = group.age else {
                continue;
            };
            let number = group.group;
            // Writing to a string cannot fail.
            let _ = writeln!(declared, "    {}() age_{number};", self.library("SyncAge"));
            let _ = writeln!(
                stated,
                "            late = false;\n            age_{number}.apply(\n                \
                 {number},\n                {us},\n                \
                 standard_metadata.ingress_global_timestamp,\n                late\n            );"
            );
            if otherwise == Otherwise::Drop {
                stated.push_str(
                    "            if (late) {\n                mark_to_drop(standard_metadata);\n                \
                     return;\n            }\n",
                );
            }
        }
        if !declared.is_empty() {
            declared.push_str("    bool late;\n");
        }
        (declared, stated)
    }

    /// A control that verifies or computes checksums.
    fn checksum(
        &self,
        name: &str,
        library: &str,
        [headers, metadata]: [&str; 2],
        out: &mut String,
    ) {
        let of = match library {
            "SyncVerifyChecksum" => &self.pipeline.verify,
            _ => &self.pipeline.compute,
        };
        let _ = write!(
            out,
            "control {name}(inout {headers} hdr, inout {metadata} meta) {{\n    {}() sync;\n",
            self.library(library),
        );
        let is_empty = of.declaration.body.statements.is_empty();
        if !is_empty {
            let _ = writeln!(
                out,
                "    {} own;",
                self.named(&of.declaration.signature, of.construct)
            );
        }
        out.push_str("\n    apply {\n        sync.apply(hdr.sync);\n");
        if !is_empty {
            out.push_str(
                "        if (!hdr.sync.ethernet.isValid()) {\n            \
                 own.apply(hdr.own, meta.own);\n        }\n",
            );
        }
        out.push_str("    }\n}\n\n");
    }
}
