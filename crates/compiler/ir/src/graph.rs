//! Callables and tables of a program as vertices of its call graph.

use crate::{Callee, Program, TableId};

/// Node of the call graph: an entity that can be called or applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Call(Callee),
    Table(TableId),
}

/// Numbers for all nodes of a program: parsers, controls, actions, functions and tables,
/// one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Vertices {
    /// First vertex of each kind.
    first: [usize; 5],
    count: usize,
}

impl Vertices {
    pub(crate) fn new(program: &Program) -> Vertices {
        let sizes = [
            program.parsers.len(),
            program.controls.len(),
            program.actions.len(),
            program.functions.len(),
            program.tables.len(),
        ];
        let mut first = [0; 5];
        for kind in 1..first.len() {
            first[kind] = first[kind - 1] + sizes[kind - 1];
        }
        Vertices {
            first,
            count: sizes.iter().sum(),
        }
    }

    /// Number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The number of a node.
    pub(crate) fn of(&self, node: Node) -> usize {
        match node {
            Node::Call(Callee::Parser(id)) => self.first[0] + id.index(),
            Node::Call(Callee::Control(id)) => self.first[1] + id.index(),
            Node::Call(Callee::Action(id)) => self.first[2] + id.index(),
            Node::Call(Callee::Function(id)) => self.first[3] + id.index(),
            Node::Table(id) => self.first[4] + id.index(),
        }
    }
}
