//! Names in the text form: quoted where they are no identifiers, numbered where they
//! would be taken for another.

use crate::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Words that begin a statement or an expression or go on with one, and the targets of
/// parser states: a name that is one of them is quoted.
pub(crate) const RESERVED: [&str; 58] = [
    "accept",
    "action_run",
    "advance",
    "apart",
    "apply",
    "assert",
    "atomic",
    "bit",
    "block",
    "bool",
    "break",
    "call",
    "case",
    "clone",
    "continue",
    "counter_count",
    "default",
    "digest",
    "direct_counter_count",
    "direct_meter_read",
    "else",
    "emit",
    "enum",
    "error",
    "exit",
    "extract",
    "false",
    "goto",
    "hash",
    "header",
    "header_union",
    "hit",
    "if",
    "int",
    "locals",
    "log",
    "lookahead",
    "loop",
    "mark_to_drop",
    "meter_execute",
    "packet_length",
    "random",
    "recirculate",
    "register_read",
    "register_write",
    "reject",
    "resubmit",
    "return",
    "select",
    "stack",
    "struct",
    "switch",
    "true",
    "truncate",
    "unlikely",
    "update",
    "uses",
    "varbit",
];

/// True if a name is identifiers joined by dots.
fn is_path(name: &str) -> bool {
    name.split('.').all(is_identifier)
}

/// True if a text is one identifier; `$` is a letter, as in generated names.
fn is_identifier(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// A name as it is, or as a string literal.
pub(super) fn name(name: &str) -> String {
    if is_path(name) && RESERVED.binary_search(&name).is_err() {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// An annotation's name, which may be any word, or a string literal.
pub(super) fn annotation(name: &str) -> String {
    if is_path(name) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// A member's name, which is one identifier, or a string literal.
pub(super) fn member(name: &str) -> String {
    if is_identifier(name) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Members' names, joined by commas.
pub(super) fn members(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| member(name)).collect();
    names.join(", ")
}

/// Printed names of the entities of one kind, by position.
pub(super) struct Kind(Vec<String>);

impl Kind {
    /// The printed name; `?` and the position if there is no such entity.
    pub(super) fn of(&self, index: usize) -> String {
        self.0
            .get(index)
            .cloned()
            .unwrap_or_else(|| format!("?{index}"))
    }

    fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        quote: fn(&str) -> String,
        numbered: impl Fn(&str) -> bool,
    ) -> Kind {
        let print = |(index, name)| {
            let mut text = quote(name);
            if numbered(name) {
                text += &format!("#{index}");
            }
            text
        };
        Kind(names.enumerate().map(print).collect())
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
    for name in names {
        *uses.entry(name).or_default() += 1;
    }
    uses.retain(|_, count| *count > 1);
    uses.into_keys().collect()
}

/// Gives names that occur more than once their position.
pub(super) fn unique<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Kind {
    let repeated = repeated(names.clone());
    Kind::new(names, name, |name| repeated.contains(name))
}

/// Names of members; those that occur more than once get their position.
fn unique_members<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Kind {
    let repeated = repeated(names.clone());
    Kind::new(names, member, |name| repeated.contains(name))
}

/// Like [`unique`], for names that members may follow after a dot: one that another name
/// goes on from at a dot gets its position too.
fn unique_paths<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Kind {
    let mut numbered = repeated(names.clone());
    for name in names.clone() {
        let ends = name.match_indices('.');
        numbered.extend(ends.map(|(end, _)| &name[..end]));
    }
    Kind::new(names, name, |name| numbered.contains(name))
}

/// Printed names of all entities of a program.
pub(super) struct Names {
    pub(super) structs: Kind,
    /// Members of each struct.
    pub(super) fields: Vec<Kind>,
    pub(super) enums: Kind,
    pub(super) vars: Kind,
    pub(super) parsers: Kind,
    pub(super) controls: Kind,
    pub(super) actions: Kind,
    pub(super) functions: Kind,
    pub(super) tables: Kind,
    pub(super) registers: Kind,
    pub(super) counters: Kind,
    pub(super) meters: Kind,
    pub(super) value_sets: Kind,
    pub(super) action_profiles: Kind,
}

impl Names {
    pub(super) fn of(program: &Program) -> Names {
        let fields = program.structs.iter().map(|def| &def.fields);
        Names {
            structs: unique(program.structs.iter().map(|e| e.name.as_str())),
            fields: fields
                .map(|fields| unique_members(fields.iter().map(|e| e.name.as_str())))
                .collect(),
            enums: unique(program.enums.iter().map(|e| e.name.as_str())),
            vars: unique_paths(program.vars.iter().map(|e| e.name.as_str())),
            parsers: unique(program.parsers.iter().map(|e| e.name.as_str())),
            controls: unique(program.controls.iter().map(|e| e.name.as_str())),
            actions: unique(program.actions.iter().map(|e| e.name.as_str())),
            functions: unique(program.functions.iter().map(|e| e.name.as_str())),
            tables: unique(program.tables.iter().map(|e| e.name.as_str())),
            registers: unique(program.registers.iter().map(|e| e.name.as_str())),
            counters: unique(program.counters.iter().map(|e| e.name.as_str())),
            meters: unique(program.meters.iter().map(|e| e.name.as_str())),
            value_sets: unique(program.value_sets.iter().map(|e| e.name.as_str())),
            action_profiles: unique(program.action_profiles.iter().map(|e| e.name.as_str())),
        }
    }
}
