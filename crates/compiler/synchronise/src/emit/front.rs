//! Text in front of the program: its registers, the library, and the functions that access them.

use super::{Called, Emit};
use crate::plan::{Group, Kind, fetch};
use crate::registers::{Element, Register};
use crate::uses::Place;
use stateplane_ir::SIDE_EFFECTS_WAIT;
use stateplane_syntax::tree::Declaration;
use std::fmt::Write as _;

/// 2⁻¹⁶ µs a byte, as configured and at least; µs of a window; greatest t: defaults of the
/// library (p4/lib/sync/carrier.p4).
const BYTE_TIME: u32 = 524;
const SLOWEST_BYTE_TIME: u32 = 4194;
const WINDOW_US: u64 = 1000;
const COARSEST: u64 = (1 << 40) - 1;

impl Register<'_> {
    fn ty(&self) -> String {
        match self.element {
            Element::Bits => format!("bit<{}>", self.bits),
            Element::Int => format!("int<{}>", self.bits),
            Element::Bool => "bool".to_owned(),
        }
    }

    /// A variable of the type as `bit<W>`.
    fn as_bits(&self, variable: &str) -> String {
        match self.element {
            Element::Bits => variable.to_owned(),
            Element::Int | Element::Bool => format!("(bit<{}>){variable}", self.bits),
        }
    }

    /// A `bit<W>` as an element.
    fn of_bits(&self, bits: &str) -> String {
        match self.element {
            Element::Bits => bits.to_owned(),
            Element::Int | Element::Bool => format!("({}){bits}", self.ty()),
        }
    }
}

impl Emit<'_> {
    pub(super) fn front(&self) -> String {
        let name = self.input.main_file;
        let name = name.rsplit('/').next().unwrap_or(name);
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "// Made by `stateplane sync` of {name}: change that one, not this.\n//\n"
        );
        for line in self.plan.to_string().lines() {
            let _ = writeln!(out, "//     {line}");
        }
        let _ = write!(
            out,
            "//\n// The engine has to know groups and locations, and that a message has at most {}\n\
             // values: see docs/sync.md.\n\n#include <core.p4>\n#include <v1model.p4>\n\n\
             // The registers. Sizes are those of this compilation.\n",
            self.plan.batch,
        );
        for (register, called) in self.registers.iter().zip(&self.called) {
            let _ = writeln!(
                out,
                "{}register<{}>({}) {};",
                self.annotations(register),
                register.ty(),
                register.size,
                called.register
            );
        }
        for group in &self.plan.groups {
            self.held(group, &mut out);
        }
        self.library_included(&mut out);
        for group in &self.plan.groups {
            self.functions(group, &mut out);
        }
        out.push('\n');
        out
    }

    /// Annotation of functions that egress may call in a program whose packets may wait: what they
    /// write is what they read, or the view's.
    fn vouched(&self) -> &'static str {
        let mut structs = self.input.tree.declarations.iter();
        let waits = structs.any(|declaration| match declaration {
            Declaration::Struct(it) => it
                .annotations
                .iter()
                .any(|annotation| annotation.name.as_str() == SIDE_EFFECTS_WAIT),
            _ => false,
        });
        if waits { "@side_effects_allowed\n" } else { "" }
    }

    fn held_name(&self, group: &Group) -> String {
        self.names.free(&format!("sync_held_{}", group.group))
    }

    fn hold_name(&self, group: &Group) -> String {
        self.names.free(&format!("sync_hold_{}", group.group))
    }

    fn shape_name(&self, group: &Group) -> String {
        self.names.free(&format!("SYNC_SHAPE_{}", group.group))
    }

    /// Functions that read and write a location of a group.
    fn held(&self, group: &Group, out: &mut String) {
        let (held, hold) = (self.held_name(group), self.hold_name(group));
        let vouched = self.vouched();
        let members = self.members(group);
        if let ([(register, called)], true) = (members.as_slice(), group.words > 1) {
            wide(group, register, called, [&held, &hold, vouched], out);
            return;
        }
        let _ = write!(
            out,
            "\n// What a location of group {} holds.\n{vouched}bit<64> {held}(in bit<32> index) {{\n",
            group.group
        );
        let mut parts = Vec::new();
        for (at, (register, called)) in members.iter().enumerate() {
            let _ = write!(
                out,
                "    {} value_{at};\n    {}.read(value_{at}, index);\n",
                register.ty(),
                called.register
            );
            parts.push(register.as_bits(&format!("value_{at}")));
        }
        parts.reverse();
        let value = match (parts.as_slice(), group.bits()) {
            ([one], bits) => widened(one, bits),
            (parts, 64) => parts.join(" ++ "),
            (parts, bits) => widened(&format!("({})", parts.join(" ++ ")), bits),
        };
        let _ = write!(
            out,
            "    return {value};\n}}\n\n{vouched}void {hold}(in bit<32> index, in bit<64> value) {{\n"
        );
        for ((register, called), member) in members.iter().zip(&group.registers) {
            let (low, high) = (member.lowest_bit, member.lowest_bit + member.bits - 1);
            let value = register.of_bits(&format!("value[{high}:{low}]"));
            let _ = writeln!(out, "    {}.write(index, {value});", called.register);
        }
        out.push_str("}\n");
    }

    /// The library, with what it has to know of the groups.
    fn library_included(&self, out: &mut String) {
        let plan = self.plan;
        let _ = write!(
            out,
            "\n// One location and one place of the rings are for what changes nothing.\n\
             #define SYNC_GROUPS {}\n#define SYNC_LOCATIONS {}\n#define SYNC_RINGS {}\n\
             #ifndef SYNC_BATCH\n#define SYNC_BATCH {}\n#endif\n\
             #ifndef SYNC_FETCH\n#define SYNC_FETCH {}\n#endif\n\
             #ifndef SYNC_WINDOW\n#define SYNC_WINDOW {}\n#endif\n",
            plan.groups.len(),
            plan.locations() + 1,
            plan.rings() + 1,
            plan.batch,
            fetch(plan.groups.len()),
            plan.window,
        );
        self.rates(out);
        if !self.renamed.is_empty() {
            out.push_str("// The program has names that the library has, too.\n");
        }
        for (name, other) in &self.renamed {
            let _ = writeln!(out, "#define {name} {other}");
        }
        out.push_str("#include \"sync/shape.p4\"\n\n");
        let mut ring = 0;
        for group in &plan.groups {
            let mask = u64::MAX >> (64 - group.bits());
            let _ = writeln!(
                out,
                "const sync_shape_t {} = {{\n    {},\n    {mask:#x},\n    {},\n    {},\n    \
                 {ring},\n    {}\n}};",
                self.shape_name(group),
                group.kind.constant(),
                plan.first_location(group),
                group.locations,
                group.ring - 1,
            );
            ring += group.ring;
        }
        out.push_str(
            "\ncontrol SyncShape(in bit<16> group, out sync_shape_t shape) {\n    apply {\n",
        );
        self.for_each_group(out, |group| {
            format!("            shape = {};\n", self.shape_name(group))
        });
        out.push_str(
            "    }\n}\n\ncontrol SyncAccess(\n    in bit<16> group,\n    in bit<32> index,\n    \
             in bool write,\n    inout bit<64> value\n) {\n    apply {\n",
        );
        self.for_each_group(out, |group| {
            format!(
                "            if (write) {{\n                {}(index, value);\n            \
                 }} else {{\n                value = {}(index);\n            }}\n",
                self.hold_name(group),
                self.held_name(group)
            )
        });
        out.push_str("    }\n}\n\n#include \"sync.p4\"\n#include \"sync/access.p4\"\n");
        for name in self.renamed.keys() {
            let _ = writeln!(out, "#undef {name}");
        }
    }

    /// One branch for each group, the last for all that is left.
    fn for_each_group(&self, out: &mut String, branch: impl Fn(&Group) -> String) {
        let last = self.plan.groups.len().saturating_sub(1);
        for (at, group) in self.plan.groups.iter().enumerate() {
            let head = match (at, last) {
                (0, 0) => "        {\n".to_owned(),
                (0, _) => "        if (group == 0) {\n".to_owned(),
                (at, last) if at == last => " else {\n".to_owned(),
                (at, _) => format!(" else if (group == {at}) {{\n"),
            };
            let _ = write!(out, "{head}{}        }}", branch(group));
        }
        out.push('\n');
    }

    /// Rates of groups whose annotations say something of them.
    fn rates(&self, out: &mut String) {
        let told = |group: &&Group| group.bound.is_some() || group.window_us.is_some();
        let entries: Vec<String> = self
            .plan
            .groups
            .iter()
            .filter(told)
            .map(|group| {
                format!(
                    "{}: sync_set({BYTE_TIME}, {SLOWEST_BYTE_TIME}, {}, 0, {:#x});",
                    group.group,
                    group.window_us.unwrap_or(WINDOW_US),
                    group.bound.unwrap_or(COARSEST),
                )
            })
            .collect();
        if !entries.is_empty() {
            let _ = writeln!(out, "#define SYNC_RATES {}", entries.join(" "));
        }
    }

    /// The functions that take the place of reads and writes of the program's registers.
    fn functions(&self, group: &Group, out: &mut String) {
        for (register, called) in self.members(group) {
            let calls = self.uses.calls.iter();
            let calls = calls.filter(|call| call.register == register.place());
            for (writes, place) in [
                (false, Place::Body),
                (true, Place::Body),
                (true, Place::Crossed),
                (false, Place::Elsewhere),
                (true, Place::Elsewhere),
            ] {
                let mut calls = calls.clone();
                if calls.any(|call| (call.writes, call.place) == (writes, place)) {
                    self.function(group, (register, called), (writes, place), out);
                }
            }
        }
    }

    /// A function in the place of a read or write.
    fn function(
        &self,
        group: &Group,
        (register, called): (&Register<'_>, &Called),
        (writes, place): (bool, Place),
        out: &mut String,
    ) {
        let (held, hold) = (self.held_name(group), self.hold_name(group));
        let (shape, vouched) = (self.shape_name(group), self.vouched());
        let function = called.function(writes, place);
        let conditional = place != Place::Elsewhere;
        let library = |name| self.library(name);
        let (cross, crosses) = (library("sync_cross"), library("sync_crosses"));
        let changed = library(if conditional {
            "sync_changed_in_body"
        } else {
            "sync_changed"
        });
        let number = group.group;
        let location = |word: u32| match group.words {
            1 => "index".to_owned(),
            words => {
                let shift = words.trailing_zeros();
                // An index beyond the register has no location.
                format!(
                    "index < {} ? (index << {shift}) + {word} : 0xffffffff",
                    group.elements
                )
            }
        };
        let bits = group.registers.first().map_or(1, |member| member.bits);
        let words = group.words.min(bits.div_ceil(64));
        let mut body = String::new();
        // Writing to a string cannot fail.
        for word in (0..words).filter(|_| place != Place::Crossed) {
            let at = location(word);
            let crossing =
                format!("{hold}({at}, {cross}({number}, {at}, {held}({at}), {shape}));\n");
            let _ = if conditional {
                write!(
                    body,
                    "    if ({crosses}({number}, {at}, {shape})) @unlikely {{\n        \
                     {crossing}    }}\n"
                )
            } else {
                write!(body, "    {crossing}")
            };
        }
        let (ty, name) = (register.ty(), &called.register);
        let (method, params) = if writes {
            // The distance of a counter that went on does not fall (rule 25).
            let follows = group.kind == Kind::Counter;
            for word in (0..words).filter(|_| follows) {
                let at = location(word);
                let _ = writeln!(body, "    bit<64> before_{word} = {held}({at});");
            }
            let _ = writeln!(body, "    {name}.write(index, value);");
            for word in 0..words {
                let at = location(word);
                let before = if follows {
                    format!("before_{word}")
                } else {
                    "0".to_owned()
                };
                let after = match (group.registers.len(), group.words) {
                    (1, 1) => widened(&register.as_bits("value"), group.bits()),
                    _ => format!("{held}({at})"),
                };
                let _ = writeln!(
                    body,
                    "    {changed}({number}, {at}, {before}, {after}, {shape});"
                );
            }
            ("write", format!("in bit<32> index, in {ty} value"))
        } else {
            let _ = writeln!(body, "    {name}.read(result, index);");
            ("read", format!("out {ty} result, in bit<32> index"))
        };
        if !conditional {
            // A parser is in no block as ingress and egress are.
            let inner = body.replace("    ", "        ");
            body = format!("    @atomic {{\n{inner}    }}\n");
        }
        let behind = match place {
            Place::Crossed => ", behind an access of the same element",
            Place::Body | Place::Elsewhere => "",
        };
        let _ = write!(
            out,
            "\n// `{name}.{method}`, in view of the control plane{behind}.\n\
             {vouched}void {function}({params}) {{\n{body}}}\n",
        );
    }
}

/// An expression of `bits` bits as a value of the library.
fn widened(expression: &str, bits: u32) -> String {
    match bits {
        64 => expression.to_owned(),
        _ => format!("(bit<64>){expression}"),
    }
}

/// Functions that read and write a word of an element that is wider than a value.
fn wide(
    group: &Group,
    register: &Register<'_>,
    called: &Called,
    [held, hold, vouched]: [&str; 3],
    out: &mut String,
) {
    let shift = group.words.trailing_zeros();
    let (ty, name, bits) = (register.ty(), &called.register, register.bits);
    let word = format!("location[{}:0]", shift - 1);
    let words = bits.div_ceil(64);
    let part = |at: u32| (at * 64, (at * 64 + 63).min(bits - 1));
    let _ = write!(
        out,
        "\n// What a location of group {} holds: 64 bits of an element.\n\
         {vouched}bit<64> {held}(in bit<32> location) {{\n    {ty} element;\n    \
         {name}.read(element, location >> {shift});\n    bit<{bits}> whole = {};\n",
        group.group,
        register.as_bits("element"),
    );
    let mut value = "0".to_owned();
    for at in (0..words).rev() {
        let (low, high) = part(at);
        let slice = match high - low {
            63 => format!("whole[{high}:{low}]"),
            _ => format!("(bit<64>)whole[{high}:{low}]"),
        };
        value = if at + 1 == words {
            format!("({word} == {at} ? {slice} : 64w0)")
        } else {
            format!("({word} == {at} ? {slice} : {value})")
        };
    }
    let _ = write!(
        out,
        "    return {value};\n}}\n\n{vouched}void {hold}(in bit<32> location, in bit<64> value) {{\n    \
         {ty} element;\n    {name}.read(element, location >> {shift});\n    \
         bit<{bits}> whole = {};\n",
        register.as_bits("element"),
    );
    for at in 0..words {
        let (low, high) = part(at);
        let top = high - low;
        let _ = writeln!(
            out,
            "    whole[{high}:{low}] = {word} == {at} ? value[{top}:0] : whole[{high}:{low}];"
        );
    }
    let _ = write!(
        out,
        "    {name}.write(location >> {shift}, {});\n}}\n",
        register.of_bits("whole"),
    );
}
