//! Locks of atomic blocks: what several workers that run one program lock, and in which order.
//!
//! The arrays of a program, its registers and meters, fall into *domains*. In an atomic block the
//! first use of an array takes the lock of its domain: that of the element at the index, or the
//! one lock of a domain that is locked as a whole. The locks are released at the block's end. That
//! is two-phase locking, so that blocks are serialisable; and as all blocks take the domains in one
//! order, none waits for another in a circle.
//!
//! Registers whose author puts their elements into units are a domain with a lock for each unit. A
//! block takes all of these that it needs where it names the units that it uses, and lets go of them before it
//! takes others that it names.

mod arrays;
mod callables;
mod domains;
mod leaves;
mod outside;
mod run;
mod slice;
mod state;
#[cfg(test)]
mod tests;

pub use slice::{KeySlice, key_slice};

use arrays::Arrays;
use domains::Domains;
use run::Run;
use stateplane_ir::{MeterId, Program, RegisterId};
use std::collections::{BTreeMap, BTreeSet};

/// Locks of a program's atomic blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockPlan {
    /// The domains in the order in which blocks take them.
    pub domains: Vec<Domain>,
    registers: Vec<Option<usize>>,
    meters: Vec<Option<usize>>,
    units: BTreeMap<String, usize>,
}

impl LockPlan {
    /// Position of the domain of a register that some atomic block uses.
    pub fn of_register(&self, register: RegisterId) -> Option<usize> {
        self.registers.get(register.index()).copied().flatten()
    }

    /// Position of the domain of a meter that some atomic block uses.
    pub fn of_meter(&self, meter: MeterId) -> Option<usize> {
        self.meters.get(meter.index()).copied().flatten()
    }

    /// Position of the domain of units, whose registers have none of their own.
    pub fn of_units(&self, name: &str) -> Option<usize> {
        self.units.get(name).copied()
    }
}

/// Arrays that are locked together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Names of the registers, and behind them those of the meters.
    pub arrays: Vec<String>,
    /// Elements that a lock of the domain covers.
    pub grain: Grain,
}

/// Elements that a lock covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grain {
    /// The elements at one index of the domain's arrays, which all have `length` elements.
    Element {
        /// Elements, and locks.
        length: u64,
        /// Indices, as expressions over what the packet brings.
        indices: BTreeSet<String>,
    },
    /// The elements of the domain's arrays in one unit. A block locks all units that it uses where
    /// it names them, in the order of their numbers, and nothing where it uses the elements.
    Unit {
        /// Elements of a unit.
        elements: u64,
        /// Number of units, and locks.
        count: u64,
        /// Numbers of units, as expressions over what the packet brings.
        numbers: BTreeSet<String>,
    },
    /// All elements of all its arrays.
    Whole(Vec<Reason>),
}

/// A use of an array in an atomic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The index as an expression over what the packet brings.
    pub index: String,
    /// `file:line:column` of the statement; empty if the program does not tell.
    pub place: String,
}

/// Arrays that some block may use one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The array used first.
    pub first: String,
    /// The one used later.
    pub later: String,
    /// `file:line:column` of the later use; empty if the program does not tell.
    pub place: String,
}

/// Why a domain is locked as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A block may use elements of the array at two indices.
    TwoIndices {
        /// The array.
        array: String,
        /// Two uses in one block.
        uses: [Access; 2],
    },
    /// Blocks use these arrays in orders that lead back to the first.
    Circle(Vec<Edge>),
    /// A parser uses the array: the order of its states is not followed.
    Parser {
        /// The array.
        array: String,
    },
    /// No use of the array was followed.
    NotFollowed {
        /// The array.
        array: String,
    },
    /// A block may use elements of a register of units before it names the units that it uses.
    UnitsNotNamed {
        /// The units.
        units: String,
        /// The register.
        array: String,
        /// `file:line:column` of the use; empty if the program does not tell.
        place: String,
    },
    /// The program is too large to be followed.
    TooLarge,
}

/// Locks for the atomic blocks of `program`, in which all operations stand that need one
/// ([`guard`](stateplane_ir::passes::guard)).
///
/// The program's statements tell their places if it was checked so
/// ([`Stmt::At`](stateplane_ir::Stmt::At)).
pub fn locks(program: &Program) -> LockPlan {
    let arrays = Arrays::new(program);
    let used = outside::used(program, &arrays);
    if used.blocks.iter().next().is_none() {
        return LockPlan::default();
    }
    let mut domains = Domains::new(program, &arrays);
    match Run::new(program, &arrays) {
        Some(run) => {
            for array in used.parsers.iter() {
                domains.lock_as_whole(array, |array| Reason::Parser { array });
            }
            domains.follow(&run);
            for array in used.blocks.iter() {
                if !domains.has(array) {
                    domains.lock_as_whole(array, |array| Reason::NotFollowed { array });
                }
            }
        }
        None => {
            for array in used.blocks.iter() {
                domains.lock_as_whole(array, |_| Reason::TooLarge);
            }
        }
    }
    domains.plan()
}
