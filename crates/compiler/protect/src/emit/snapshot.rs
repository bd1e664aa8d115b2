//! Bounded inconsistency: arrays with two copies of each element in place of the program's
//! registers, and the blocks that keep snapshots of them.

use super::blocks::Around;
use super::{Added, Emit};
use crate::Class;
use crate::annotation::{Merge, Otherwise};
use crate::snapshot::{ELEMENT_BITS, Kept, Plan};
use crate::walk::Access;
use std::fmt::Write as _;

/// Buckets of the switch's table of records, of four each, a record having two. With so
/// many for the records of two snapshots, not one start in ten thousand hashes an element of
/// a thousand such that both its buckets are full; its snapshots then wait until a record of
/// the one before is idle.
fn buckets(elements: u64) -> u64 {
    8 * elements.next_power_of_two()
}

/// The call that takes the place of a read or write of an array.
pub(super) fn access(array: &Kept, access: &Access, added: &Added, texts: [&str; 2]) -> String {
    let [index, operand] = texts;
    let snapshot = &added.state;
    if access.writes {
        format!("{}({snapshot}, {index}, {operand});", array.write)
    } else {
        format!("{}({snapshot}, {operand}, {index});", array.read)
    }
}

/// The lines of the front that say what stores and switches need.
pub(super) fn needs(plan: &Plan, class: &Class, out: &mut String) {
    let values = "00000000".repeat(plan.arrays.len());
    let _ = write!(
        out,
        "//     idle_timeout_s = {{ default = 3600 }}\n\
         //\n\
         // and switches the section [replication], as lab/nat/switch.toml has it, and a\n\
         // packet generator, whose frames have the switch's number behind\n\
         // 88b5, to begin a snapshot each {} ms and to keep it within {} ms:\n\
         //\n\
         //     [[generators]]\n\
         //     port = 508\n\
         //     period_ms = 1\n\
         //     batch = {}\n\
         //     frame = \"000000000000 000000000000 88b5 00000001 00000000 00000000 0000 {values}\"\n",
        plan.period, plan.bound, plan.batch,
    );
    if plan.otherwise == Otherwise::Fail {
        let _ = write!(
            out,
            "//\n\
             // and, to fail beyond that, a watch that takes down the ports of hosts:\n\
             //\n\
             //     [[watches]]\n\
             //     register = \"snapshot_kept\"\n\
             //     max_age_ms = {}\n\
             //     ports = [0, 1]\n",
            plan.bound
        );
    }
    let _ = write!(
        out,
        "//\n// What all switches have, the dead ones too, is shown by\n//\n"
    );
    for merge in [Merge::Add, Merge::Or, Merge::Greatest] {
        let merged = plan.arrays.iter().filter(|array| array.merge == merge);
        let merged: Vec<&str> = merged.map(|array| array.field.as_str()).collect();
        if !merged.is_empty() {
            let _ = write!(
                out,
                "//     stateplane ctl store --config store.toml sketch --class {} --keys 1 \\\n\
                 //         --slots {} --merge {}\n\
                 //\n\
                 // for {}.",
                class.id,
                plan.elements,
                merge.name(),
                merged.join(", "),
            );
            out.push_str("\n//\n");
        }
    }
    let names: Vec<&str> = plan.arrays.iter().map(|a| a.field.as_str()).collect();
    let _ = write!(
        out,
        "// An element has the values of {} in this order.\n\n",
        names.join(", ")
    );
}

/// The library, and the arrays.
pub(super) fn includes(plan: &Plan, out: &mut String) {
    let _ = write!(
        out,
        "// Elements of a snapshot, and the records of two in the switch's table.\n\
         #define SNAPSHOT_KEYS 1\n\
         #define SNAPSHOT_SLOTS {}\n\
         #ifndef REPLICATION_BUCKETS\n\
         #define REPLICATION_BUCKETS {}\n\
         #endif\n\
         // From one snapshot to the next, and the bound, in µs.\n\
         #ifndef SNAPSHOT_PERIOD\n\
         #define SNAPSHOT_PERIOD {}\n\
         #endif\n\
         #ifndef SNAPSHOT_BOUND\n\
         #define SNAPSHOT_BOUND {}\n\
         #endif\n\
         #define SNAPSHOT_OTHERWISE {}\n",
        plan.elements,
        buckets(plan.elements),
        u64::from(plan.period) * 1000,
        u64::from(plan.bound) * 1000,
        match plan.otherwise {
            Otherwise::GoOn => "STALE_GOES_ON",
            Otherwise::Drop | Otherwise::Fail => "STALE_DROPS",
        },
    );
}

/// The registers of the arrays, and the actions that read and write them.
pub(super) fn arrays(plan: &Plan, added: &Added, out: &mut String) {
    let copy = added.names.library("snapshot_copy");
    let (snapshot, kind) = (&added.state, &added.state_type);
    for array in &plan.arrays {
        let Kept {
            bits,
            size,
            field,
            copies,
            copies_name,
            updated,
            updated_name,
            read,
            write,
            ..
        } = array;
        let _ = write!(
            out,
            "// Both copies of each element of {field}, and which of them was written last.\n\
             @name(\"{copies_name}\") register<bit<{bits}>>({}) {copies};\n\
             @name(\"{updated_name}\") register<bit<1>>({size}) {updated};\n\n\
             action {read}(inout {kind} {snapshot}, out bit<{bits}> value, in bit<32> index) {{\n    \
             {updated}.read({snapshot}.last, index);\n    \
             {copies}.read(value, {copy}(index, {snapshot}.last));\n}}\n\n\
             action {write}(in {kind} {snapshot}, in bit<32> index, in bit<{bits}> value) {{\n    \
             {copies}.write({copy}(index, {snapshot}.active), value);\n    \
             {updated}.write(index, {snapshot}.active);\n}}\n\n",
            2 * size,
        );
    }
}

impl Emit<'_> {
    /// The blocks around those of the program.
    pub(super) fn snapshot_blocks(&self, plan: &Plan, added: &Added) -> String {
        let around = Around::new(added);
        let mut out = String::from(
            "// The blocks of the replication library around those above: see p4/lib/snapshot.p4.\n\n",
        );
        self.snapshot_types(plan, added, &around, &mut out);
        self.snapshot_parser(added, &around, &mut out);
        self.checksums(added, &around, &mut out);
        frozen(plan, added, &around, &mut out);
        self.snapshot_ingress(plan, added, &around, &mut out);
        self.last(added, &around, &mut out);
        out
    }

    fn snapshot_types(&self, plan: &Plan, added: &Added, around: &Around, out: &mut String) {
        let library = |name| added.names.library(name);
        let (headers, metadata) = self.own_types();
        let _ = write!(
            out,
            "// The element of each array, in a frame of the walk.\nheader {} {{\n",
            around.values
        );
        for array in &plan.arrays {
            let _ = writeln!(out, "    bit<{ELEMENT_BITS}> {};", array.field);
        }
        let _ = write!(
            out,
            "}}\n\nstruct {} {{\n    {} replication;\n    {} generated;\n    {} walk;\n    \
             {} values;\n    {headers} own;\n}}\n\n\
             struct {} {{\n    {} replication;\n    {} snapshot;\n    {metadata} own;\n}}\n\n",
            around.headers,
            library("replication_headers_t"),
            library("ethernet_t"),
            library("snapshot_walk_t"),
            around.values,
            around.metadata,
            library("replication_metadata_t"),
            library("snapshot_metadata_t"),
        );
    }

    fn snapshot_parser(&self, added: &Added, around: &Around, out: &mut String) {
        let _ = write!(
            out,
            "parser {}(\n    packet_in packet,\n    out {} hdr,\n    inout {} meta,\n    \
             inout standard_metadata_t standard_metadata\n) {{\n    {}() replication;\n    {} own;\n
    state start {{
        replication.apply(packet, hdr.replication, meta.replication, standard_metadata);
        transition select(
            meta.replication.parse_program,
            meta.replication.arriving,
            standard_metadata.ingress_port
        ) {{
            (true, true, {}): walk;
            (true, true, _): own_headers;
            // Nothing but frames of the walk travels to the store and back.
            (true, _, _): walk;
            default: accept;
        }}
    }}

    state walk {{
        packet.extract(hdr.generated);
        packet.extract(hdr.walk);
        packet.extract(hdr.values);
        transition accept;
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
            added.names.library("SNAPSHOT_PORT"),
        );
    }

    fn snapshot_ingress(&self, plan: &Plan, added: &Added, around: &Around, out: &mut String) {
        let library = |name| added.names.library(name);
        let high = plan.state_bytes() * 8 - 1;
        let values = plan.arrays.iter();
        let values =
            values.map(|array| format!("\n                        ++ hdr.values.{}", array.field));
        let values: String = values.collect();
        let _ = write!(
            out,
            "control {}(\n{}) {{\n    {}() walk;\n    {}() walk_key;\n    {}() keep;\n    {}() age;\n    \
             {}() frozen;\n    {}({}) shard;\n    {}() replication_before;\n    {}() replication_after;\n    {} own;\n    \
             bool drops;\n
    apply {{
        walk.apply(hdr.walk, meta.snapshot, standard_metadata);
        if (meta.replication.arriving && meta.snapshot.walks) {{
            frozen.apply(meta.snapshot, hdr.values);
            meta.replication.known = true;
            walk_key.apply(hdr.walk, {}, meta.replication.key);
            shard.apply(meta.replication);
        }}
        replication_before.apply(hdr.replication, meta.replication, standard_metadata);
        if (meta.replication.process && hdr.walk.isValid()) {{
            if (meta.replication.found) {{
                keep.apply(
                    hdr.walk,
                    meta.replication.value[{high}:{}],
                    meta.replication.slot,
                    meta.replication.write
                );
                if (meta.replication.write) {{
                    meta.replication.value = hdr.walk.number{values};
                }}
            }}
            mark_to_drop(standard_metadata);
        }} else if (meta.replication.process) {{
            age.apply(standard_metadata, drops);
            if (drops) {{
                mark_to_drop(standard_metadata);
            }} else {{
                own.apply(hdr.own, meta.own, standard_metadata, meta.snapshot);
            }}
        }}
        replication_after.apply(hdr.replication, meta.replication, standard_metadata);
    }}
}}\n\n",
            around.ingress,
            super::blocks::params(around),
            library("SnapshotWalk"),
            library("SnapshotKey"),
            library("SnapshotKeep"),
            library("SnapshotAge"),
            around.frozen,
            library("ReplicationShard"),
            around.shards,
            library("ReplicationIngressBefore"),
            library("ReplicationIngressAfter"),
            self.named(self.pipeline.ingress.construct),
            self.states.keyed.class,
            high - (ELEMENT_BITS - 1),
        );
    }
}

/// The control that reads an element of each array as it was when the snapshot was begun.
fn frozen(plan: &Plan, added: &Added, around: &Around, out: &mut String) {
    let library = |name| added.names.library(name);
    let copy = library("snapshot_copy");
    let synchronise = library("RULE_SYNCHRONISE");
    let snapshot = &added.state;
    let values = added.names.free("values");
    let _ = write!(
        out,
        "// What an element of each array was when the snapshot was begun (rule 24).\n\
         control {}(inout {} {snapshot}, inout {} {values}) {{\n",
        around.frozen, added.state_type, around.values,
    );
    for array in &plan.arrays {
        let _ = writeln!(out, "    bit<{}> {};", array.bits, array.field);
    }
    out.push_str("\n    apply {\n");
    for Kept {
        bits,
        field,
        copies,
        updated,
        write,
        ..
    } in &plan.arrays
    {
        let wide = match *bits {
            ELEMENT_BITS => field.clone(),
            _ => format!("(bit<{ELEMENT_BITS}>){field}"),
        };
        let _ = write!(
            out,
            "        {updated}.read({snapshot}.last, {snapshot}.element);
        {copies}.read({field}, {copy}({snapshot}.element, ~{snapshot}.active));
        if ({snapshot}.last != {snapshot}.active && {synchronise}) {{
            {write}({snapshot}, {snapshot}.element, {field});
        }}
        {values}.{field} = {wide};
"
        );
    }
    out.push_str("    }\n}\n\n");
}
