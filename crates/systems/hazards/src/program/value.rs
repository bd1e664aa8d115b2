//! Values of a symbolic run: what they are made of, and how long after a cell's first read.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use indexmap::IndexSet;
use stateplane_ir::RegisterId;

/// Number of an expression, equal for equal expressions.
pub(super) type Symbol = u32;

/// An expression over what a packet brings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A field of the packet or its metadata, an argument of a table's entry, a constant.
    Input(String),
    /// An operation on others.
    Operation(String, Vec<Symbol>),
    /// A value that no expression gives: a random number, an element of a register.
    Unknown(u32),
}

/// All expressions.
#[derive(Default)]
pub(super) struct Symbols {
    nodes: IndexSet<Node>,
    unknown: u32,
}

/// Characters after which an expression is shortened.
const LONG: usize = 120;

impl Symbols {
    pub fn make(&mut self, node: Node) -> Symbol {
        self.nodes.insert_full(node).0 as Symbol
    }

    pub fn input(&mut self, name: impl Into<String>) -> Symbol {
        self.make(Node::Input(name.into()))
    }

    pub fn operation(&mut self, name: impl Into<String>, operands: Vec<Symbol>) -> Symbol {
        self.make(Node::Operation(name.into(), operands))
    }

    pub fn unknown(&mut self) -> Symbol {
        self.unknown += 1;
        self.make(Node::Unknown(self.unknown))
    }

    /// The expression as text.
    pub fn text(&self, symbol: Symbol) -> String {
        let mut text = String::new();
        self.write(symbol, &mut text);
        if text.len() > LONG {
            let end = (0..LONG).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or(0));
            text.push('…');
        }
        text
    }

    fn write(&self, symbol: Symbol, text: &mut String) {
        if text.len() > LONG {
            return;
        }
        match &self.nodes[symbol as usize] {
            Node::Input(name) => text.push_str(name),
            Node::Unknown(_) => text.push('?'),
            Node::Operation(members, operands) if members.starts_with('.') => {
                self.write(operands[0], text);
                text.push_str(members);
            }
            Node::Operation(name, operands) if operands.len() == 2 && !is_word(name) => {
                text.push('(');
                self.write(operands[0], text);
                text.push_str(&format!(" {name} "));
                self.write(operands[1], text);
                text.push(')');
            }
            Node::Operation(name, operands) => {
                text.push_str(name);
                text.push('(');
                for (at, operand) in operands.iter().enumerate() {
                    if at > 0 {
                        text.push_str(", ");
                    }
                    self.write(*operand, text);
                }
                text.push(')');
            }
        }
    }

    /// The name of an input that is no constant.
    pub fn name(&self, symbol: Symbol) -> Option<&str> {
        match &self.nodes[symbol as usize] {
            Node::Input(name) if !self.is_constant(symbol) => Some(name),
            _ => None,
        }
    }

    /// The inputs that the expression is made of; `None` if it has an unknown part.
    pub fn inputs(&self, symbol: Symbol) -> Option<BTreeSet<String>> {
        let mut inputs = BTreeSet::new();
        let mut open = vec![symbol];
        let mut seen = BTreeSet::new();
        while let Some(symbol) = open.pop() {
            if !seen.insert(symbol) {
                continue;
            }
            match &self.nodes[symbol as usize] {
                Node::Input(name) => {
                    inputs.insert(name.clone());
                }
                Node::Operation(_, operands) => open.extend(operands),
                Node::Unknown(_) => return None,
            }
        }
        Some(inputs)
    }

    pub fn is_constant(&self, symbol: Symbol) -> bool {
        matches!(&self.nodes[symbol as usize], Node::Input(name)
            if name.starts_with(|first: char| first.is_ascii_digit()))
    }
}

fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_alphabetic())
}

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
