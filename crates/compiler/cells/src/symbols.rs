//! Expressions over what a packet brings, each with a number.

use std::collections::BTreeSet;

use indexmap::IndexSet;
use stateplane_ir::Type;

/// Number of an expression, equal for equal expressions.
pub(crate) type Symbol = u32;

/// An expression over what a packet brings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// A field of the packet or its metadata, an argument of a table's entry, a constant.
    Input(String),
    /// An operation on others.
    Operation(String, Vec<Symbol>),
    /// A value that no expression gives: a random number, an element of a register.
    Unknown(u32),
    /// A constant of this type.
    Constant(Type, String),
    /// A value that is equal to those of the same number alone, and its name.
    Named(u32, String),
}

/// All expressions.
#[derive(Default)]
pub(crate) struct Symbols {
    nodes: IndexSet<Node>,
    unknown: u32,
}

/// Characters after which an expression is shortened.
const LONG: usize = 64;

impl Symbols {
    pub fn make(&mut self, node: Node) -> Symbol {
        self.nodes.insert_full(node).0 as Symbol
    }

    /// Number of symbols so far.
    pub fn len(&self) -> usize {
        self.nodes.len()
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
            Node::Input(name) | Node::Constant(_, name) | Node::Named(_, name) => {
                text.push_str(name);
            }
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
                Node::Constant(..) => {}
                Node::Unknown(_) | Node::Named(..) => return None,
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
