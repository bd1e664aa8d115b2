//! Rule 9: who calls whom, and how deep.

use super::{MAX_NESTING, Verifier};
use crate::{ActionId, ControlId, FunctionId, ParserId, Program, TableId};

/// Whatever can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Parser(ParserId),
    Control(ControlId),
    Action(ActionId),
    Function(FunctionId),
    Table(TableId),
}

#[derive(Clone, Debug, Default)]
struct Vertex {
    /// Nesting of its statements and expressions.
    depth: u32,
    /// What it calls, and how deep within it.
    calls: Vec<(usize, u32)>,
}

/// The call graph. Vertices are parsers, controls, actions, functions and tables,
/// one after the other.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// First vertex of each kind.
    first: [usize; 5],
    vertices: Vec<Vertex>,
    /// The vertex whose body is being verified.
    current: usize,
}

impl Graph {
    pub(super) fn new(program: &Program) -> Graph {
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
        let mut vertices = vec![Vertex::default(); sizes.iter().sum()];
        for (index, table) in program.tables.iter().enumerate() {
            vertices[first[4] + index].calls = table
                .actions
                .iter()
                .map(|listed| (first[2] + listed.action.index(), 1))
                .collect();
        }
        Graph {
            first,
            vertices,
            current: 0,
        }
    }

    pub(super) fn enter_parser(&mut self, index: usize) {
        self.current = self.first[0] + index;
    }

    pub(super) fn enter_control(&mut self, index: usize) {
        self.current = self.first[1] + index;
    }

    pub(super) fn enter_action(&mut self, index: usize) {
        self.current = self.first[2] + index;
    }

    pub(super) fn enter_function(&mut self, index: usize) {
        self.current = self.first[3] + index;
    }

    pub(super) fn enter_table(&mut self, index: usize) {
        self.current = self.first[4] + index;
    }

    pub(super) fn note_depth(&mut self, depth: u32) {
        if let Some(vertex) = self.vertices.get_mut(self.current) {
            vertex.depth = vertex.depth.max(depth);
        }
    }

    /// Notes a call from the current vertex, `depth` deep in it.
    pub(super) fn call(&mut self, node: Node, depth: u32) {
        let callee = match node {
            Node::Parser(id) => self.first[0] + id.index(),
            Node::Control(id) => self.first[1] + id.index(),
            Node::Action(id) => self.first[2] + id.index(),
            Node::Function(id) => self.first[3] + id.index(),
            Node::Table(id) => self.first[4] + id.index(),
        };
        if let Some(vertex) = self.vertices.get_mut(self.current) {
            vertex.calls.push((callee, depth));
        }
    }

    /// Nesting of a vertex with all that it calls; `None` if that is beyond the
    /// limit, as it is of a circle.
    fn total(&self, vertex: usize, known: &mut [Option<u32>], above: u32) -> Option<u32> {
        if above > MAX_NESTING {
            return None;
        }
        let total = match known[vertex] {
            Some(total) => total,
            None => {
                let mut total = self.vertices[vertex].depth;
                for &(callee, depth) in &self.vertices[vertex].calls {
                    let depth = depth.max(1);
                    let below = self.total(callee, known, above + depth)?;
                    total = total.max(depth + below);
                }
                known[vertex] = Some(total);
                total
            }
        };
        Some(total).filter(|total| above + total <= MAX_NESTING)
    }
}

impl Verifier<'_> {
    pub(super) fn call_graph(&mut self) {
        let mut known = vec![None; self.graph.vertices.len()];
        for vertex in 0..known.len() {
            if self.graph.total(vertex, &mut known, 0).is_none() {
                self.place = "call graph".to_owned();
                self.fail(
                    9,
                    format!("a callable calls itself, or calls nest deeper than {MAX_NESTING}"),
                );
                return;
            }
        }
    }
}
