//! Values of a symbolic run: what they are made of, and how long after a cell's first read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stateplane_ir::RegisterId;

use crate::symbols::Symbol;

/// A step of a path through a cell: an operation that ends in cycle `at`.
#[derive(Debug)]
pub(super) struct Step {
    pub at: u32,
    pub operation: String,
    pub place: Rc<str>,
    pub before: Option<Rc<Step>>,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub symbol: Symbol,
    /// The registers of which something was read that the value depends on.
    pub registers: Rc<BTreeSet<RegisterId>>,
    /// For each cell that it depends on the last step of the longest path from a read.
    pub steps: Rc<BTreeMap<u32, Rc<Step>>>,
}

impl Value {
    /// A value that depends on no register.
    pub fn of(symbol: Symbol) -> Value {
        Value {
            symbol,
            registers: Rc::default(),
            steps: Rc::default(),
        }
    }

    /// This value, later and dependent on `other` too.
    pub fn with(&self, other: &Value) -> Value {
        if other.registers.is_empty() {
            return self.clone();
        }
        let mut registers = BTreeSet::clone(&self.registers);
        registers.extend(other.registers.iter());
        let mut steps = BTreeMap::clone(&self.steps);
        for (cell, step) in other.steps.iter() {
            let longest = steps.entry(*cell).or_insert_with(|| Rc::clone(step));
            if longest.at < step.at {
                *longest = Rc::clone(step);
            }
        }
        Value {
            symbol: self.symbol,
            registers: Rc::new(registers),
            steps: Rc::new(steps),
        }
    }

    /// This value after an operation of some cycles; cells that it does not depend on see none of
    /// them.
    pub fn after(&self, operation: &str, cycles: u32, place: &Rc<str>) -> Value {
        if cycles == 0 || self.steps.is_empty() {
            return self.clone();
        }
        let steps = self.steps.iter().map(|(cell, before)| {
            let step = Step {
                at: before.at + cycles,
                operation: operation.to_owned(),
                place: Rc::clone(place),
                before: Some(Rc::clone(before)),
            };
            (*cell, Rc::new(step))
        });
        Value {
            steps: Rc::new(steps.collect()),
            ..self.clone()
        }
    }
}
