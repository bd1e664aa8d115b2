//! The blocks around those of the program.

use super::{Added, Emit};
use crate::path::type_of;
use crate::travel::Traveller;
use stateplane_ir::Type;
use std::fmt::Write as _;

/// Names of the blocks and types around the program, none of which it has.
pub(super) struct Around {
    pub(super) headers: String,
    pub(super) metadata: String,
    resume: String,
    /// Of the arrays, in a frame of the walk.
    pub(super) values: String,
    key: String,
    bytes: String,
    /// Reads what an array was when a snapshot was begun.
    pub(super) frozen: String,
    pub(super) parser: String,
    verify: String,
    pub(super) ingress: String,
    egress: String,
    compute: String,
    deparser: String,
    pub(super) shards: String,
    without_flow: String,
}

impl Around {
    pub(super) fn new(added: &Added) -> Self {
        let free = |name| added.names.free(name);
        Self {
            headers: free("protected_headers_t"),
            metadata: free("protected_metadata_t"),
            resume: free("flow_resume_t"),
            values: free("snapshot_values_t"),
            key: free("FlowKey"),
            bytes: free("HeaderBytes"),
            frozen: free("SnapshotValues"),
            parser: free("ProtectedParser"),
            verify: free("ProtectedVerifyChecksum"),
            ingress: free("ProtectedIngress"),
            egress: free("ProtectedEgress"),
            compute: free("ProtectedComputeChecksum"),
            deparser: free("ProtectedDeparser"),
            shards: free("PROTECTED_SHARDS"),
            without_flow: free("state_without_flow"),
        }
    }
}

/// The parameters of ingress and egress.
pub(super) fn params(around: &Around) -> String {
    format!(
        "    inout {} hdr,\n    inout {} meta,\n    inout standard_metadata_t standard_metadata\n",
        around.headers, around.metadata
    )
}

impl Emit<'_> {
    pub(super) fn blocks(&self, added: &Added) -> String {
        let around = Around::new(added);
        let mut out = String::from(
            "// The blocks of the replication library around those above: see p4/lib/replication.p4.\n\n",
        );
        self.types(added, &around, &mut out);
        self.parser(added, &around, &mut out);
        self.checksums(added, &around, &mut out);
        self.flow_key(added, &around, &mut out);
        if self.ingress.restructures {
            self.header_bytes(&around, &mut out);
        }
        self.ingress(added, &around, &mut out);
        self.last(added, &around, &mut out);
        out
    }

    fn snippet(&self, span: stateplane_diagnostics::Span) -> &str {
        self.input.sources.snippet(span)
    }

    /// Types of the program's headers and metadata, as ingress names them.
    pub(super) fn own_types(&self) -> (&str, &str) {
        let params = &self.pipeline.ingress.declaration.signature.params;
        let ty = |at: usize| {
            params
                .get(at)
                .map_or("", |param| self.snippet(param.ty.span))
        };
        (ty(0), ty(1))
    }

    fn resume_bits(&self) -> u32 {
        self.travellers.iter().map(|traveller| traveller.bits).sum()
    }

    fn types(&self, added: &Added, around: &Around, out: &mut String) {
        let library = |name| added.names.library(name);
        let (headers, metadata) = self.own_types();
        let _ = write!(
            out,
            "// Decisions of ingress about a packet that waits, in front of it on its path.\n\
             header {} {{\n",
            around.resume
        );
        for Traveller { field, bits, .. } in self.travellers {
            let _ = writeln!(out, "    bit<{bits}> {field};");
        }
        let odd = self.resume_bits() % 8;
        if odd != 0 {
            let _ = writeln!(out, "    bit<{}> unused_bits;", 8 - odd);
        }
        let _ = write!(
            out,
            "}}\n\nstruct {} {{\n    {} replication;\n    {} resume;\n    {headers} own;\n}}\n\n\
             struct {} {{\n    {} replication;\n    {metadata} own;\n}}\n\n",
            around.headers,
            library("replication_headers_t"),
            around.resume,
            around.metadata,
            library("replication_metadata_t"),
        );
    }

    fn parser(&self, added: &Added, around: &Around, out: &mut String) {
        let _ = write!(
            out,
            "parser {}(\n    packet_in packet,\n    out {} hdr,\n    inout {} meta,\n    \
             inout standard_metadata_t standard_metadata\n) {{\n    {}() replication;\n    {} own;\n
    state start {{
        replication.apply(packet, hdr.replication, meta.replication, standard_metadata);
        transition select(meta.replication.parse_program, meta.replication.arriving) {{
            (true, false): came_back;
            (true, _): own_headers;
            default: accept;
        }}
    }}

    state came_back {{
        transition select(hdr.replication.message.type) {{
            {}: resume;
            {}: resume;
            default: own_headers;
        }}
    }}

    state resume {{
        packet.extract(hdr.resume);
        transition own_headers;
    }}

    state own_headers {{
        own.apply(packet, hdr.own, meta.own, standard_metadata);
        transition accept;
    }}
}}\n\n",
            around.parser,
            around.headers,
            around.metadata,
            added.names.library("ReplicationParser"),
            self.named(self.pipeline.parser.construct),
            added.names.library("TYPE_WRITE_REPLY"),
            added.names.library("TYPE_RENEW_REPLY"),
        );
    }

    /// An instance of a block of the program that keeps its name for control planes.
    pub(super) fn named(&self, construct: stateplane_diagnostics::Span) -> String {
        let construct = self.snippet(construct);
        let name = construct
            .split(['(', '<'])
            .next()
            .unwrap_or(construct)
            .trim();
        format!("@name(\".{name}\") {construct}")
    }

    pub(super) fn checksums(&self, added: &Added, around: &Around, out: &mut String) {
        let has_checks = !self.pipeline.verify.declaration.body.statements.is_empty();
        let _ = write!(
            out,
            "control {}(inout {} hdr, inout {} meta) {{\n    {}() replication;\n",
            around.verify,
            around.headers,
            around.metadata,
            added.names.library("ReplicationVerifyChecksum"),
        );
        if has_checks {
            let own = self.named(self.pipeline.verify.construct);
            let _ = writeln!(out, "    {own} own;");
        }
        out.push_str("\n    apply {\n        replication.apply(hdr.replication);\n");
        if has_checks {
            out.push_str(match self.plan {
                None => {
                    "        // What came with a message was looked at when it arrived.\n        \
                     if (!hdr.replication.message.isValid()) {\n            \
                     own.apply(hdr.own, meta.own);\n        }\n"
                }
                Some(_) => {
                    "        // Messages and frames of the walk are not the program's.\n        \
                     if (!hdr.replication.message.isValid() && !hdr.walk.isValid()) {\n            \
                     own.apply(hdr.own, meta.own);\n        }\n"
                }
            });
        }
        out.push_str("    }\n}\n\n");
        let _ = write!(
            out,
            "control {}(inout {} hdr, inout {} meta) {{\n    {}() replication;\n    {} own;\n\n    \
             apply {{\n        replication.apply(hdr.replication);\n        \
             own.apply(hdr.own, meta.own);\n    }}\n}}\n\n",
            around.compute,
            around.headers,
            around.metadata,
            added.names.library("ReplicationComputeChecksum"),
            self.named(self.pipeline.compute.construct),
        );
    }

    fn flow_key(&self, added: &Added, around: &Around, out: &mut String) {
        let library = |name| added.names.library(name);
        let keyed = &self.states.keyed;
        let parts = keyed.key.as_deref().unwrap_or_default();
        let params = &self.pipeline.ingress.declaration.signature.params;
        let params: Vec<String> = params
            .iter()
            .map(|param| format!("    in {} {},\n", self.snippet(param.ty.span), param.name))
            .collect();
        let mut conditions = Vec::new();
        let roots = crate::roots(self.input, self.pipeline);
        let mut headers = Vec::new();
        for part in parts {
            roots.headers(&part.expr, &mut headers);
        }
        conditions.extend(headers.iter().map(|header| format!("{header}.isValid()")));
        if let Some(when) = &keyed.when {
            conditions = vec![format!("({})", when.text)];
        }
        let condition = if conditions.is_empty() {
            "true".to_owned()
        } else {
            conditions.join("\n            && ")
        };
        let flow = added.names.free("flow");
        let shard = added.names.free("flow_shard");
        let own = Self::concatenated(parts);
        let key = match &keyed.reverse {
            None => format!("        {flow}.key = 8w{} ++ {own};\n", keyed.class),
            Some(reverse) => format!(
                "        bit<120> one_way = {own};\n        \
                 bit<120> other_way = {};\n        \
                 // Both directions of a flow have one key.\n        \
                 if (other_way < one_way) {{\n            one_way = other_way;\n        }}\n        \
                 {flow}.key = 8w{} ++ one_way;\n",
                Self::concatenated(reverse),
                keyed.class
            ),
        };
        let _ = write!(
            out,
            "// To which flow a packet belongs, as it arrives.\ncontrol {}(\n{}    inout {} {flow}\n) {{\n    \
             {}({}) {shard};\n\n    \
             apply {{\n        {flow}.known = {condition};\n{key}        \
             {shard}.apply({flow});\n    }}\n}}\n\n",
            around.key,
            params.concat(),
            library("replication_metadata_t"),
            library("ReplicationShard"),
            around.shards,
        );
    }

    /// A control that tells how long the valid headers are together.
    fn header_bytes(&self, around: &Around, out: &mut String) {
        let (headers, _) = self.own_types();
        let _ = write!(
            out,
            "control {}(in {headers} hdr, out bit<16> bytes) {{\n    apply {{\n        bytes = 0;\n",
            around.bytes
        );
        for (way, bytes) in self.headers() {
            let _ = write!(
                out,
                "        if (hdr.{way}.isValid()) {{\n            bytes = bytes + {bytes};\n        }}\n"
            );
        }
        out.push_str("    }\n}\n\n");
    }

    /// All headers of the program with their bytes, elements of stacks one by one.
    fn headers(&self) -> Vec<(String, u32)> {
        let program = self.input.ir;
        let Type::Struct(id) = program.pipeline.headers else {
            return Vec::new();
        };
        let Some(def) = program.structs.get(id.index()) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let mut open: Vec<String> = def.fields.iter().rev().map(|f| f.name.clone()).collect();
        while let Some(way) = open.pop() {
            let parts: Vec<String> = way.split('.').map(str::to_owned).collect();
            match type_of(program, program.pipeline.headers, &parts) {
                Some(Type::Header(id)) => {
                    let fields = program.structs.get(id.index()).map(|def| &def.fields);
                    let bits = fields.into_iter().flatten().filter_map(|field| {
                        // The length of a varbit is not known here; such are not added.
                        field.ty.scalar_width()
                    });
                    out.push((way, bits.sum::<u32>() / 8));
                }
                Some(Type::Stack(id)) => {
                    let size = program.stacks.get(id.index()).map_or(0, |stack| stack.size);
                    open.extend((0..size).rev().map(|at| format!("{way}[{at}]")));
                }
                Some(Type::Struct(id) | Type::Union(id)) => {
                    if let Some(def) = program.structs.get(id.index()) {
                        let inner = def.fields.iter().rev();
                        open.extend(inner.map(|field| format!("{way}.{}", field.name)));
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// The head of the ingress, with what it declares.
    fn ingress_locals(&self, added: &Added, around: &Around, out: &mut String) {
        let bits = self.state_bytes() * 8;
        let state = &added.state;
        let _ = write!(
            out,
            "control {}(\n{}) {{\n    {}() flow_key;\n    {}() replication_before;\n    \
             {}() replication_after;\n    {} own;\n",
            around.ingress,
            params(around),
            around.key,
            added.names.library("ReplicationIngressBefore"),
            added.names.library("ReplicationIngressAfter"),
            self.named(self.pipeline.ingress.construct),
        );
        if self.ingress.restructures {
            let _ = writeln!(
                out,
                "    {0}() bytes_before;\n    {0}() bytes_after;\n    bit<16> shorter;\n    bit<16> longer;",
                around.bytes
            );
        }
        let _ = write!(
            out,
            "    // Packets dropped because they wrote state without belonging to a flow.\n    \
             counter(1, CounterType.packets) {};\n    {} {state};\n    bit<{bits}> before;\n    \
             bit<{bits}> after;\n\n    apply {{\n",
            around.without_flow, added.state_type,
        );
    }

    fn ingress(&self, added: &Added, around: &Around, out: &mut String) {
        let bits = self.state_bytes() * 8;
        let used: u32 = self.fields.all.iter().map(|field| field.bits).sum();
        let state = &added.state;
        self.ingress_locals(added, around, out);
        out.push_str(
            "        if (meta.replication.arriving
            && standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0) {
            flow_key.apply(hdr.own, meta.own, standard_metadata, meta.replication);
        }
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process) {
            // As long as it was when it arrived, also if it comes from the store.
            standard_metadata.packet_length = (bit<32>)meta.replication.inner_length;
            before = 0;
            if (meta.replication.found) {
                before = meta.replication.value;
            }
",
        );
        let mut low = used;
        let mut packed = Vec::new();
        if bits > used {
            packed.push(format!("{}w0", bits - used));
        }
        for element in &self.fields.all {
            let high = low - 1;
            low -= element.bits;
            let (into, from) = if element.signed {
                (
                    format!("(int<{}>)", element.bits),
                    format!("(bit<{}>)", element.bits),
                )
            } else {
                (String::new(), String::new())
            };
            let field = format!("{state}.{}", element.name);
            let _ = writeln!(out, "            {field} = {into}before[{high}:{low}];");
            packed.push(format!("{from}{field}"));
        }
        if self.ingress.restructures {
            out.push_str("            bytes_before.apply(hdr.own, shorter);\n");
        }
        let _ = write!(
            out,
            "            own.apply(hdr.own, meta.own, standard_metadata, {state});\n            after = {};\n",
            packed.join(" ++ ")
        );
        let _ = write!(
            out,
            "            if (after != before) {{
                if (meta.replication.found) {{
                    meta.replication.value = after;
                    meta.replication.write = true;
                }} else {{
                    {}.count(0);
                    mark_to_drop(standard_metadata);
                }}
            }}
            if (meta.replication.found
                && (meta.replication.write
                    || meta.replication.behind
                    || meta.replication.slot.sequence != meta.replication.slot.acknowledged)
                && standard_metadata.egress_spec != 511) {{
                hdr.resume.setValid();
",
            around.without_flow
        );
        for traveller in self.travellers {
            let to_bits = traveller.casts.as_ref().map_or("", |(to, _)| to);
            let _ = writeln!(
                out,
                "                hdr.resume.{} = {to_bits}{};",
                traveller.field, traveller.place
            );
        }
        let mut odd = String::new();
        if !self.resume_bits().is_multiple_of(8) {
            odd.push_str("                hdr.resume.unused_bits = 0;\n");
        }
        let mut length = format!(
            "meta.replication.inner_length + {}",
            self.resume_bits().div_ceil(8)
        );
        if self.ingress.restructures {
            odd.push_str("                bytes_after.apply(hdr.own, longer);\n");
            length.push_str("\n                    + longer - shorter");
        }
        let _ = write!(
            out,
            "{odd}                meta.replication.inner_length = {length};
            }}
        }}
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.release && hdr.resume.isValid()) {{
"
        );
        for traveller in self.travellers {
            let from_bits = traveller.casts.as_ref().map_or("", |(_, from)| from);
            let _ = writeln!(
                out,
                "            {} = {from_bits}hdr.resume.{};",
                traveller.place, traveller.field
            );
        }
        out.push_str("            hdr.resume.setInvalid();\n        }\n    }\n}\n\n");
    }

    pub(super) fn last(&self, added: &Added, around: &Around, out: &mut String) {
        let library = |name| added.names.library(name);
        let in_front: &[&str] = match self.plan {
            None => &["resume"],
            Some(_) => &["generated", "walk", "values"],
        };
        let in_front = in_front.iter();
        let in_front: String = in_front
            .map(|header| format!("        packet.emit(hdr.{header});\n"))
            .collect();
        let _ = write!(
            out,
            "control {}(\n{}) {{\n    {}() replication;\n    {} own;\n
    apply {{
        replication.apply(hdr.replication, meta.replication, standard_metadata);
        // Messages are not the program's.
        if (!hdr.replication.udp.isValid()) {{
            own.apply(hdr.own, meta.own, standard_metadata);
        }}
    }}
}}

control {}(packet_out packet, in {} hdr) {{
    {}() replication;
    {} own;

    apply {{
        replication.apply(packet, hdr.replication);
{in_front}        own.apply(packet, hdr.own);
    }}
}}

V1Switch(
    {}(),
    {}(),
    {}(),
    {}(),
    {}(),
    {}()
) main;",
            around.egress,
            params(around),
            library("ReplicationEgress"),
            self.named(self.pipeline.egress.construct),
            around.deparser,
            around.headers,
            library("ReplicationDeparser"),
            self.named(self.pipeline.deparser.construct),
            around.parser,
            around.verify,
            around.ingress,
            around.egress,
            around.compute,
            around.deparser,
        );
    }
}
