//! Names that are unique among the entities of one kind.

use crate::Program;
use std::collections::BTreeMap;

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
}

/// Gives names that occur more than once their position.
pub(super) fn unique<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Kind {
    let mut uses: BTreeMap<&str, u32> = BTreeMap::new();
    for name in names.clone() {
        *uses.entry(name).or_default() += 1;
    }
    Kind(
        names
            .enumerate()
            .map(|(i, name)| match uses.get(name) {
                Some(1) => name.to_owned(),
                _ => format!("{name}#{i}"),
            })
            .collect(),
    )
}

/// Printed names of all entities of a program.
pub(super) struct Names {
    pub(super) structs: Kind,
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
        Names {
            structs: unique(program.structs.iter().map(|e| e.name.as_str())),
            enums: unique(program.enums.iter().map(|e| e.name.as_str())),
            vars: unique(program.vars.iter().map(|e| e.name.as_str())),
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
