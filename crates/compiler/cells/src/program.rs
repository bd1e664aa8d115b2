//! The cells of a program: registers that its actions read, change and write together, and how many
//! cycles that takes.

mod profile;
mod store;
mod value;
mod walk;

pub use profile::Profile;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stateplane_ir::{Program, RegisterId};

use crate::symbols::Symbol;
use value::Step;
use walk::{Access, Walk};

/// Registers such that what is read of each may change what is written to each: no two packets may
/// be between the first read and the last write of the same elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Names of the registers.
    pub registers: Vec<String>,
    /// Cycles from the beginning of the first read to the end of the last write that depends on it,
    /// on the longest path, at least 1.
    pub depth: u32,
    /// Key that tells the elements that a packet uses.
    pub key: CellKey,
    /// The longest path.
    pub path: Vec<PathStep>,
    /// The path goes through a loop, each round of which makes it longer: `depth` is that of two
    /// rounds.
    pub loops: bool,
    /// Ingress and egress both use the cell: packets wait in queues on the way.
    pub spans: bool,
}

/// Key of a cell: it tells the elements that a packet uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellKey {
    /// All packets use the same elements.
    Constant,
    /// The elements at this index, which no element of the cell changes.
    One {
        /// The index, as an expression over what the packet brings.
        index: String,
        /// The fields and arguments that it is made of; `None` if registers or random numbers are
        /// among them.
        inputs: Option<BTreeSet<String>>,
    },
    /// Elements at several indices, none of which an element of the cell changes.
    Several(Vec<String>),
    /// An element of the cell tells the index of another: it is not known before the cell is read.
    Dependent,
}

/// An operation on the longest path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// `file:line:column` of the statement; empty if the program does not tell.
    pub place: String,
    /// The operation.
    pub operation: String,
    /// Cycle in which it ends, counted from 1 at the first read.
    pub ends: u32,
}

/// The cells of a program, in the order of its registers. Registers that the program only reads, or
/// only writes, make no cell.
///
/// The program's statements tell their places if it was checked so
/// ([`Stmt::At`](stateplane_ir::Stmt::At)). All paths through ingress and egress are taken at once: a
/// branch is a choice between the values that both sides computed, a write waits for the conditions
/// under which it is made, and a loop is run twice.
pub fn cells(program: &Program, profile: &Profile) -> Vec<Cell> {
    let unknown = vec![None; program.registers.len()];
    let first = Walk::run(program, profile, unknown, None);
    let groups = together(program.registers.len(), &first.accesses);
    let mut numbers = vec![None; program.registers.len()];
    for (number, group) in groups.iter().enumerate() {
        for register in group {
            numbers[register.index()] = Some(number as u32);
        }
    }
    let written = first.accesses.iter().filter(|access| access.writes);
    let written = written.map(|access| access.register).collect();
    let walk = Walk::run(program, profile, numbers, Some(written));
    let described = groups
        .iter()
        .enumerate()
        .map(|(number, group)| describe(program, profile, &walk, number as u32, group));
    described.collect()
}

/// Groups of registers of which each depends on each other, among those read and written.
fn together(count: usize, accesses: &[Access]) -> Vec<Vec<RegisterId>> {
    let mut reaches = vec![vec![false; count]; count];
    let mut used = vec![(false, false); count];
    for access in accesses {
        let at = access.register.index();
        if access.writes {
            used[at].1 = true;
            for read in access.written.registers.iter() {
                reaches[read.index()][at] = true;
            }
        } else {
            used[at].0 = true;
        }
    }
    for middle in 0..count {
        let onward = reaches[middle].clone();
        for row in &mut reaches {
            if row[middle] {
                for (to, reached) in row.iter_mut().zip(&onward) {
                    *to |= reached;
                }
            }
        }
    }
    let mut groups: Vec<Vec<RegisterId>> = Vec::new();
    let mut grouped = vec![false; count];
    for at in 0..count {
        if grouped[at] || used[at] != (true, true) {
            continue;
        }
        let mut group = vec![RegisterId(at as u32)];
        for other in at + 1..count {
            if used[other] == (true, true) && reaches[at][other] && reaches[other][at] {
                grouped[other] = true;
                group.push(RegisterId(other as u32));
            }
        }
        groups.push(group);
    }
    groups
}

fn describe(
    program: &Program,
    profile: &Profile,
    walk: &Walk<'_>,
    number: u32,
    group: &[RegisterId],
) -> Cell {
    let own: Vec<&Access> = walk
        .accesses
        .iter()
        .filter(|access| group.contains(&access.register))
        .collect();
    let writes = own.iter().filter(|access| access.writes);
    let last = writes
        .filter_map(|access| access.written.steps.get(&number))
        .max_by_key(|step| step.at);
    let depth = match last {
        Some(step) => step.at,
        // What is written depends on nothing that was read.
        None => profile.read.max(profile.write),
    };
    let name = |register: &RegisterId| program.registers[register.index()].name.clone();
    Cell {
        registers: group.iter().map(name).collect(),
        depth: depth.max(1),
        key: key_of(walk, group, &own),
        path: last.map_or_else(Vec::new, path),
        loops: walk.growing.contains(&number),
        spans: own.iter().any(|it| it.egress) && own.iter().any(|it| !it.egress),
    }
}

fn path(last: &Rc<Step>) -> Vec<PathStep> {
    let mut steps = Vec::new();
    let mut open = Some(last);
    while let Some(step) = open {
        steps.push(PathStep {
            place: step.place.to_string(),
            operation: step.operation.clone(),
            ends: step.at,
        });
        open = step.before.as_ref();
    }
    steps.reverse();
    steps
}

fn key_of(walk: &Walk<'_>, group: &[RegisterId], own: &[&Access]) -> CellKey {
    let mut indices: BTreeMap<Symbol, String> = BTreeMap::new();
    for access in own {
        if access.index.registers.iter().any(|it| group.contains(it)) {
            return CellKey::Dependent;
        }
        let symbol = access.index.symbol;
        indices
            .entry(symbol)
            .or_insert_with(|| walk.symbols.text(symbol));
    }
    let all_constant = indices.keys().all(|it| walk.symbols.is_constant(*it));
    match indices.len() {
        _ if all_constant => CellKey::Constant,
        1 => {
            let (symbol, index) = indices.into_iter().next().unwrap_or_default();
            CellKey::One {
                index,
                inputs: walk.symbols.inputs(symbol),
            }
        }
        _ => CellKey::Several(indices.into_values().collect()),
    }
}
